//! Which streaming transactions are open by the log, and which ones were where DDL stands in it that has yet to run.
//!
//! A member makes both with one short entry each: thousands of statements of DDL may wait for their turn here, with a
//! hundred thousand streaming transactions open at each. So there is no set for each statement. Each streaming
//! transaction is kept once, with the seqnos between which it was open, and DDL looks for those around its own.
//!
//! Invariants:
//! - what DDL found open is the same whenever that is asked, until it was asked of later DDL: DDL runs in the order
//!   of the log;
//! - what has ended is kept only if DDL found it open that has yet to run, and no longer than until DDL behind its end
//!   runs. So beyond what is open, what is kept grows with the entries that wait for the appliers, as their queue does,
//!   and no faster.

use crate::start::isolated::Stream;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct OpenStreams {
    processes: BTreeMap<u128, Process>,
    /// DDL that found some open, and has yet to run.
    waiting: BTreeSet<i64>,
}

/// The streaming transactions of one process, by their numbers there.
#[derive(Default)]
struct Process {
    open: BTreeMap<u64, Open>,
    /// By the seqno of its end; with that since which it was open.
    ended: BTreeMap<(i64, u64), i64>,
}

#[derive(Clone, Copy)]
struct Open {
    /// The first fragment that came by.
    since: i64,
    /// There was none before.
    whole: bool,
}

impl OpenStreams {
    /// A fragment that does not end it; `first`: which begins it.
    pub fn goes_on(&mut self, stream: Stream, seqno: i64, first: bool) {
        if first {
            // One of this number that nothing has ended was another.
            self.ends(stream, seqno);
        }
        let (origin, trx_id) = stream;
        let open = &mut self.processes.entry(origin).or_default().open;
        open.entry(trx_id).or_insert(Open { since: seqno, whole: first });
    }

    /// Gives back the seqno of its first fragment, if that came by.
    pub fn ends(&mut self, (origin, trx_id): Stream, seqno: i64) -> Option<i64> {
        let process = self.processes.get_mut(&origin)?;
        let Open { since, whole } = process.open.remove(&trx_id)?;
        process.keep(trx_id, since, seqno, self.waiting.last());
        whole.then_some(since)
    }

    /// All end of a process that does not stay.
    pub fn view(&mut self, seqno: i64, stays: impl Fn(&u128) -> bool) {
        for (_, process) in self.processes.iter_mut().filter(|(origin, _)| !stays(origin)) {
            for (trx_id, Open { since, .. }) in std::mem::take(&mut process.open) {
                process.keep(trx_id, since, seqno, self.waiting.last());
            }
        }
        self.processes.retain(|_, process| !process.open.is_empty() || !process.ended.is_empty());
    }

    /// DDL, which will run.
    pub fn ddl(&mut self, seqno: i64) {
        if self.processes.values().any(|process| !process.open.is_empty()) {
            self.waiting.insert(seqno);
        }
    }

    /// What this DDL, which runs now, found open of these processes; of all before it, it is forgotten.
    pub fn met(&mut self, ddl: i64, of: impl Fn(&u128) -> bool) -> BTreeSet<Stream> {
        while self.waiting.first().is_some_and(|first| *first < ddl) {
            self.waiting.pop_first();
        }
        self.processes.values_mut().for_each(|process| process.forget(ddl));
        if !self.waiting.contains(&ddl) {
            return BTreeSet::new();
        }
        let asked = self.processes.iter().filter(|(origin, _)| of(origin));
        asked.flat_map(|(origin, process)| process.at(ddl).map(|id| (*origin, id))).collect()
    }
}

impl Process {
    fn keep(&mut self, trx_id: u64, since: i64, end: i64, last_ddl: Option<&i64>) {
        if last_ddl.is_some_and(|ddl| since < *ddl) {
            self.ended.insert((end, trx_id), since);
        }
    }

    fn forget(&mut self, ended_before: i64) {
        while self.ended.first_key_value().is_some_and(|((end, _), _)| *end < ended_before) {
            self.ended.pop_first();
        }
    }

    /// Of which nothing was forgotten that ended after it.
    fn at(&self, seqno: i64) -> impl Iterator<Item = u64> + '_ {
        let ended = self.ended.iter().map(|((_, trx_id), since)| (trx_id, since));
        let all = self.open.iter().map(|(trx_id, open)| (trx_id, &open.since)).chain(ended);
        all.filter(move |(_, since)| **since < seqno).map(|(trx_id, _)| *trx_id)
    }
}

#[cfg(test)]
impl OpenStreams {
    /// Records in memory.
    pub fn kept(&self) -> usize {
        let of = |process: &Process| process.open.len() + process.ended.len();
        self.waiting.len() + self.processes.values().map(of).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: fn(&u128) -> bool = |_| true;

    #[test]
    fn one_is_kept_once_however_much_ddl_found_it_open() {
        let mut streams = OpenStreams::default();
        (0..1000).for_each(|trx| streams.goes_on((7, trx), trx as i64, true));
        for ddl in (1000..5000).step_by(4) {
            streams.ddl(ddl);
            streams.goes_on((8, ddl as u64), ddl + 1, true);
            streams.ddl(ddl + 2);
            streams.ends((8, ddl as u64), ddl + 3);
        }
        assert_eq!(streams.kept(), 1000 + 1000 + 2000, "open, ended, DDL");
        streams.view(5000, |_| false);
        assert_eq!(streams.kept(), 1000 + 1000 + 2000, "all have ended");
        let met = streams.met(3002, ALL);
        assert_eq!((met.len(), met.last()), (1001, Some(&(8, 3000))));
        assert_eq!(streams.met(3002, |origin| *origin == 8).len(), 1);
        assert_eq!(streams.kept(), 1000 + 500 + 999, "half of it has run");
        assert_eq!(streams.met(4998, ALL).len(), 1001);
        assert!(streams.met(5001, ALL).is_empty());
        assert_eq!(streams.kept(), 0);
    }

    #[test]
    fn what_no_waiting_ddl_found_open_is_not_kept() {
        let mut streams = OpenStreams::default();
        streams.ddl(1);
        for seqno in (2..100).step_by(2) {
            streams.goes_on((7, seqno), seqno as i64, true);
            streams.ends((7, seqno), seqno as i64 + 1);
            streams.ends((8, seqno), seqno as i64 + 1);
        }
        assert_eq!(streams.kept(), 0);
    }

    /// A set for each DDL.
    #[derive(Default)]
    struct Plain {
        open: BTreeSet<Stream>,
        met: BTreeMap<i64, BTreeSet<Stream>>,
    }

    #[derive(Clone, Debug)]
    enum Step {
        GoesOn(Stream, bool),
        Ends(Stream),
        View(BTreeSet<u128>),
        Ddl,
        /// That one of those that wait, after those before it.
        Runs(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let stream = || (7u128..10, 0u64..4);
        let step = prop_oneof![
            4 => (stream(), any::<bool>()).prop_map(|(stream, first)| Step::GoesOn(stream, first)),
            3 => stream().prop_map(Step::Ends),
            1 => prop::collection::btree_set(7u128..10, 0..4).prop_map(Step::View),
            3 => Just(Step::Ddl),
            1 => (0usize..5).prop_map(Step::Runs),
        ];
        prop::collection::vec(step, 0..100)
    }

    proptest! {
        #[test]
        fn ddl_finds_what_a_set_of_its_own_would_have(steps in steps()) {
            let (mut streams, mut plain) = (OpenStreams::default(), Plain::default());
            let mut ran = 0;
            for (seqno, step) in (1..).zip(steps) {
                match step {
                    Step::GoesOn(stream, first) => {
                        streams.goes_on(stream, seqno, first);
                        plain.open.insert(stream);
                    }
                    Step::Ends(stream) => {
                        streams.ends(stream, seqno);
                        plain.open.remove(&stream);
                    }
                    Step::View(members) => {
                        streams.view(seqno, |origin| members.contains(origin));
                        plain.open.retain(|(origin, _)| members.contains(origin));
                    }
                    Step::Ddl => {
                        streams.ddl(seqno);
                        plain.met.insert(seqno, plain.open.clone());
                    }
                    Step::Runs(nth) => {
                        ran = plain.met.keys().nth(nth).copied().unwrap_or(ran);
                        plain.met = plain.met.split_off(&ran);
                    }
                }
                let met = plain.met.get(&ran).cloned().unwrap_or_default();
                let of_one = met.iter().filter(|(origin, _)| *origin == 8).copied().collect();
                prop_assert_eq!(streams.met(ran, |origin| *origin == 8), of_one);
                prop_assert_eq!(streams.met(ran, ALL), met);
            }
        }
    }
}
