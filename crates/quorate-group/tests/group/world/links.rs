//! Connections between members: opened, and cut.

use super::{Event, World};
use quorate_group::{Input, Link};

impl World {
    pub(super) fn link(&mut self, at: usize, link: Link) {
        match link {
            Link::Connect { peer, addrs } => {
                let Some(to) = self.find(peer) else { return };
                if addrs.is_empty() {
                    self.nodes[at].dials.remove(&to);
                } else if self.nodes[at].dials.insert(to) || !self.links.contains(&(at, to)) {
                    self.later(1, Event::Dial(at, to));
                }
            }
            Link::Break(peer) | Link::Drop(peer) => {
                if let Some(to) = self.find(peer) {
                    self.end_link(at, to);
                }
            }
            Link::Cut(peer) => {
                if let Some(to) = self.find(peer) {
                    self.end_link(at, to);
                    self.end_link(to, at);
                }
            }
            Link::CutAll => self.cut_links(at),
        }
    }

    pub(super) fn cut_links(&mut self, at: usize) {
        let those = self.links.iter().filter(|(from, to)| *from == at || *to == at);
        let those: Vec<_> = those.copied().collect();
        those.into_iter().for_each(|(from, to)| self.end_link(from, to));
    }

    pub(super) fn end_link(&mut self, from: usize, to: usize) {
        if !self.links.remove(&(from, to)) {
            return;
        }
        let (from_id, to_id) = (self.nodes[from].id, self.nodes[to].id);
        if let Some(connection) = self.nodes[to].incoming.remove(&from) {
            self.step(to, Input::IncomingClosed { peer: from_id, connection });
        }
        self.step(from, Input::Disconnected(to_id));
        self.later(1, Event::Dial(from, to));
    }
}
