//! From joined to synced: when a node has caught up with its group, and when it may fall behind on purpose.
//!
//! A joined node has caught up once it has applied what was ordered when it came (its *target*), and has
//! little more to apply. A desynced one is not to count as synced until it is told to.

use crate::blocking::{self, Mutex};
use crate::link::Link;
use crate::local::{Local, LocalState};
use crate::order::Event;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A joined node with at most this many write sets waiting counts as synced.
const SYNCED_LAG_MAX: i64 = 64;

/// Between two reports of a node that catches up.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

pub struct CatchUp {
    local: Arc<Local>,
    /// The seqno that a joined node has to reach to be synced.
    target: AtomicI64,
    /// Where catching up began, and when it was last spoken of.
    reported: Mutex<Option<(i64, Instant)>>,
    /// The seqno at which contact with the quorum was lost.
    cut_off: AtomicI64,
    /// How often it was told to be desynced, less those taken back.
    desynced: AtomicU32,
    /// It sends its state: it stays a donor until that is over.
    donates: AtomicBool,
    /// It is behind, and nothing waits in the queue: its own sessions are, and no event comes after them.
    sessions_behind: AtomicBool,
}

impl CatchUp {
    pub fn new(local: Arc<Local>) -> Self {
        Self {
            local,
            target: AtomicI64::new(i64::MAX),
            reported: Mutex::new(None),
            cut_off: AtomicI64::new(i64::MAX),
            desynced: AtomicU32::new(0),
            donates: AtomicBool::new(false),
            sessions_behind: AtomicBool::new(false),
        }
    }

    /// The seqno that a joined node has to reach to be synced.
    pub fn set_target(&self, seqno: i64) {
        self.target.store(seqno, Ordering::Relaxed);
        *self.reported.lock() = None;
    }

    /// Contact with the quorum was lost: whoever was desynced starts in step with those it comes back to.
    pub fn cut_off(&self, seqno: i64) {
        self.desynced.store(0, Ordering::Release);
        self.cut_off.store(seqno, Ordering::Relaxed);
    }

    /// What this node missed while it was cut off from the group that it is back in.
    pub fn say_missed_since_cut_off(&self, view: i64) {
        self.say_missed(self.cut_off.load(Ordering::Relaxed), view);
    }

    /// What this node missed between `from` and its new view, in the words that people search for.
    pub fn say_missed(&self, from: i64, view: i64) {
        let (first, last) = (from + 1, view - 1);
        if first <= last {
            self.local.info(&format!(
                "Receiving IST: {} events, seqnos {first}-{last}, from the group's log",
                last - from
            ));
        }
    }

    /// Once a joined node has caught up, it is to be synced; the turn of that comes with the queue.
    pub fn check(&self, link: &Link) {
        if self.local.state() != LocalState::Joined {
            return;
        }
        if self.has_caught_up(link) {
            return self.local.queue.push(Event::Synced);
        }
        if self.backlog(link) > SYNCED_LAG_MAX && self.local.queue.len() == 0 {
            // Before the last look: no session ends unseen in between.
            self.sessions_behind.store(true, Ordering::SeqCst);
            self.session_ended();
        }
        self.tell_progress(link);
    }

    /// At the end of what a session of a joined node has done.
    pub fn session_ended(&self) {
        let is_behind = self.sessions_behind.load(Ordering::SeqCst);
        if is_behind
            && self.local.link().is_some_and(|link| self.has_caught_up(&link))
            && self.sessions_behind.swap(false, Ordering::SeqCst)
        {
            self.local.queue.push(Event::Synced);
        }
    }

    fn has_caught_up(&self, link: &Link) -> bool {
        let applied = self.local.apply.last_left();
        self.desync_count() == 0
            && applied >= self.target.load(Ordering::Relaxed)
            && self.backlog(link) <= SYNCED_LAG_MAX
    }

    /// Write sets that are ordered and not applied.
    fn backlog(&self, link: &Link) -> i64 {
        link.progress.seqno() - self.local.apply.last_left()
    }

    /// The turn of being synced has come. An error is the server's word that it cannot go on.
    #[allow(clippy::result_unit_err, reason = "as of the host's own")]
    pub fn synced(&self) -> Result<(), ()> {
        if self.local.state() != LocalState::Joined {
            return Ok(());
        }
        self.local.set_state(LocalState::Synced);
        self.local.tell_standing();
        self.local.host.synced()
    }

    /// Twice a second, for those who watch a node catch up.
    fn tell_progress(&self, link: &Link) {
        let (to, at) = (link.progress.seqno(), self.local.apply.last_left());
        if let Some(from) = self.report_due(at) {
            self.local.host.event(
                "progress",
                &format!(
                    "{{\"from\":{from},\"to\":{to},\"total\":{},\"done\":{},\"indefinite\":-1}}",
                    to - from,
                    at - from
                ),
            );
        }
    }

    /// Where catching up began, if it is time to tell how far it is.
    fn report_due(&self, at: i64) -> Option<i64> {
        let mut reported = self.reported.lock();
        let (from, said) = *reported.get_or_insert_with(|| (at, blocking::now()));
        let due = blocking::now() - said >= REPORT_INTERVAL;
        if due {
            *reported = Some((from, blocking::now()));
        }
        due.then_some(from)
    }

    pub fn desync_count(&self) -> u32 {
        self.desynced.load(Ordering::Acquire)
    }

    /// This node may fall behind: it says so, and nobody waits for it anyway.
    pub fn desync(&self) {
        self.desynced.fetch_add(1, Ordering::AcqRel);
        if matches!(self.local.state(), LocalState::Synced | LocalState::Joined) {
            self.local.set_state(LocalState::Donor);
        }
    }

    /// Without effect if it was not desynced (any more).
    pub fn resync(&self) {
        let before =
            self.desynced.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        if before == Ok(1)
            && self.local.state() == LocalState::Donor
            && !self.donates.load(Ordering::Acquire)
        {
            self.local.set_state(LocalState::Joined);
            if let Some(link) = self.local.link() {
                self.check(&link);
            }
        }
    }

    /// Whether this node sends its state from here on.
    pub fn set_donates(&self, donates: bool) {
        self.donates.store(donates, Ordering::Release);
    }

    /// What this node sent its state for is over: it catches up, unless it was desynced meanwhile.
    pub fn donated(&self, link: &Link) {
        self.set_donates(false);
        if self.local.state() == LocalState::Donor && self.desync_count() == 0 {
            self.local.set_state(LocalState::Joined);
            self.check(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn being_desynced_is_counted_and_ends_with_contact() {
        let catch_up = CatchUp::new(Arc::new(Local::for_tests()));
        catch_up.local.set_state(LocalState::Synced);
        catch_up.desync();
        catch_up.desync();
        catch_up.resync();
        assert_eq!(catch_up.local.state(), LocalState::Donor, "once more to go");
        catch_up.resync();
        assert_eq!(catch_up.local.state(), LocalState::Joined);
        catch_up.resync();
        assert_eq!(catch_up.desync_count(), 0, "it was not");
        catch_up.desync();
        catch_up.cut_off(7);
        assert_eq!(catch_up.desync_count(), 0);
    }

    #[test]
    fn who_sends_its_state_stays_a_donor_whoever_desynced_it_meanwhile() {
        let catch_up = CatchUp::new(Arc::new(Local::for_tests()));
        catch_up.local.set_state(LocalState::Donor);
        catch_up.set_donates(true);
        catch_up.desync();
        catch_up.resync();
        assert_eq!(catch_up.local.state(), LocalState::Donor);
        catch_up.set_donates(false);
        catch_up.desync();
        catch_up.resync();
        assert_eq!(catch_up.local.state(), LocalState::Joined);
    }
}
