//! What stands above a member: a state machine that keeps what it has seen, and who hears what happens.

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::{Index, MemberId, Term};
use quorate_live::{
    Committed, Frozen, Group, LogLevel, Observer, Rehearsal, ServerReport, StateMachine, View,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// What one member's state machine has seen: the distinct proposals, in order.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub applied: Vec<String>,
    pub(super) seen: BTreeSet<String>,
    pub duplicates: usize,
    pub views: Vec<(Index, View)>,
    pub last: Index,
}

#[derive(Default)]
pub struct Shared {
    pub state: Mutex<State>,
    pub(super) changed: Condvar,
    pub(super) group: Mutex<Option<Arc<Group>>>,
    pub(super) own: Mutex<String>,
    pub(super) panic: AtomicBool,
    pub(super) refresh: AtomicBool,
    /// On which thread each proposal was applied.
    pub threads: Mutex<Vec<String>>,
    /// What the host is said to be in the middle of; 0: nothing.
    pub commit: AtomicI64,
    /// Up to which index the database is said to have everything.
    pub database: AtomicU64,
    /// How the server is said to be that it is part of.
    pub server: Mutex<Option<ServerReport>>,
    pub leaders: Mutex<Vec<(Term, Option<MemberId>)>>,
    pub primary: Mutex<Vec<bool>>,
    pub fatal: Mutex<Vec<String>>,
    /// Those of them for which it is to take leave.
    pub stuck: Mutex<Vec<String>>,
    pub passed: AtomicU64,
    pub lines: Mutex<Vec<(LogLevel, String)>>,
}

impl Shared {
    pub fn panic_on_next(&self) {
        self.panic.store(true, Ordering::SeqCst);
    }

    /// It asks for another view while it is given the next one.
    pub fn refresh_in_next_view(&self) {
        self.refresh.store(true, Ordering::SeqCst);
    }
}

pub(super) struct Machine(pub(super) Arc<Shared>);

impl StateMachine for Machine {
    fn apply(&mut self, entry: Committed) -> Result<(), String> {
        assert!(!self.0.panic.load(Ordering::SeqCst), "as the test wants it");
        let mut state = self.0.state.lock();
        match entry {
            Committed::Data { index, data, .. } => {
                assert!(index > state.last, "index {index} after {}", state.last);
                state.last = index;
                let thread = std::thread::current().name().unwrap_or_default().to_owned();
                self.0.threads.lock().push(thread);
                let text = String::from_utf8(data[..data.len().min(64)].to_vec()).unwrap();
                let text = text.trim_end_matches('.').to_owned();
                if state.seen.insert(text.clone()) {
                    if let Some(serial) = text.strip_prefix(&*self.0.own.lock()) {
                        let group = self.0.group.lock().clone();
                        if let Some(group) = group {
                            group.decided(serial.parse().unwrap());
                        }
                    }
                    state.applied.push(text);
                } else {
                    state.duplicates += 1;
                }
            }
            Committed::View { index, view } => {
                assert!(index > state.last);
                state.last = index;
                if let Some((_, before)) = state.views.last() {
                    assert_eq!(view.number, before.number + 1);
                }
                state.views.push((index, view));
                if self.0.refresh.swap(false, Ordering::SeqCst) {
                    self.0.group.lock().as_ref().unwrap().refresh_view();
                }
            }
        }
        drop(state);
        self.0.changed.notify_all();
        Ok(())
    }

    fn is_brief(&self, _data: &Bytes) -> bool {
        true
    }

    fn is_unlogged(&self, before: bool) -> bool {
        before && self.0.database.load(Ordering::SeqCst) > self.0.state.lock().last
    }

    fn rehearsal(&mut self) -> Option<Box<dyn Rehearsal>> {
        let database = self.0.database.load(Ordering::SeqCst);
        let is_behind = database > self.0.state.lock().last;
        is_behind.then(|| Box::new(Rehearsed { database }) as Box<dyn Rehearsal>)
    }

    fn passed(&mut self, index: Index) {
        self.0.passed.store(index, Ordering::SeqCst);
        self.0.changed.notify_all();
    }

    fn freeze(&mut self) -> Frozen {
        let applied = self.0.state.lock().applied.clone();
        Box::new(move || Bytes::from(applied.join("\n")))
    }

    fn restore(&mut self, index: Index, snapshot: Bytes) -> Result<(), String> {
        let text = String::from_utf8(snapshot.to_vec()).map_err(|error| error.to_string())?;
        let applied: Vec<_> = text.lines().map(str::to_owned).collect();
        let seen = applied.iter().cloned().collect();
        *self.0.state.lock() = State { applied, seen, last: index, ..State::default() };
        self.0.changed.notify_all();
        Ok(())
    }
}

struct Rehearsed {
    database: Index,
}

impl Rehearsal for Rehearsed {
    fn reaches_database(&mut self, entry: Committed) -> Result<bool, String> {
        let (Committed::Data { index, .. } | Committed::View { index, .. }) = entry;
        Ok(index >= self.database)
    }
}

pub(super) struct Ear(pub(super) Arc<Shared>);

impl Observer for Ear {
    fn may_propose(&self, _member: MemberId, proposal: &Bytes) -> bool {
        !proposal.starts_with(b"forged")
    }
    fn commit_under_way(&self) -> Option<i64> {
        Some(self.0.commit.load(Ordering::SeqCst)).filter(|commit| *commit != 0)
    }
    fn server(&self) -> Option<ServerReport> {
        self.0.server.lock().clone()
    }
    fn leader(&self, term: Term, leader: Option<MemberId>, _leads: bool) {
        self.0.leaders.lock().push((term, leader));
        self.0.changed.notify_all();
    }
    fn primary(&self, primary: bool) {
        self.0.primary.lock().push(primary);
        self.0.changed.notify_all();
    }
    fn stuck(&self, message: String) {
        self.0.stuck.lock().push(message.clone());
        self.fatal(message);
    }
    fn fatal(&self, message: String) {
        if std::env::var_os("QUORATE_TEST_LOG").is_some() {
            eprintln!("FATAL {message}");
        }
        self.0.fatal.lock().push(message);
    }
    fn log(&self, level: LogLevel, message: String) {
        if std::env::var_os("QUORATE_TEST_LOG").is_some() {
            eprintln!("{:?} {level:?} {}", Instant::now(), message);
        }
        self.0.lines.lock().push((level, message));
    }
}
