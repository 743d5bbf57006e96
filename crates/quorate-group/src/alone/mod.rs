//! Being cut off, and going on alone: `gmcast.isolate`, `pc.ignore_sb`, `pc.bootstrap`.
//!
//! A member of a group of two may go on alone when the other one's process is gone, if the
//! operator allows it beforehand (`pc.ignore_sb`) or asks for it (`pc.bootstrap`). That the member
//! has all that was committed follows from its being one of two voters (`core/alone.rs` of
//! quorate-consensus). What has to be seen to here is that not both do it.
//!
//! Invariants:
//! - the other one is left behind only if its connection has ended *and* its host has refused a
//!   new one (nobody listens there: the process is gone), or it has answered that it is isolated.
//!   Silence is never enough: over a cut network both might think so. (A firewall that answers in a
//!   host's name can make this wrong, which is why the option is off unless it is set);
//! - it was dialled for that after the last connection with it, and after this member's log last grew
//!   by what another one sent: in that may be a view with a later process of it, which has the right
//!   to go on alone by it. (Every such view that was committed is in this log, like all else, see
//!   `core/alone.rs`; those that this member made have in them who was connected then);
//! - who is isolated, or was started just now, has no right to go on alone. It gets the right by a
//!   view with its present process in it, made in a later term than the one it was cut off in: by
//!   then it has all that the other one may have done without it;
//! - a member takes that right from itself *before* it says that it is isolated;
//! - who wants to leave loses the right for good: the others may have let it go already.
//!
//! More than one member missing, or one of more than two, is refused: some acknowledged commits may
//! be on the missing ones only.

use crate::driver::{Driver, Peer};
use crate::input::Applied;
use crate::note::EventKind;
use crate::output::{Link, LogLevel, Output};
use quorate_consensus::{Event, MemberId, Message, MessageBody, Term};

#[derive(Default)]
pub(crate) struct Alone {
    /// Cut off by an operator; and the same for all members of the process.
    isolated: bool,
    process_isolated: bool,
    /// Connections were cut.
    cut: bool,
    /// `pc.ignore_sb`.
    allowed: bool,
    right: Right,
    /// When another member last sent something for the log.
    told_ms: Option<u64>,
}

/// The right to go on alone.
enum Right {
    /// With a view that has this process in it, of a later number and, after an isolation, a later
    /// term.
    After { view: u64, term: Option<Term> },
    /// Gone for good.
    Never,
}

impl Default for Right {
    fn default() -> Self {
        Right::After { view: 0, term: None }
    }
}

impl Alone {
    pub fn is_isolated(&self) -> bool {
        self.isolated || self.process_isolated
    }

    /// Cuts this member off from the others, or lets it go on.
    pub fn isolate(&mut self, isolated: bool, driver: &mut Driver, out: &mut Output) {
        self.isolated = isolated;
        self.keep_isolated(driver, out);
    }

    /// The same, for all members of the process.
    pub fn isolate_process(&mut self, isolated: bool, driver: &mut Driver, out: &mut Output) {
        if isolated != self.process_isolated {
            self.process_isolated = isolated;
            self.keep_isolated(driver, out);
        }
    }

    pub fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
    }

    /// Another member sent this.
    pub fn received(&mut self, message: &Message, now_ms: u64) {
        if matches!(&message.body, MessageBody::Append { entries, .. } if !entries.is_empty()) {
            self.told(now_ms);
        }
    }

    /// Another member sent something for the log.
    pub fn told(&mut self, now_ms: u64) {
        self.told_ms = Some(now_ms);
    }

    /// Gives the right up for good.
    pub fn leave(&mut self) {
        self.right = Right::Never;
    }

    /// Goes on alone if the option says so and it is safe.
    pub fn go_on_if_allowed(&self, driver: &mut Driver, out: &mut Output) {
        if self.allowed && driver.config.members.len() == 2 {
            // A refusal by the core is repeated with every round: not a line each.
            let _refused = self.go_on(driver, out);
        }
    }

    /// Goes on alone, or says why not.
    pub fn go_on(&self, driver: &mut Driver, out: &mut Output) -> Result<(), String> {
        let other = self.abandonable(driver)?;
        driver.step(Event::ContinueAlone(other), out).map_err(|error| error.to_string())?;
        let what = format!(
            "{} goes on alone: the process of {}, the other member, has ended",
            driver.options.name,
            driver.name_of(other)
        );
        driver.saw(EventKind::Membership, what, None);
        let line = format!(
            "member {other} is gone: going on without it. Nothing acknowledged is lost; it is \
             taken in again when it returns"
        );
        out.log(LogLevel::Info, line);
        Ok(())
    }

    /// Ends all connections once after being isolated, and dials nobody until that is over.
    fn keep_isolated(&mut self, driver: &mut Driver, out: &mut Output) {
        let isolated = self.is_isolated();
        if std::mem::replace(&mut self.cut, isolated) == isolated {
            return;
        }
        driver.due = true;
        if isolated {
            self.renounce(&driver.applied, driver.status().term);
            out.log(LogLevel::Info, "isolated: all connections are cut".into());
            driver.peers.hang_up(out);
            out.links.push(Link::CutAll);
        } else {
            out.log(LogLevel::Info, "no longer isolated".into());
            if !driver.failed {
                driver.peers.dial_again(out);
            }
        }
    }

    /// Gives the right up until the group has taken this process in again. Before anything that
    /// says so leaves this process.
    pub fn renounce(&mut self, applied: &Applied, term: Term) {
        if let Right::After { view, term: before } = &mut self.right {
            *view = applied.view.number.max(*view);
            *before = Some(term).max(*before);
        }
    }

    fn has_right(&self, applied: &Applied, own: (MemberId, u32)) -> bool {
        let here = applied.view.members.iter().any(|m| (m.id, m.incarnation) == own);
        match self.right {
            Right::Never => false,
            Right::After { view, term } => {
                here && applied.view.number > view
                    && term.is_none_or(|term| applied.last.term > term)
            }
        }
    }

    /// The other of two members, if this one may leave it behind now; or why not.
    fn abandonable(&self, driver: &Driver) -> Result<MemberId, String> {
        let others: Vec<_> = driver.config.members.keys().filter(|id| **id != driver.id).collect();
        let [other] = others[..] else {
            return Err(format!(
                "the group has {} members, and what only the missing ones have would be lost; \
                 bring back so many that a majority is there",
                driver.config.members.len()
            ));
        };
        match driver.peers.get(*other) {
            Some(peer) if peer.is_connected() => {
                return Err(format!(
                    "member {other} is connected: there is a quorum, or there will be"
                ));
            }
            Some(Peer { absent: Some(dialled_ms), last_contact_ms, .. })
                if dialled_ms > last_contact_ms && Some(*dialled_ms) > self.told_ms => {}
            _ => {
                return Err(format!(
                    "member {other} cannot be reached, but its process may be running and cut off, \
                     and go on as well: stop it, so that its host refuses connections"
                ));
            }
        }
        if driver.leaving || driver.failed || driver.closed {
            return Err("this member is on its way out".into());
        }
        if !self.has_right(&driver.applied, (driver.id, driver.incarnation)) {
            return Err(format!(
                "this process has not been in the group since it was started or cut off: member \
                 {other} may have commits that it does not have"
            ));
        }
        Ok(*other)
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
        }
    }

    #[test]
    fn only_a_view_with_the_present_process_gives_the_right() {
        let alone = Alone::default();
        let own = (MemberId(1), 2);
        assert!(!alone.has_right(&applied(4, 1, 3), own), "a former process");
        assert!(alone.has_right(&applied(5, 2, 3), own));
    }

    #[test]
    fn who_was_isolated_needs_a_later_view_in_a_later_term() {
        let mut alone = Alone::default();
        let own = (MemberId(1), 2);
        alone.renounce(&applied(5, 2, 3), 3);
        assert!(!alone.has_right(&applied(5, 2, 3), own));
        assert!(!alone.has_right(&applied(6, 2, 3), own), "made before it was cut off");
        assert!(alone.has_right(&applied(7, 2, 4), own));
        alone.leave();
        assert!(!alone.has_right(&applied(8, 2, 5), own));
    }
}
