//! Asking for admission: the thread of a member that has no leader, or belongs to no group.
//!
//! It asks the seeds and everybody it knows of; whoever it reaches names the leader, and the
//! leader decides. A member that belongs to the group already does no harm by asking, and tells
//! its present address that way.

use crate::machine::LogLevel;
use crate::member::Member;
use crate::net::dial::{dial, DialError};
use quorate_wire::{Admission, JoinRequest, Packet, PeerIdentity, RefusalCode, Want, Wish};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// After being admitted: how long to wait for the leader before asking again.
const LEADER_PATIENCE: Duration = Duration::from_secs(2);
/// Redirections followed in one round.
const ADDRESSES_MAX: usize = 64;

pub(crate) fn run(member: &Member) {
    let mut said = String::new();
    let mut backoff = BACKOFF_MIN;
    while member.membership.wait_asking() {
        let pause = match ask_everybody(member) {
            Outcome::Granted => {
                backoff = BACKOFF_MIN;
                LEADER_PATIENCE
            }
            Outcome::Not { reason } => {
                if reason != said {
                    member.log(LogLevel::Info, format!("not admitted yet: {reason}"));
                    said = reason;
                }
                backoff = (backoff * 2).min(BACKOFF_MAX);
                backoff
            }
        };
        if !member.membership.pause_asking(Instant::now() + pause) {
            return;
        }
    }
}

enum Outcome {
    Granted,
    Not { reason: String },
}

fn ask_everybody(member: &Member) -> Outcome {
    let mut queue = addresses(member);
    let mut asked = BTreeSet::new();
    let mut reason = "there is nobody to ask: no peer address is configured".to_owned();
    let mut refused = None;
    let mut open_ended = false;
    while let Some(addr) = queue.pop_front() {
        if asked.len() >= ADDRESSES_MAX || member.is_stopping() || !asked.insert(addr.clone()) {
            continue;
        }
        match ask(member, &addr) {
            Ok((Admission::Granted, leader)) => {
                if let Err(error) = member.adopt_group(&leader) {
                    member.with_core(|driver| member.log_failed(driver, &error));
                }
                member.membership.set_refused(None);
                return Outcome::Granted;
            }
            Ok((Admission::AskLeader { addr }, _)) => queue.push_front(addr),
            Ok((Admission::Later { reason: later }, _)) => {
                reason = format!("{addr}: {later}");
                open_ended = true;
            }
            Ok((Admission::Refused { reason: text }, _)) => refused = Some((addr, text)),
            Err(DialError::Refused(refusal)) => match refusal.code {
                RefusalCode::Yourself => {}
                RefusalCode::RolledBack => {
                    member.rolled_back(&refusal.text);
                    refused = Some((addr, refusal.text));
                }
                RefusalCode::Version | RefusalCode::OtherGroup => {
                    refused = Some((addr, refusal.text));
                }
                _ => {
                    reason = format!("{addr}: {}", refusal.text);
                    open_ended = true;
                }
            },
            Err(error) => {
                reason = format!("{addr}: {error}");
                open_ended = true;
            }
        }
    }
    if let Some((addr, text)) = &refused {
        reason = format!("{addr} refused: {text}");
    }
    member.membership.set_refused(refused.filter(|_| !open_ended));
    member.membership.set_reason(reason.clone());
    Outcome::Not { reason }
}

/// The answer, and who gave it.
fn ask(member: &Member, addr: &str) -> Result<(Admission, PeerIdentity), DialError> {
    let mut dialled = dial(member.caller(), addr, Want::Join, None)?;
    let found = dialled.welcome.from.clone();
    // Members of a cold group find each other's present addresses this way.
    member.with_core(|driver| {
        if driver.config.members.contains_key(&found.member) {
            member.peer(driver, found.member).announced(found.clone());
        }
    });
    if found.group != 0 && member.group.lock().0 == 0 {
        if let Err(reason) = member.observer.may_join(found.group, found.charter) {
            return Ok((Admission::Refused { reason }, found));
        }
    }
    let wish = Wish {
        role: member.options.role,
        weight: member.options.weight,
        zone: member.options.zone.clone(),
    };
    let request =
        JoinRequest { last_index: member.wal.last().index, blank: member.options.blank, wish };
    let question = Packet::JoinRequest(request);
    match dialled.ask(member.id, &question)? {
        Packet::Admission(admission) => Ok((admission, found)),
        other => {
            let reason = format!("answered with a packet of type {:?}", other.frame_type());
            Ok((Admission::Later { reason }, found))
        }
    }
}

/// Seeds first, then every other known member.
fn addresses(member: &Member) -> VecDeque<String> {
    let mut addrs: VecDeque<String> = member.options.seeds.iter().cloned().collect();
    let peers: Vec<_> = member.core.lock().peers.values().cloned().collect();
    for peer in peers {
        let known = peer.known();
        addrs.extend(known.identity.map(|identity| identity.addr));
        addrs.extend(known.config_addr);
    }
    addrs.retain(|addr| *addr != member.options.advertise && !addr.is_empty());
    addrs
}
