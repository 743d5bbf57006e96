//! The connections to the other members, as the machine wants them. Kept under its lock.

use super::hands::Hands;
use crate::net::peer::Peer;
use quorate_consensus::{Fetch, MemberId};
use quorate_group::{LogLevel, SnapshotOrder};
use quorate_wire::Packet;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Links {
    peers: BTreeMap<MemberId, Arc<Peer>>,
    /// Peers with something new in the outbox.
    touched: Vec<Arc<Peer>>,
    closed: bool,
}

impl Links {
    pub fn get(&self, id: MemberId) -> Option<Arc<Peer>> {
        self.peers.get(&id).cloned()
    }

    /// Puts a packet in the outbox to a peer; without a connection it is lost.
    pub fn push(&mut self, to: MemberId, packet: Packet) {
        let Some(peer) = self.peers.get(&to) else { return };
        if peer.push(packet) && !self.touched.iter().any(|touched| touched.id == to) {
            self.touched.push(peer.clone());
        }
    }

    pub fn take_touched(&mut self) -> Vec<Arc<Peer>> {
        std::mem::take(&mut self.touched)
    }

    /// There is to be a connection to this peer; its sender thread is made if there was none.
    pub fn connect(&mut self, hands: &Hands, id: MemberId, addrs: Vec<String>) {
        if let Some(peer) = self.peers.get(&id) {
            return peer.dial(addrs);
        }
        if self.closed {
            return;
        }
        let peer = Arc::new(Peer::new(id, hands.suspect_timeout));
        peer.dial(addrs);
        self.peers.insert(id, peer.clone());
        if !(hands.start_sender)(peer) {
            hands.notices.log(LogLevel::Warn, format!("no thread to send to member {id}"));
        }
    }

    pub fn ask_room(&self, id: MemberId) {
        if let Some(peer) = self.peers.get(&id) {
            peer.ask_room();
        }
    }

    pub fn request_fetch(&self, fetch: Fetch) {
        if let Some(peer) = self.peers.get(&fetch.to) {
            peer.request_fetch(fetch);
        }
    }

    pub fn request_snapshot(&self, order: SnapshotOrder) {
        if let Some(peer) = self.peers.get(&order.to) {
            peer.request_snapshot(order.term);
        }
    }

    pub fn break_off(&self, id: MemberId) {
        if let Some(peer) = self.peers.get(&id) {
            peer.break_connection();
        }
    }

    pub fn cut(&self, id: MemberId) {
        if let Some(peer) = self.peers.get(&id) {
            peer.cut();
        }
    }

    pub fn break_all(&self) {
        self.peers.values().for_each(|peer| peer.break_connection());
    }

    pub fn remove(&mut self, id: MemberId) {
        if let Some(peer) = self.peers.remove(&id) {
            peer.stop();
        }
    }

    /// Stops all, for good.
    pub fn close(&mut self) {
        self.closed = true;
        self.peers.values().for_each(|peer| peer.stop());
    }
}
