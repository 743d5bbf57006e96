//! What this member knows of the others' processes, and where it wants to be connected to.
//!
//! Each member dials each other one, and a connection carries packets one way: from the side that
//! dialled. So a pair of members has two connections; a newer one from the same member replaces the
//! older.

use crate::note::NOTES_MAX;
use crate::output::{Link, Output};
use crate::paced::Pace;
use quorate_consensus::MemberId;
use quorate_wire::PeerIdentity;
use std::collections::BTreeMap;

/// Peers that are in no configuration that is known here, each with its threads, until some time after they
/// are gone: those that are being admitted, or that were admitted while this member was away.
const STRANGERS_MAX: usize = 64;
/// For who knows no configuration yet, all members are among them.
const NEWCOMERS_STRANGERS_MAX: usize = STRANGERS_MAX + 256;
/// Of those with one key. Of certificates, all nodes may share one.
const ALIKE_MAX: usize = 4;
/// More than wait anywhere for a leader, twice.
const NOTES_AT_ONCE: u64 = 4 * NOTES_MAX as u64;
const CHANGES_AT_ONCE: u64 = 8;

/// One other member.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// From its last handshake.
    pub identity: Option<PeerIdentity>,
    /// Group address of the configuration.
    pub config_addr: Option<String>,
    /// The connection that it dialled.
    pub incoming: Option<u64>,
    /// There is one that this member dialled.
    pub outgoing: bool,
    /// When last dialled, it was not there: when that began.
    pub absent: Option<u64>,
    /// When there last was a connection, or the peer was first heard of.
    pub last_contact_ms: u64,
    /// When something last came from it.
    pub heard_ms: u64,
    /// Of the notes that it has a leader put into the log.
    pub notes: Pace,
    /// Of the changes of the configuration that it causes by what it announces: address, name, votes.
    pub changes: Pace,
    /// Of what it asks for and has looked at at once: to leave, for a view, for votes.
    pub asks: Pace,
}

#[derive(Default)]
pub(crate) struct Peers {
    map: BTreeMap<MemberId, Peer>,
    next_connection: u64,
    /// Nobody is dialled: this member is isolated, or has failed.
    silent: bool,
}

impl Peer {
    fn new(now_ms: u64) -> Self {
        Self {
            identity: None,
            config_addr: None,
            incoming: None,
            outgoing: false,
            absent: None,
            last_contact_ms: now_ms,
            heard_ms: now_ms,
            notes: Pace::new(NOTES_AT_ONCE),
            changes: Pace::new(CHANGES_AT_ONCE),
            asks: Pace::new(CHANGES_AT_ONCE),
        }
    }

    pub fn is_connected(&self) -> bool {
        self.incoming.is_some() || self.outgoing
    }

    /// Each can send to the other. When a process ends, one connection may be seen to end before
    /// the other.
    pub fn is_connected_both_ways(&self) -> bool {
        self.incoming.is_some() && self.outgoing
    }

    /// Where it may be found: what it last announced, then what the configuration has.
    pub fn addrs(&self) -> Vec<String> {
        let announced = self.identity.as_ref().map(|identity| identity.addr.clone());
        let mut addrs: Vec<String> =
            announced.into_iter().chain(self.config_addr.clone()).collect();
        addrs.dedup();
        addrs
    }
}

impl Peers {
    pub fn get(&self, id: MemberId) -> Option<&Peer> {
        self.map.get(&id)
    }

    pub fn get_mut(&mut self, id: MemberId) -> Option<&mut Peer> {
        self.map.get_mut(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&MemberId, &Peer)> {
        self.map.iter()
    }

    pub fn ids(&self) -> Vec<MemberId> {
        self.map.keys().copied().collect()
    }

    pub fn is_connected(&self, id: MemberId) -> bool {
        self.get(id).is_some_and(Peer::is_connected)
    }

    pub fn remove(&mut self, id: MemberId) {
        self.map.remove(&id);
    }

    pub fn heard(&mut self, id: MemberId, now_ms: u64) {
        if let Some(peer) = self.map.get_mut(&id) {
            peer.heard_ms = now_ms;
        }
    }

    /// Everybody else of the configuration in force, and where: also those that only decide until a
    /// change is complete, for nothing is decided without them.
    pub fn configured(&mut self, all: BTreeMap<MemberId, String>, now_ms: u64, out: &mut Output) {
        for (id, addr) in &all {
            let known = self.map.contains_key(id);
            let peer = self.map.entry(*id).or_insert_with(|| Peer::new(now_ms));
            if !known || peer.config_addr.as_ref() != Some(addr) {
                peer.config_addr = Some(addr.clone());
                self.reach(*id, out);
            }
        }
        let former = |(id, peer): (&MemberId, &mut Peer)| {
            let gone = !all.contains_key(id) && peer.config_addr.take().is_some();
            gone.then_some(*id)
        };
        let former: Vec<_> = self.map.iter_mut().filter_map(former).collect();
        former.into_iter().for_each(|id| self.reach(id, out));
    }

    /// It dialled this member and introduced itself: the number of its connection. Refused if the
    /// same member, not started later, is connected from the address that is the error.
    pub fn incoming_opened(
        &mut self,
        identity: PeerIdentity,
        now_ms: u64,
        out: &mut Output,
    ) -> Result<u64, String> {
        let id = identity.member;
        let peer = self.map.entry(id).or_insert_with(|| Peer::new(now_ms));
        let known = peer.identity.as_ref();
        if let Some(known) = known.filter(|_| peer.incoming.is_some()) {
            if identity.addr != known.addr && identity.incarnation <= known.incarnation {
                return Err(known.addr.clone());
            }
        }
        if known.is_some_and(|known| known.incarnation != identity.incarnation) && peer.outgoing {
            // Our connection leads to the process before this one.
            out.links.push(Link::Break(id));
        }
        self.next_connection += 1;
        peer.incoming = Some(self.next_connection);
        peer.identity = Some(identity);
        peer.absent = None;
        (peer.last_contact_ms, peer.heard_ms) = (now_ms, now_ms);
        self.reach(id, out);
        Ok(self.next_connection)
    }

    /// True if it was the current one: the peer is (for now) not heard any more.
    pub fn incoming_closed(
        &mut self,
        id: MemberId,
        connection: u64,
        now_ms: u64,
        out: &mut Output,
    ) -> bool {
        let closed = self.map.get_mut(&id).filter(|peer| peer.incoming == Some(connection));
        let Some(peer) = closed else { return false };
        peer.incoming = None;
        peer.last_contact_ms = now_ms;
        if !peer.outgoing {
            // What became of it, a new connection tells.
            self.reach(id, out);
        }
        true
    }

    /// This member dialled it, and was welcomed.
    pub fn connected(&mut self, identity: PeerIdentity, now_ms: u64, out: &mut Output) {
        let id = identity.member;
        let Some(peer) = self.map.get_mut(&id) else { return };
        let moved = peer.identity.as_ref().map(|known| &known.addr) != Some(&identity.addr);
        peer.identity = Some(identity);
        peer.outgoing = true;
        peer.absent = None;
        peer.last_contact_ms = now_ms;
        match self.silent {
            true => out.links.push(Link::Break(id)),
            false if moved => self.reach(id, out),
            false => {}
        }
    }

    pub fn disconnected(&mut self, id: MemberId, now_ms: u64) {
        if let Some(peer) = self.map.get_mut(&id) {
            peer.outgoing = false;
            peer.last_contact_ms = now_ms;
        }
    }

    /// It is not where it was looked for; false if that was known.
    pub fn absent(&mut self, id: MemberId, dialled_ms: u64) -> bool {
        self.map.get_mut(&id).is_some_and(|peer| peer.absent.replace(dialled_ms).is_none())
    }

    /// What a member of the configuration said of itself on a connection of another kind: where to
    /// dial it.
    pub fn announced(&mut self, identity: PeerIdentity, now_ms: u64, out: &mut Output) {
        let id = identity.member;
        let peer = self.map.entry(id).or_insert_with(|| Peer::new(now_ms));
        let moved = peer.identity.as_ref().map(|known| &known.addr) != Some(&identity.addr);
        if peer.incoming.is_none() {
            peer.identity = Some(identity);
        }
        if moved || !peer.outgoing {
            self.reach(id, out);
        }
    }

    /// What was known of its process is not true. Until the connections are ended that it has, see
    /// [`Peers::is_foreign`].
    pub fn forget(&mut self, id: MemberId, out: &mut Output) {
        if let Some(peer) = self.map.get_mut(&id) {
            peer.identity = None;
            self.reach(id, out);
        }
    }

    /// Whether its connection is that of somebody else, and is being ended.
    pub fn is_foreign(&self, id: MemberId) -> bool {
        self.get(id).is_some_and(|peer| peer.incoming.is_some() && peer.identity.is_none())
    }

    /// Whether one more that is in no configuration is too many, of all or of those with its key. Those whose
    /// connections have ended count until they are forgotten, as their threads do.
    pub fn is_crowded(&self, guest: &PeerIdentity, knows_members: bool) -> bool {
        let strangers =
            self.map.iter().filter(|(id, peer)| peer.config_addr.is_none() && **id != guest.member);
        let identities = strangers.map(|(_, peer)| peer.identity.as_ref());
        let (mut all, mut alike) = (0, 0);
        for identity in identities {
            all += 1;
            alike += usize::from(
                guest.key.is_known()
                    && !guest.key.is_name()
                    && identity.is_some_and(|other| other.key == guest.key),
            );
        }
        let most = if knows_members { STRANGERS_MAX } else { NEWCOMERS_STRANGERS_MAX };
        all >= most || alike >= ALIKE_MAX
    }

    /// Those in no configuration, and not heard of for `patience_ms`.
    pub fn strangers(&self, now_ms: u64, patience_ms: u64) -> Vec<MemberId> {
        let stranger = |(_, peer): &(&MemberId, &Peer)| {
            let silent = now_ms.saturating_sub(peer.last_contact_ms) >= patience_ms;
            peer.config_addr.is_none() && peer.incoming.is_none() && silent
        };
        self.map.iter().filter(stranger).map(|(id, _)| *id).collect()
    }

    /// Ends the connections that this member dialled, and dials nobody.
    pub fn hang_up(&mut self, out: &mut Output) {
        self.silent = true;
        for id in self.ids() {
            self.reach(id, out);
            out.links.push(Link::Break(id));
        }
    }

    /// Dials again, after [`Peers::hang_up`].
    pub fn dial_again(&mut self, out: &mut Output) {
        self.silent = false;
        self.ids().into_iter().for_each(|id| self.reach(id, out));
    }

    fn reach(&self, id: MemberId, out: &mut Output) {
        let addrs = match self.silent {
            true => Vec::new(),
            false => self.map.get(&id).map(Peer::addrs).unwrap_or_default(),
        };
        out.links.push(Link::Connect { peer: id, addrs });
    }
}
