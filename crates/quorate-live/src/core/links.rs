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
    /// Peers that there was no thread for, with their addresses, and when to try again.
    threadless: BTreeMap<MemberId, Vec<String>>,
    retry_ms: u64,
    /// When that may be said again.
    warn_ms: u64,
    closed: bool,
}

const RETRY_MS: u64 = 1000;
const WARN_MS: u64 = 60_000;

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
        self.threadless.remove(&id);
        if let Some(peer) = self.peers.get(&id) {
            return peer.dial(addrs);
        }
        if self.closed {
            return;
        }
        let peer = Arc::new(Peer::new(id, hands.suspect_timeout));
        peer.dial(addrs.clone());
        if (hands.start_sender)(peer.clone()) {
            self.peers.insert(id, peer);
        } else {
            self.threadless.insert(id, addrs);
            let now_ms = hands.now_ms();
            self.retry_ms = now_ms + RETRY_MS;
            if now_ms < self.warn_ms {
                return;
            }
            self.warn_ms = now_ms + WARN_MS;
            let what = format!(
                "node {} has no thread to send to member {id}, which may miss it until there is one: raise the limit of \
                 threads (TasksMax of the service), or have fewer connections of clients",
                hands.node
            );
            hands.notices.log(LogLevel::Warn, what);
        }
    }

    /// With each step: without this, a peer that there was no thread for once would never be dialled.
    pub fn start_threadless(&mut self, hands: &Hands) {
        if self.threadless.is_empty() || hands.now_ms() < self.retry_ms {
            return;
        }
        for (id, addrs) in std::mem::take(&mut self.threadless) {
            self.connect(hands, id, addrs);
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
        self.threadless.remove(&id);
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
