//! From joined to synced: once a node has reached what it had to catch up with.

use super::{refused, LocalState, Node};
use crate::link::Link;
use crate::order::queue::Event;

impl Node {
    pub fn synced(&self) -> Result<(), String> {
        if self.local_state() != LocalState::Joined {
            return Ok(());
        }
        self.set_local_state(LocalState::Synced);
        self.host.synced().map_err(|()| refused("being synced"))
    }

    /// Once a joined node has reached what it had to catch up with, it is synced.
    pub fn check_synced(&self, link: &Link) {
        if self.local_state() == LocalState::Joined
            && self.pause.desync_count() == 0
            && self.counters.reached(self.apply.last_left(), link.progress.seqno())
        {
            self.queue.push(Event::Synced);
        } else if self.local_state() == LocalState::Joined {
            self.tell_progress(link);
        }
    }

    /// Twice a second, for those who watch a node catch up.
    fn tell_progress(&self, link: &Link) {
        let (to, at) = (link.progress.seqno(), self.apply.last_left());
        if let Some(from) = self.counters.progress_due(at) {
            self.host.event(
                "progress",
                &format!(
                    "{{\"from\":{from},\"to\":{to},\"total\":{},\"done\":{},\"indefinite\":-1}}",
                    to - from,
                    at - from
                ),
            );
        }
    }

    /// What the node missed between `from` and its new view, in the words that people search for.
    pub fn say_missed(&self, from: i64, view: i64) {
        let (first, last) = (from + 1, view - 1);
        if first <= last {
            self.info(&format!(
                "Receiving IST: {} events, seqnos {first}-{last}, from the group's log",
                last - from
            ));
        }
    }
}
