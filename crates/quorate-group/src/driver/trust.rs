//! Who is believed to be which member, by the key or the name that its connection showed.
//!
//! Invariant: where members are known by keys, nothing counts as a member's that came with another key than
//! the configuration has for it: not a greeting, not a refusal, not what was taken in while the configuration
//! was not known yet. And a member is stopped for good by the word of voters only, if there are any: anybody who is
//! let in becomes a learner by asking.

use super::Driver;
use crate::options::Options;
use crate::output::{Link, LogLevel, Output};
use crate::rejected::Cause;
use quorate_consensus::{KeyId, MemberId, MemberInfo};
use quorate_wire::{PeerIdentity, Refusal, RefusalCode};

impl Driver {
    /// The others that the configuration in force has, also those that only decide until a change is
    /// complete.
    fn others(&self) -> impl Iterator<Item = (MemberId, &MemberInfo)> {
        let all = self.consensus.everybody().filter(|(id, _)| *id != self.id);
        all.filter_map(|(id, info)| Some((id, info?)))
    }

    /// Whoever shows a member's id shows its key, or a certificate for its name.
    pub fn check_key(&self, from: &PeerIdentity) -> Result<(), Refusal> {
        let mut all = self.consensus.everybody();
        let known = all.find(|(id, _)| *id == from.member).and_then(|(_, info)| Some(info?.key));
        check_key(known, from)
    }

    /// What a member of the configuration said of itself on a connection of another kind.
    pub fn announced(&mut self, identity: &PeerIdentity, out: &mut Output) {
        if self.config.members.contains_key(&identity.member) && self.check_key(identity).is_ok() {
            self.peers.announced(identity.clone(), self.now_ms, out);
        }
    }

    /// Whether nothing tells members apart here: nothing is shown on connections, or no member is known yet,
    /// and whoever is let in is believed.
    fn believes_all(&self) -> bool {
        !self.options.key.is_known() || self.config.members.is_empty()
    }

    /// `peer` was dialled, and who showed `key` refused the connection.
    pub fn refused(&mut self, peer: MemberId, refusal: &Refusal, key: KeyId, out: &mut Output) {
        if refusal.code != RefusalCode::RolledBack {
            return;
        }
        let is_its = |(id, info): (MemberId, &MemberInfo)| id == peer && info.key.admits(key);
        if self.is_believed(is_its) {
            self.rolled_back(refusal.text.clone(), out);
        } else {
            self.reject(peer, Cause::NoMember, out);
            self.dispute(&format!("who answers as member {peer}"), refusal, out);
        }
    }

    /// Who was asked for admission at `addr`, and showed `key`, refused the connection. False if that is
    /// nobody whose word counts.
    pub fn refused_at(
        &mut self,
        addr: &str,
        refusal: &Refusal,
        key: KeyId,
        out: &mut Output,
    ) -> bool {
        let is_its = |(_, info): (MemberId, &MemberInfo)| {
            info.addr == addr && info.key.admits(key) || key.is_known() && info.key == key
        };
        if refusal.code == RefusalCode::RolledBack {
            if self.is_believed(is_its) {
                self.rolled_back(refusal.text.clone(), out);
            } else {
                self.dispute(&format!("who answers at {addr}"), refusal, out);
            }
        }
        self.believes_all() || self.others().any(is_its)
    }

    /// Whether it is the word of a voter, which these are known by, that this member is an older state of itself.
    /// Where there is none but this member, which decides alone then, the word of any member counts.
    fn is_believed(&self, is_its: impl Fn((MemberId, &MemberInfo)) -> bool) -> bool {
        let is_alone = !self.others().any(|(_, info)| info.is_voter());
        let mut heard = self.others().filter(|(_, info)| is_alone || info.is_voter());
        self.believes_all() || heard.any(is_its)
    }

    /// Somebody who was let in, but is no voter as far as is known here, says that this member is an older
    /// state of itself. That may be so: an older state does not know who was admitted since, and if only such
    /// members are left, it hears of it in no other way. It may be a lie that is to stop this node. So it is
    /// said, and whoever knows whether something was put back decides.
    fn dispute(&mut self, who: &str, refusal: &Refusal, out: &mut Output) {
        if self.disputed.is_some() {
            return;
        }
        let Options { name, dir, .. } = &self.options;
        let text = format!(
            "{who}, no voter as far as node {name} knows, does not let it in: {}. If {dir} or the host of {name} \
             was put back to an earlier state, that is right: stop {name}, empty {dir}, and start it; it joins \
             anew and is filled from the others. If not, somebody who has the group's secret or certificates \
             pretends. Until then {name} acknowledges nothing without a majority of the members it knows",
            refusal.text
        );
        out.log(LogLevel::Warn, text.clone());
        self.disputed = Some(text);
    }

    /// Whether `peer`, which was dialled, is not there (any more), or does not count itself in, because who
    /// showed `key` refused with this code.
    pub fn shows_absence(&self, peer: MemberId, code: RefusalCode, key: KeyId) -> bool {
        match code {
            // Another member has its place, or this one has.
            RefusalCode::OtherMember | RefusalCode::Yourself => {
                self.believes_all()
                    || self.is_of(peer, key)
                    || self.is_somebodys(key)
                    || key == self.options.key
            }
            RefusalCode::Isolated => self.believes_all() || self.is_of(peer, key),
            _ => false,
        }
    }

    /// Whether this other member may show this key.
    fn is_of(&self, peer: MemberId, key: KeyId) -> bool {
        self.others().any(|(id, info)| id == peer && info.key.admits(key))
    }

    /// Whether another member is known by this key.
    fn is_somebodys(&self, key: KeyId) -> bool {
        key.is_known() && self.others().any(|(_, info)| info.key == key)
    }

    /// Ends the connections with those that were taken for members before their keys were known here, and have
    /// others. A member that left may come back with another key: what is remembered of its former connections is
    /// forgotten.
    pub(super) fn unmask(&mut self, out: &mut Output) {
        let identities = self.peers.iter().filter_map(|(_, peer)| peer.identity.as_ref());
        let foreign = identities.filter(|identity| self.check_key(identity).is_err());
        let foreign: Vec<_> = foreign.map(|identity| identity.member).collect();
        for id in foreign {
            if self.peers.is_connected(id) {
                let line = format!(
                    "who introduced itself as member {id} does not have that member's key, as is known now: it \
                     is not listened to any more"
                );
                out.log(LogLevel::Warn, line);
            }
            self.peers.forget(id, out);
            out.links.push(Link::Cut(id));
        }
    }
}

/// `known`: what the configuration knows the member by that `from` says to be.
pub(crate) fn check_key(known: Option<KeyId>, from: &PeerIdentity) -> Result<(), Refusal> {
    if known.is_none_or(|key| key.admits(from.key)) {
        return Ok(());
    }
    let (lacks, remedy) = match from.key.is_name() {
        true => (
            "its certificate is for another name than that member's",
            "and its certificate was renewed, renew it with the same names (all alternative names, in any \
             order), or empty the log directory",
        ),
        false => (
            "does not have that member's key",
            "and its file member.key was lost or replaced, put the file back, or empty the log directory",
        ),
    };
    let text = format!(
        "node {} says that it is member {}, and {lacks}. If it is that node, {remedy}: the node then joins \
         anew and is filled from the others. If it is not, somebody who is let in pretends to be that member",
        from.name, from.member
    );
    Err(Refusal { code: RefusalCode::Stale, text })
}
