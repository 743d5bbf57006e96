//! What every operation passes before it reaches the disk: is there power, is it frozen, what
//! fails at the moment; and syncs that take time.

use super::names::Ino;
use super::store::Store;
use super::Faults;
use fuser::{Errno, ReplyEmpty};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

pub(super) struct Gate {
    state: Mutex<State>,
    /// Power, faults or what is to be done later has changed.
    changed: Condvar,
}

pub(super) struct State {
    pub store: Store,
    pub faults: Faults,
    /// The mount that may use the disk: each power cut ends one. None without power.
    mount: Option<u64>,
    mounts: u64,
    sync_time: Duration,
    later: BinaryHeap<Reverse<Later>>,
    ending: bool,
    /// Operations that wait because the disk is frozen.
    held: usize,
}

/// A sync that takes time.
struct Later {
    due: Instant,
    mount: u64,
    target: Target,
    reply: ReplyEmpty,
}

#[derive(Clone, Copy)]
pub(super) enum Target {
    File(Ino),
    Directory,
}

impl Gate {
    pub fn new(store: Store, sync_time: Duration) -> Gate {
        let state = State {
            store,
            faults: Faults::default(),
            mount: None,
            mounts: 0,
            sync_time,
            later: BinaryHeap::new(),
            ending: false,
            held: 0,
        };
        Gate { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// For the lab itself: passes whatever is wrong with the disk.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// For an operation that came through `mount`: waits while the disk is frozen.
    pub fn enter(&self, mount: u64) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.state.lock();
        let is_held = |state: &mut State| state.mount == Some(mount) && state.faults.frozen;
        if is_held(&mut state) {
            state.held += 1;
            self.changed.notify_all();
            self.changed.wait_while(&mut state, is_held);
            state.held -= 1;
        }
        if state.mount == Some(mount) {
            Ok(state)
        } else {
            Err(Errno::EIO)
        }
    }

    /// Waits until the frozen disk holds an operation; `false` if `limit` passed first.
    pub fn wait_held(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        !self.changed.wait_while_for(&mut state, |state| state.held == 0, limit).timed_out()
    }

    /// Gives power; returns the number of the mount to be made.
    pub fn power_on(&self) -> u64 {
        let mut state = self.state.lock();
        state.mounts += 1;
        state.mount = Some(state.mounts);
        state.mounts
    }

    pub fn power_off(&self) {
        let mut state = self.state.lock();
        state.mount = None;
        for Reverse(later) in state.later.drain() {
            later.reply.error(Errno::EIO);
        }
        self.changed.notify_all();
    }

    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.state.lock();
        state.faults = faults;
        state.store.full = faults.full;
        self.changed.notify_all();
    }

    /// Syncs now or when its time has passed, and answers then.
    pub fn sync(&self, mount: u64, target: Target, reply: ReplyEmpty) {
        match self.enter(mount) {
            Err(error) => reply.error(error),
            Ok(mut state) => {
                let time = state.sync_time + state.faults.sync_delay;
                if time.is_zero() {
                    return state.sync(target, reply);
                }
                let due = Instant::now() + time;
                state.later.push(Reverse(Later { due, mount, target, reply }));
                self.changed.notify_all();
            }
        }
    }

    /// Carries out what takes time, until [`Gate::end`].
    pub fn run(&self) {
        // A sync is to take its time and not 50 µs more; without the right to ask for that, it does.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.state.lock();
        while !state.ending {
            let now = Instant::now();
            match state.later.peek() {
                _ if state.faults.frozen => self.changed.wait(&mut state),
                None => self.changed.wait(&mut state),
                Some(Reverse(first)) if first.due > now => {
                    let due = first.due;
                    self.changed.wait_until(&mut state, due);
                }
                Some(_) => {
                    let Some(Reverse(later)) = state.later.pop() else { continue };
                    if state.mount == Some(later.mount) {
                        state.sync(later.target, later.reply);
                    } else {
                        later.reply.error(Errno::EIO);
                    }
                }
            }
        }
    }

    pub fn end(&self) {
        self.state.lock().ending = true;
        self.changed.notify_all();
    }
}

impl State {
    pub fn is_mounted(&self, mount: u64) -> bool {
        self.mount == Some(mount)
    }

    fn sync(&mut self, target: Target, reply: ReplyEmpty) {
        let done = match target {
            Target::File(ino) if self.faults.sync_fails => {
                self.store.fail_sync(ino).and(Err(Errno::EIO))
            }
            Target::Directory if self.faults.sync_fails => Err(Errno::EIO),
            Target::File(ino) => self.store.sync(ino),
            Target::Directory => {
                self.store.commit_names();
                Ok(())
            }
        };
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.due == other.due
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Later) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}
