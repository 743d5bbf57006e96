//! Being cut off, and going on alone: `gmcast.isolate`, `pc.ignore_sb`, `pc.bootstrap`.
//!
//! A member of a group of two may go on alone when the other one's process is gone, if the
//! operator allows it beforehand (`pc.ignore_sb`) or asks for it (`pc.bootstrap`). That the member
//! has all that was committed follows from its being one of two voters (`core/survive.rs` of
//! quorate-consensus). What has to be seen to here is that not both do it.
//!
//! Invariants:
//! - the other one is left behind only if its connection has ended *and* its host has refused a
//!   new one (nobody listens there: the process is gone), or it has answered that it is isolated.
//!   Silence is never enough: over a cut network both might think so. (A firewall that answers in a
//!   host's name can make this wrong, which is why the option is off unless it is set);
//! - who is isolated, or was started just now, has no right to go on alone. It gets the right by a
//!   view with its present process in it, made in a later term than the one it was cut off in: by
//!   then it has all that the other one may have done without it;
//! - a member takes that right from itself *before* it says that it is isolated;
//! - who wants to leave loses the right for good: the others may have let it go already.
//!
//! More than one member missing, or one of more than two, is refused: some acknowledged commits may
//! be on the missing ones only.

use crate::driver::Driver;
use crate::error::GroupError;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::progress::Applied;
use parking_lot::Mutex;
use quorate_consensus::{Event, MemberId, Term};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// For the whole process, settable in a signal handler.
static PROCESS_ISOLATED: AtomicBool = AtomicBool::new(false);

/// Cuts off all members of this process (or lets them go on). Async-signal-safe: it only stores a
/// flag, which each member's keeper notices within a heartbeat interval.
pub fn isolate_process(isolated: bool) {
    PROCESS_ISOLATED.store(isolated, Ordering::SeqCst);
}

pub(crate) struct Survival {
    isolated: AtomicBool,
    /// `pc.ignore_sb`.
    allowed: AtomicBool,
    /// 0: connected, 1: connections were cut.
    cut: AtomicU8,
    right: Mutex<Right>,
}

/// The right to go on alone.
enum Right {
    /// With a view that has this process in it, of a later number and, after an isolation, a later
    /// term.
    After { view: u64, term: Option<Term> },
    /// Gone for good.
    Never,
}

impl Default for Survival {
    fn default() -> Self {
        Self {
            isolated: AtomicBool::new(false),
            allowed: AtomicBool::new(false),
            cut: AtomicU8::new(0),
            right: Mutex::new(Right::After { view: 0, term: None }),
        }
    }
}

impl Survival {
    pub fn is_isolated(&self) -> bool {
        self.isolated.load(Ordering::SeqCst) || PROCESS_ISOLATED.load(Ordering::SeqCst)
    }

    pub fn set_isolated(&self, isolated: bool) {
        self.isolated.store(isolated, Ordering::SeqCst);
    }

    pub fn allow(&self, allowed: bool) {
        self.allowed.store(allowed, Ordering::Relaxed);
    }

    pub fn is_allowed(&self) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Gives the right up until the group has taken this process in again.
    pub fn forswear(&self, applied: &Applied, term: Term) {
        let mut right = self.right.lock();
        if let Right::After { view, term: before } = &mut *right {
            *view = applied.view.number.max(*view);
            *before = Some(term).max(*before);
        }
    }

    /// Gives it up for good.
    pub fn leave(&self) {
        *self.right.lock() = Right::Never;
    }

    fn has_right(&self, applied: &Applied, own: (MemberId, u32)) -> bool {
        let here = applied.view.members.iter().any(|m| (m.id, m.incarnation) == own);
        match *self.right.lock() {
            Right::Never => false,
            Right::After { view, term } => {
                here && applied.view.number > view
                    && term.is_none_or(|term| applied.last.term > term)
            }
        }
    }
}

impl Member {
    /// Cuts this member off from the others, or lets it go on.
    pub fn isolate(&self, isolated: bool) {
        if isolated {
            self.forswear();
        }
        self.survival.set_isolated(isolated);
        self.notices.wake();
    }

    /// Before anything that says so leaves this process.
    pub fn forswear(&self) {
        let applied = self.progress.applied();
        let term = self.core.lock().consensus.status(self.now_ms()).term;
        self.survival.forswear(&applied, term);
    }

    /// Ends all connections once after being isolated. Called by the keeper, again and again.
    pub fn keep_isolated(&self) {
        let isolated = self.survival.is_isolated();
        let was = self.survival.cut.swap(isolated.into(), Ordering::SeqCst) != 0;
        if isolated {
            if !was {
                self.forswear();
                self.log(LogLevel::Info, "isolated: all connections are cut".into());
                self.acceptor.connections.cut();
            }
            // Those that others open are refused; one that was being opened here is caught so.
            let peers: Vec<_> = self.core.lock().peers.values().cloned().collect();
            peers.iter().for_each(|peer| peer.break_connection());
        } else if was {
            self.log(LogLevel::Info, "no longer isolated".into());
        }
    }

    /// The other of two members, if this one may leave it behind now; or why not.
    fn abandonable(&self, driver: &Driver) -> Result<MemberId, String> {
        let applied = self.progress.applied();
        let others: Vec<_> = driver.config.members.keys().filter(|id| **id != self.id).collect();
        let [other] = others[..] else {
            return Err(format!(
                "the group has {} members, and what only the missing ones have would be lost; \
                 bring back so many that a majority is there",
                driver.config.members.len()
            ));
        };
        let known = driver.peers.get(other).map(|peer| peer.known());
        match known {
            Some(known) if known.is_connected() => {
                return Err(format!(
                    "member {other} is connected: there is a quorum, or there will be"
                ));
            }
            Some(known) if known.refused => {}
            _ => {
                return Err(format!(
                    "member {other} cannot be reached, but its process may be running and cut off, \
                     and go on as well: stop it, so that its host refuses connections"
                ));
            }
        }
        if self.is_leaving() || self.has_failed() || self.is_stopping() {
            return Err("this member is on its way out".into());
        }
        if !self.survival.has_right(&applied, (self.id, self.incarnation)) {
            return Err(format!(
                "this process has not been in the group since it was started or cut off: member \
                 {other} may have commits that it does not have"
            ));
        }
        Ok(*other)
    }

    /// Goes on alone if the option says so and it is safe. Called by the keeper.
    pub fn survive_if_allowed(&self, driver: &mut Driver) {
        if self.survival.is_allowed() && driver.config.members.len() == 2 {
            if let Ok(other) = self.abandonable(driver) {
                // A refusal by the core is repeated with every round: not a line each.
                let _refused = self.survive(driver, other);
            }
        }
    }

    /// Goes on alone at the operator's word.
    pub fn bootstrap(&self) -> Result<(), GroupError> {
        let refused = |reason| GroupError::NotAlone { node: self.options.name.clone(), reason };
        self.with_core(|driver| {
            let other = self.abandonable(driver).map_err(refused)?;
            self.survive(driver, other).map_err(refused)
        })
    }

    fn survive(&self, driver: &mut Driver, other: MemberId) -> Result<(), String> {
        driver.step(self, Event::SurviveAlone(other)).map_err(|e| e.to_string())?;
        self.log(
            LogLevel::Info,
            format!(
                "member {other} is gone: going on without it. Nothing acknowledged is lost; it is \
                 taken in again when it returns"
            ),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{View, ViewMember};
    use quorate_consensus::LogPosition;

    fn applied(number: u64, incarnation: u32, term: Term) -> Applied {
        let member = ViewMember { id: MemberId(1), incarnation, ..ViewMember::default() };
        Applied {
            last: LogPosition { term, index: 9 },
            view: View { number, members: vec![member], ..View::default() },
            started: true,
        }
    }

    #[test]
    fn only_a_view_with_the_present_process_gives_the_right() {
        let survival = Survival::default();
        let own = (MemberId(1), 2);
        assert!(!survival.has_right(&applied(4, 1, 3), own), "a former process");
        assert!(survival.has_right(&applied(5, 2, 3), own));
    }

    #[test]
    fn who_was_isolated_needs_a_later_view_in_a_later_term() {
        let survival = Survival::default();
        let own = (MemberId(1), 2);
        survival.forswear(&applied(5, 2, 3), 3);
        assert!(!survival.has_right(&applied(5, 2, 3), own));
        assert!(!survival.has_right(&applied(6, 2, 3), own), "made before it was cut off");
        assert!(survival.has_right(&applied(7, 2, 4), own));
        survival.leave();
        assert!(!survival.has_right(&applied(8, 2, 5), own));
    }
}
