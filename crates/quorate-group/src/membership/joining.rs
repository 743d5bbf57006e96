//! Asking for admission: a member that has no leader, or belongs to no group.
//!
//! It asks the seeds and everybody it knows of, one after the other; whoever it reaches names the
//! leader, and the leader decides. A member that belongs to the group already does no harm by asking,
//! and tells its present address that way.

use crate::driver::Driver;
use crate::input::AskAnswer;
use crate::output::{Ask, LogLevel, Output};
use quorate_consensus::MemberRole;
use quorate_wire::{Admission, JoinRequest, PeerIdentity, RefusalCode, Wish};
use std::collections::{BTreeSet, VecDeque};

const BACKOFF_MIN_MS: u64 = 50;
const BACKOFF_MAX_MS: u64 = 1_000;
/// After being admitted: how long to wait for the leader before asking again.
const LEADER_PATIENCE_MS: u64 = 2_000;
/// Redirections followed in one round.
const ADDRESSES_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Joining {
    /// Everybody asked refused for good: (address, reason).
    refused: Option<(String, String)>,
    round: Option<Round>,
    next_ms: u64,
    backoff_ms: u64,
    /// The reason that was logged last.
    logged: String,
}

/// One question at a time.
struct Round {
    queue: VecDeque<String>,
    asked: BTreeSet<String>,
    reason: String,
    refused: Option<(String, String)>,
    /// Asking again may help.
    open_ended: bool,
}

impl Joining {
    /// Why there is nobody to ask any more, until somebody acts.
    pub fn refused(&self) -> Option<&(String, String)> {
        self.refused.as_ref()
    }

    /// Asks, if that is `needed` and due.
    pub fn look(&mut self, needed: bool, driver: &mut Driver, out: &mut Output) {
        if !needed || self.round.is_some() || driver.now_ms < self.next_ms {
            return;
        }
        self.round = Some(Round {
            queue: addresses(driver),
            asked: BTreeSet::new(),
            reason: "there is nobody to ask: no peer address is configured".to_owned(),
            refused: None,
            open_ended: false,
        });
        self.proceed(driver, out);
    }

    /// What came of the question asked last.
    pub fn answered(
        &mut self,
        addr: String,
        mut answer: AskAnswer,
        driver: &mut Driver,
        out: &mut Output,
    ) {
        if let AskAnswer::Admission { from, .. } | AskAnswer::Objection { from, .. } = &answer {
            // Members of a cold group find each other's present addresses this way.
            driver.announced(from, out);
        }
        if let AskAnswer::Refused { refusal, key } = &answer {
            if !driver.refused_at(&addr, refusal, *key, out) {
                answer = AskAnswer::Failed { reason: refusal.text.clone() };
            }
        }
        let Some(round) = &mut self.round else { return };
        if let Some(leader) = round.note(addr, answer) {
            driver.adopt_group(&leader, out);
            self.refused = None;
            self.backoff_ms = BACKOFF_MIN_MS;
            self.end_round(LEADER_PATIENCE_MS, driver.now_ms);
            return;
        }
        self.proceed(driver, out);
    }

    /// The next question, or the end of the round.
    fn proceed(&mut self, driver: &mut Driver, out: &mut Output) {
        let Some(round) = &mut self.round else { return };
        while let Some(addr) = round.queue.pop_front() {
            if round.asked.len() < ADDRESSES_MAX && round.asked.insert(addr.clone()) {
                let agree = driver.group.0 == 0;
                out.ask = Some(Ask { addr, request: request(driver), agree });
                return;
            }
        }
        if let Some((addr, text)) = &round.refused {
            round.reason = format!("{addr} refused: {text}");
        }
        self.refused = round.refused.take().filter(|_| !round.open_ended);
        driver.reason = std::mem::take(&mut round.reason);
        if driver.reason != self.logged {
            out.log(LogLevel::Info, format!("not admitted yet: {}", driver.reason));
            self.logged = driver.reason.clone();
        }
        self.backoff_ms = (self.backoff_ms.max(BACKOFF_MIN_MS) * 2).min(BACKOFF_MAX_MS);
        self.end_round(self.backoff_ms, driver.now_ms);
    }

    fn end_round(&mut self, pause_ms: u64, now_ms: u64) {
        self.round = None;
        self.next_ms = now_ms + pause_ms;
    }
}

impl Round {
    /// Gives back who leads, if it grants admission.
    fn note(&mut self, addr: String, answer: AskAnswer) -> Option<PeerIdentity> {
        match answer {
            AskAnswer::Admission { from, admission } => match admission {
                Admission::Granted => return Some(from),
                Admission::AskLeader { addr } => self.queue.push_front(addr),
                Admission::Later { reason } => self.ask_again(&addr, &reason),
                Admission::Refused { reason } => self.refused = Some((addr, reason)),
            },
            AskAnswer::Objection { reason, .. } => self.refused = Some((addr, reason)),
            AskAnswer::Refused { refusal, .. } => match refusal.code {
                RefusalCode::Yourself => {}
                RefusalCode::Version | RefusalCode::OtherGroup | RefusalCode::RolledBack => {
                    self.refused = Some((addr, refusal.text));
                }
                _ => self.ask_again(&addr, &refusal.text),
            },
            AskAnswer::Failed { reason } => self.ask_again(&addr, &reason),
        }
        None
    }

    fn ask_again(&mut self, addr: &str, reason: &str) {
        self.reason = format!("{addr}: {reason}");
        self.open_ended = true;
    }
}

fn request(driver: &Driver) -> JoinRequest {
    JoinRequest { last_index: driver.last().index, blank: driver.options.blank, wish: wish(driver) }
}

/// The options say what a new member is. One that took leave comes back as what operators had made of it, as far as its
/// own log tells; but a server does not come back as a logger, nor a logger as a server.
fn wish(driver: &Driver) -> Wish {
    let options = &driver.options;
    let is_logger = |role| role == MemberRole::Logger;
    match driver.last_known().filter(|info| is_logger(info.role) == is_logger(options.role)) {
        Some(info) => Wish { role: info.role, priority: info.priority, zone: info.zone.clone() },
        None => Wish { role: options.role, priority: options.priority, zone: options.zone.clone() },
    }
}

/// Seeds first, then every other known member.
fn addresses(driver: &Driver) -> VecDeque<String> {
    let mut addrs: VecDeque<String> = driver.options.seeds.iter().cloned().collect();
    addrs.extend(driver.peers.iter().flat_map(|(_, peer)| peer.addrs()));
    addrs.retain(|addr| *addr != driver.options.advertise && !addr.is_empty());
    addrs
}
