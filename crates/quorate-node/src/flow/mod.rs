//! Flow control, off by default: this node's clients are slowed down while some member falls behind, so that it does
//! not fall behind further. Nobody is ever stopped: see [`quota`].
//!
//! Invariant: while no quota is in force, a write set pays for nothing but two counters.

mod quota;

pub use quota::Limits;

use crate::blocking::{now, Condvar, Mutex};
use quorate_live::ServerStanding;
use quota::Quota;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// So much of what was not used may be used at once.
const BURST: Duration = Duration::from_millis(50);

pub struct Flow {
    /// No quota is in force.
    open: AtomicBool,
    /// Write sets that were let through, ever.
    passed: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    limits: Option<Limits>,
    quota: Quota,
    /// Write sets that had passed by the end of the last period.
    passed: u64,
    /// Between two write sets, where a quota is in force.
    interval: Option<Duration>,
    /// When the next one is due.
    next: Instant,
    waiting: u32,
    /// Since when somebody waits.
    waits_since: Instant,
    counts: Counts,
}

/// Since they began anew.
#[derive(Clone, Copy)]
struct Counts {
    since: Instant,
    paused: Duration,
    own_periods: u64,
    periods: u64,
    own_now: bool,
}

/// What is shown of it, under the names of others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowReport {
    /// How long somebody waited here, and as a share of the time.
    pub paused: Duration,
    pub paused_share: f64,
    /// Periods in which this node was too far behind; and those in which its clients had a quota.
    pub own_periods: u64,
    pub periods: u64,
    /// A quota is in force; this node is too far behind.
    pub active: bool,
    pub requested: bool,
}

impl State {
    /// One more waits, or one fewer.
    fn waits(&mut self, at: Instant, change: i32) {
        if self.waiting == 0 {
            self.waits_since = at;
        }
        self.waiting = self.waiting.saturating_add_signed(change);
        if self.waiting == 0 {
            self.counts.paused += at.saturating_duration_since(self.waits_since);
        }
    }
}

impl Flow {
    pub fn new(limits: Option<Limits>) -> Self {
        let at = now();
        let zero = Duration::ZERO;
        let counts = Counts { since: at, paused: zero, own_periods: 0, periods: 0, own_now: false };
        Self {
            open: AtomicBool::new(true),
            passed: AtomicU64::new(0),
            state: Mutex::new(State {
                limits,
                quota: Quota::default(),
                passed: 0,
                interval: None,
                next: at,
                waiting: 0,
                waits_since: at,
                counts,
            }),
            changed: Condvar::new(),
        }
    }

    /// The operator has changed something. `None`: it is off.
    pub fn configure(&self, limits: Option<Limits>) {
        let mut state = self.state.lock();
        if state.limits != limits {
            state.limits = limits;
            if limits.is_none() {
                (state.quota, state.counts.own_now) = (Quota::default(), false);
                self.set_quota(&mut state, None);
            }
        }
    }

    /// Write sets of this node's clients, for the others to know who writes.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Whether a write set may go on without waiting, which it then does.
    pub fn try_pass(&self) -> bool {
        let open = self.open.load(Ordering::Acquire);
        if open {
            self.passed.fetch_add(1, Ordering::Relaxed);
        }
        open
    }

    /// Waits until there is room for one more; false if `give_up` says so first. It is asked again at each
    /// [`Self::nudge`].
    pub fn pass(&self, give_up: impl Fn() -> bool) -> bool {
        let mut state = self.state.lock();
        let mut waits = false;
        let passes = loop {
            if give_up() {
                break false;
            }
            let Some(interval) = state.interval else { break true };
            let at = now();
            let due = state.next.max(at.checked_sub(BURST).unwrap_or(at));
            if due <= at {
                state.next = due + interval;
                break true;
            }
            if !std::mem::replace(&mut waits, true) {
                state.waits(at, 1);
            }
            self.changed.wait_until(&mut state, due);
        };
        if waits {
            state.waits(now(), -1);
        }
        self.passed.fetch_add(passes.into(), Ordering::Relaxed);
        passes
    }

    /// Those who wait look again, whether they still should.
    pub fn nudge(&self) {
        if !self.open.load(Ordering::Acquire) {
            let _state = self.state.lock();
            self.changed.notify_all();
        }
    }

    /// A period of a second has ended: how all members stand, this one first.
    pub fn period(&self, all: &[ServerStanding]) {
        let mut state = self.state.lock();
        let Some(limits) = state.limits else { return };
        let passed = self.passed();
        let used = passed.saturating_sub(std::mem::replace(&mut state.passed, passed));
        // Who waits would use more.
        let used = if state.waiting > 0 { u64::MAX } else { used };
        let size = state.quota.next(limits, all, used);
        let behind = all.first().is_some_and(|own| limits.are_held_by(own));
        state.counts.own_now = behind;
        state.counts.own_periods += u64::from(behind);
        state.counts.periods += u64::from(size.is_some());
        self.set_quota(&mut state, size);
    }

    fn set_quota(&self, state: &mut State, size: Option<u64>) {
        let had = state.interval.is_some();
        state.interval = size.map(|size| Duration::from_secs(1) / size.clamp(1, 1 << 30) as u32);
        if !had {
            state.next = now();
        }
        self.open.store(size.is_none(), Ordering::Release);
        // Those who wait go by the new pace.
        self.changed.notify_all();
    }

    pub fn report(&self) -> FlowReport {
        let state = self.state.lock();
        let at = now();
        let Counts { since, paused, own_periods, periods, own_now } = state.counts;
        let waits = match state.waiting {
            0 => Duration::ZERO,
            _ => at.saturating_duration_since(state.waits_since),
        };
        let (paused, time) = (paused + waits, at.saturating_duration_since(since));
        let paused_share = paused.as_secs_f64() / time.as_secs_f64().max(1e-9);
        let (active, requested) = (state.interval.is_some(), own_now);
        FlowReport { paused, paused_share, own_periods, periods, active, requested }
    }

    /// Begins to count anew.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        let at = now();
        let Counts { own_now, .. } = state.counts;
        let paused = Duration::ZERO;
        state.counts = Counts { since: at, paused, own_periods: 0, periods: 0, own_now };
        state.waits_since = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::MemberId;
    use quorate_live::Standing;

    const LIMITS: Limits = Limits { certified: 100, applied: 100 };

    fn behind(member: u128, applied: i64, certified: i64, written: u64) -> ServerStanding {
        let standing =
            Standing { synced: true, applied, certified, written, ..Standing::default() };
        ServerStanding { member: MemberId(member), standing, uncertified: 0 }
    }

    /// Two periods of a member that applies 50 write sets in each, and has too many left.
    fn held_back(flow: &Flow) {
        flow.period(&[behind(1, 0, 1_000, 0), behind(2, 0, 1_000, 0)]);
        flow.period(&[behind(1, 1_000, 2_000, 9), behind(2, 50, 2_000, 0)]);
    }

    #[test]
    fn while_a_member_is_behind_write_sets_keep_a_pace_and_pass_freely_afterwards() {
        let flow = Flow::new(Some(LIMITS));
        assert!(flow.try_pass() && !flow.report().active);
        held_back(&flow);
        assert!(!flow.try_pass() && flow.report().active);
        let began = now();
        // 45 a second.
        assert!((0..10).all(|_| flow.pass(|| false)));
        let took = now().saturating_duration_since(began);
        assert!(took > Duration::from_millis(100) && took < Duration::from_secs(20), "{took:?}");
        assert!(flow.report().paused > Duration::from_millis(100));
        flow.configure(None);
        assert!(flow.try_pass() && !flow.report().active);
        assert_eq!(flow.passed(), 12);
    }

    #[test]
    fn whoever_waits_gives_up_at_a_nudge_and_goes_on_at_the_new_pace_when_that_changes() {
        let flow = Flow::new(Some(Limits { applied: 20, certified: 1 << 40 }));
        // One write set a second.
        held_back(&flow);
        flow.period(&[behind(1, 2_000, 3_000, 18), behind(2, 50, 3_000, 0)]);
        let given_up = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let began = now();
            let patient = threads.spawn(|| (0..40).all(|_| flow.pass(|| false)));
            let other = threads.spawn(|| loop {
                if !flow.pass(|| given_up.load(Ordering::SeqCst)) {
                    break;
                }
            });
            while flow.state.lock().waiting < 2 {
                std::thread::yield_now();
            }
            given_up.store(true, Ordering::SeqCst);
            flow.nudge();
            other.join().expect("no panic");
            flow.configure(None);
            assert!(patient.join().expect("no panic"));
            assert!(now().saturating_duration_since(began) < Duration::from_secs(20));
        });
    }

    #[test]
    fn without_limits_nothing_is_counted_or_held_back() {
        let flow = Flow::new(None);
        held_back(&flow);
        assert!(flow.try_pass());
        let report = flow.report();
        assert_eq!((report.periods, report.own_periods, report.active), (0, 0, false));
    }
}
