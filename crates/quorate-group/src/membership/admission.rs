//! Answering those who want to be members.

use super::policy::{self, NotYet};
use crate::driver::Driver;
use crate::note::EventKind;
use crate::output::{LogLevel, Output};
use quorate_consensus::{Event, MemberInfo, MemberRole, StepError};
use quorate_wire::{Admission, JoinRequest, PeerIdentity, NAME_MAX};

/// So many are filled at a time; each costs the leader a connection and a copy of the log.
const JOINING_MAX: usize = 16;

/// The answer to a join request: the leader admits, everybody else knows whom to ask.
pub(crate) fn admit(
    driver: &mut Driver,
    guest: PeerIdentity,
    request: &JoinRequest,
    out: &mut Output,
) -> Admission {
    let node = driver.options.name.clone();
    // It may have greeted before somebody else was admitted with this id.
    if let Err(refusal) = driver.check_key(&guest) {
        return Admission::Refused { reason: refusal.text };
    }
    if driver.group.0 == 0 {
        let reason = format!("node {node} belongs to no group itself yet");
        return Admission::Later { reason };
    }
    // Where to find it, should it be one of us that moved.
    driver.announced(&guest, out);
    if !driver.leadership.is_leader {
        let Some(leader) = driver.leadership.leader else {
            let reason = format!("node {node} knows no leader at present");
            return Admission::Later { reason };
        };
        let addr = driver.config.members.get(&leader).map(|info| info.addr.clone());
        return match addr {
            Some(addr) => Admission::AskLeader { addr },
            None => Admission::Later { reason: "the leader's address is not known".into() },
        };
    }
    if let Err(refusal) = guest.check_level(driver.config.level) {
        return Admission::Refused { reason: refusal.text };
    }
    if let Some(other) = policy::confusable_with(&driver.config, guest.member) {
        let id = guest.member;
        let reason = format!(
            "the id {id} cannot be told from that of member {other}: ids are drawn at random, so this one was chosen; \
             an empty log directory gets another one"
        );
        return Admission::Refused { reason };
    }
    if request.wish.zone.len() > NAME_MAX {
        return Admission::Refused { reason: format!("a zone has at most {NAME_MAX} bytes") };
    }
    let alive = |id| id == driver.id || driver.peers.is_connected(id);
    // Who died on its way in keeps nobody out. A learner is never said to have come in; that many of them lag keeps
    // no voter out.
    let status = driver.status();
    let lacks_log = |id| id != driver.id && status.caught_up(id).is_none();
    let is_learner = |role| role == MemberRole::Learner;
    let is_filled = |id, info: &MemberInfo| {
        info.joining || is_learner(request.wish.role) && is_learner(info.role) && lacks_log(id)
    };
    let members = driver.config.members.iter();
    let joining = members.filter(|(id, info)| is_filled(**id, info) && alive(**id)).count();
    if joining >= JOINING_MAX && !driver.config.members.contains_key(&guest.member) {
        let reason = format!("{joining} members are being admitted already: one after the other");
        return Admission::Later { reason };
    }
    let change = match policy::admission(&driver.config, &guest, &request.wish, alive) {
        Ok(None) => return Admission::Granted,
        Ok(Some(change)) => change,
        Err(not_yet) => return Admission::Later { reason: in_words(not_yet, &guest) },
    };
    if !driver.may_change(guest.member) {
        let reason = "too many changes of the membership were asked for lately".to_owned();
        return Admission::Later { reason };
    }
    // They could not commit it, and whoever has it in its log is bound by it.
    if !driver.config.is_quorum(alive) {
        let reason = format!("the members that node {node} is connected to are no majority");
        return Admission::Later { reason };
    }
    let PeerIdentity { member: id, name, addr, .. } = &guest;
    let line = format!(
        "node {name} at {addr} asks for admission as member {id}: {}",
        change.in_words(&driver.config)
    );
    let was_member = driver.config.members.contains_key(id);
    match driver.step(Event::ChangeMembership(change), out) {
        Ok(()) => {
            driver.note_change(*id, was_member);
            out.log(LogLevel::Info, line.clone());
            driver.saw(EventKind::Membership, line, Some(driver.last()));
            if request.blank && request.last_index == 0 {
                driver.ignore_refusal(Event::SnapshotWelcome(*id), out);
            }
            Admission::Granted
        }
        Err(refusal @ StepError::BadChange(_)) => {
            Admission::Refused { reason: refusal.to_string() }
        }
        Err(refusal) => Admission::Later { reason: refusal.to_string() },
    }
}

fn in_words(not_yet: NotYet, guest: &PeerIdentity) -> String {
    let addr = &guest.addr;
    match not_yet {
        NotYet::SameAddress(holder) => {
            format!("member {holder} has the address {addr} and still lives")
        }
        NotYet::SameKey(holder) => format!(
            "member {holder} has the same key and still lives; a node is one member: if this is a copy of its \
             directory, empty it"
        ),
        NotYet::OtherName(holder) => format!(
            "member {holder}, which is away, has the address {addr}, and a certificate for another name; if this \
             node is to take its place, remove that member first: quorate member remove"
        ),
    }
}
