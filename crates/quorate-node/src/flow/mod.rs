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

    /// Waits until it is the turn of one more, or `give_up` says so; it is asked again at each [`Self::nudge`].
    pub fn pass(&self, give_up: impl Fn() -> bool) {
        self.passed.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let Some(interval) = state.interval else { return };
        let came = now();
        let turn = state.next.max(came.checked_sub(BURST).unwrap_or(came));
        state.next = turn + interval;
        if turn <= came {
            return;
        }
        if state.waiting == 0 {
            state.waits_since = came;
        }
        state.waiting += 1;
        while state.interval.is_some() && !give_up() {
            if self.changed.wait_until(&mut state, turn).timed_out() {
                break;
            }
        }
        state.waiting -= 1;
        if state.waiting == 0 {
            let waited = now().saturating_duration_since(state.waits_since);
            state.counts.paused += waited;
        }
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
        let size = state.quota.next(limits, all, used);
        let behind = all.first().is_some_and(|own| limits.are_exceeded(own));
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
        if had && size.is_none() {
            self.changed.notify_all();
        }
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
        (0..10).for_each(|_| flow.pass(|| false));
        let took = now().saturating_duration_since(began);
        assert!(took > Duration::from_millis(100) && took < Duration::from_secs(2), "{took:?}");
        assert!(flow.report().paused > Duration::from_millis(100));
        flow.configure(None);
        assert!(flow.try_pass() && !flow.report().active);
        assert_eq!(flow.passed(), 12);
    }

    #[test]
    fn whoever_waits_goes_on_when_it_is_over_or_has_a_reason_to_give_up() {
        let flow = Flow::new(Some(Limits { applied: 100, certified: 1 << 40 }));
        held_back(&flow);
        let given_up = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let wait = || (0..60).for_each(|_| flow.pass(|| given_up.load(Ordering::SeqCst)));
            let waiting: Vec<_> = (0..3).map(|_| threads.spawn(wait)).collect();
            while flow.report().paused.is_zero() {
                std::thread::yield_now();
            }
            given_up.store(true, Ordering::SeqCst);
            flow.nudge();
            waiting.into_iter().for_each(|thread| thread.join().expect("no panic"));
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
