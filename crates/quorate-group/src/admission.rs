//! Answering those who want to be members.

use crate::machine::LogLevel;
use crate::member::Member;
use crate::policy;
use quorate_consensus::{Event, MemberId, StepError};
use quorate_wire::{Admission, JoinRequest, PeerIdentity};

/// The answer to a join request: the leader admits, everybody else knows whom to ask.
pub(crate) fn admit(member: &Member, guest: PeerIdentity, request: &JoinRequest) -> Admission {
    if member.group.lock().0 == 0 {
        let reason = format!("node {} belongs to no group itself yet", member.options.name);
        return Admission::Later { reason };
    }
    member.with_core(|driver| {
        // Where to find it, should it be one of us that moved.
        if driver.config.members.contains_key(&guest.member) {
            let peer = member.peer(driver, guest.member);
            peer.announced(guest.clone());
        }
        let leadership = driver.leadership;
        if !leadership.is_leader {
            let Some(leader) = leadership.leader else {
                let reason = format!("node {} knows no leader at present", member.options.name);
                return Admission::Later { reason };
            };
            let addr = driver.config.members.get(&leader).map(|info| info.addr.clone());
            return match addr {
                Some(addr) => Admission::AskLeader { addr },
                None => Admission::Later { reason: "the leader's address is not known".into() },
            };
        }
        let alive = |id: MemberId| {
            id == member.id || driver.peers.get(&id).is_some_and(|peer| peer.known().is_connected())
        };
        let change = match policy::admission(&driver.config, &guest, &request.wish, alive) {
            Ok(None) => return Admission::Granted,
            Ok(Some(change)) => change,
            Err(holder) => {
                let addr = &guest.addr;
                let reason = format!("member {holder} has the address {addr} and still lives");
                return Admission::Later { reason };
            }
        };
        let PeerIdentity { member: id, name, addr, .. } = &guest;
        let line = format!("node {name} at {addr} asks for admission as member {id}: {change:?}");
        match driver.step(member, Event::ChangeMembership(change)) {
            Ok(()) => {
                member.log(LogLevel::Info, line);
                if request.blank && request.last_index == 0 {
                    driver.ignore_refusal(member, Event::SnapshotWelcome(*id));
                }
                Admission::Granted
            }
            Err(refusal @ StepError::BadChange(_)) => {
                Admission::Refused { reason: refusal.to_string() }
            }
            Err(refusal) => Admission::Later { reason: refusal.to_string() },
        }
    })
}
