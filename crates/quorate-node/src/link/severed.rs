//! Streaming transactions that DDL ended, where a crash has undone that but not the DDL.
//!
//! DDL ends the streaming transactions that are in its way, on all servers, and nothing in the log says
//! which. After a crash their fragments may be in the database again, while the DDL, which was executed, is
//! passed over, and does not end them once more. Whatever writes their rows would wait for ever. So a node
//! notes which ones were open when such DDL ran, and after a crash has the server end, in its place, those
//! that the log shows to be over.
//!
//! Invariants:
//! - what was open is told by the log alone, from where this process began to read it;
//! - they end by process, with a view without it, and only if that process has left: then what it had open
//!   commits nowhere any more, and to end that too early does no harm. If one of before the DDL was committed
//!   after it, none of that process ends;
//! - while such a process is in the view, its transactions may go on or not, also some that were never noted.
//!   Then this node fetches the state: that process has it;
//! - a server ends only what is in the way of DDL there. Its own one that it has rolled back before is in
//!   nobody's way, but on the others it may be: those are noted for any DDL.

use super::giving_up::is_fragment;
use super::open_streams::OpenStreams;
use crate::blocking::Mutex;
use crate::start::isolated::Stream;
use quorate_certify::{flags, Header};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Severed {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By the log so far, and where there was DDL.
    streams: OpenStreams,
    /// What the former run noted, by the seqno of the DDL.
    noted: BTreeMap<i64, After>,
}

/// What the log has behind DDL.
struct After {
    /// Whose streaming transactions it may have ended.
    processes: BTreeSet<u128>,
    /// Those of them that have been in all views since.
    staying: BTreeSet<u128>,
    /// Who has committed one that began before it.
    committed: BTreeSet<u128>,
}

impl Severed {
    /// DDL above the position of the database, with what it may have ended; before any of the log is read.
    pub fn watch(&self, noted: BTreeMap<i64, BTreeSet<Stream>>) {
        let after = |(seqno, streams): (i64, BTreeSet<Stream>)| {
            let processes: BTreeSet<u128> = streams.into_iter().map(|(origin, _)| origin).collect();
            (seqno, After { staying: processes.clone(), processes, committed: BTreeSet::new() })
        };
        self.inner.lock().noted = noted.into_iter().map(after).collect();
    }

    /// This passed certification, or ends a streaming transaction; called in the order of the log.
    pub fn sequenced(&self, seqno: i64, header: &Header) {
        if is_fragment(header.flags) {
            let stream = (header.origin, header.trx_id);
            let mut inner = self.inner.lock();
            if !header.has(flags::TRX_END | flags::ROLLBACK) {
                inner.streams.goes_on(stream, seqno, header.has(flags::TRX_START));
                return;
            }
            let begun = inner.streams.ends(stream, seqno);
            if header.has(flags::TRX_END) {
                for (ddl, after) in inner.noted.range_mut(..seqno) {
                    if begun.is_none_or(|begun| begun < *ddl) {
                        after.committed.insert(header.origin);
                    }
                }
            }
        } else if header.has(flags::ISOLATION) {
            self.inner.lock().streams.ddl(seqno);
        }
    }

    /// The next view. One that equals the last ends all; any, what is of a process that is not in it.
    pub fn view(&self, seqno: i64, members: &[u128], equal: bool) {
        let stays = |origin: &u128| !equal && members.contains(origin);
        let mut inner = self.inner.lock();
        inner.streams.view(seqno, stays);
        inner.noted.range_mut(..seqno).for_each(|(_, after)| after.staying.retain(stays));
    }

    /// What this DDL, which runs now, found open of these processes; of all before it, it is forgotten.
    pub fn met(&self, ddl: i64, of: impl Fn(&u128) -> bool) -> BTreeSet<Stream> {
        self.inner.lock().streams.met(ddl, of)
    }

    /// Whether one that such DDL may have ended may also still go on.
    pub fn may_go_on(&self) -> bool {
        self.inner.lock().noted.values().any(|after| !after.staying.is_empty())
    }

    /// The processes whose streaming transactions the server shall end in place of this DDL.
    pub fn ended_by(&self, ddl: i64) -> BTreeSet<u128> {
        let inner = self.inner.lock();
        let Some(after) = inner.noted.get(&ddl) else { return BTreeSet::new() };
        let gone = &after.processes - &after.staying;
        &gone - &after.committed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DDL: i64 = 10;
    const FIRST: u32 = flags::TRX_START;
    const LAST: u32 = flags::TRX_END;

    fn comes(severed: &Severed, seqno: i64, (origin, trx_id): Stream, flags: u32) {
        let header = Header { flags, trx_id, ..Header::transaction(origin, 1, seqno - 1) };
        severed.sequenced(seqno, &header);
    }

    fn ddl_comes(severed: &Severed, seqno: i64) {
        comes(severed, seqno, (7, u64::MAX), FIRST | LAST | flags::ISOLATION);
    }

    fn met(severed: &Severed, ddl: i64) -> BTreeSet<Stream> {
        severed.met(ddl, |_| true)
    }

    fn set<T: Ord + Copy>(all: &[T]) -> BTreeSet<T> {
        all.iter().copied().collect()
    }

    /// After a restart: the DDL met these.
    fn watching(streams: &[Stream]) -> Severed {
        let severed = Severed::default();
        severed.watch(BTreeMap::from([(DDL, set(streams))]));
        severed.view(3, &[9], false);
        ddl_comes(&severed, DDL);
        severed
    }

    #[test]
    fn ddl_meets_what_is_open_by_the_log() {
        let severed = Severed::default();
        comes(&severed, 1, (7, 1), FIRST);
        comes(&severed, 2, (8, 1), FIRST);
        comes(&severed, 3, (8, 2), FIRST | LAST);
        ddl_comes(&severed, 4);
        comes(&severed, 5, (7, 1), LAST);
        ddl_comes(&severed, 6);
        comes(&severed, 7, (8, 1), flags::ROLLBACK);
        ddl_comes(&severed, 8);
        assert_eq!(met(&severed, 4), set(&[(7, 1), (8, 1)]), "their ends came later in the log");
        assert_eq!(met(&severed, 4), set(&[(7, 1), (8, 1)]));
        assert_eq!(met(&severed, 6), set(&[(8, 1)]));
        assert!(met(&severed, 8).is_empty() && met(&severed, 4).is_empty());
        for (members, equal, open) in [(&[7][..], false, vec![(7, 1)]), (&[7, 8], true, vec![])] {
            let severed = Severed::default();
            comes(&severed, 1, (7, 1), FIRST);
            comes(&severed, 2, (8, 1), FIRST);
            severed.view(3, members, equal);
            ddl_comes(&severed, 4);
            assert_eq!(met(&severed, 4), set(&open));
        }
    }

    #[test]
    fn what_is_of_a_process_that_has_left_ends_in_place_of_the_ddl() {
        let severed = watching(&[(7, 1), (8, 1)]);
        assert!(severed.may_go_on() && severed.ended_by(DDL).is_empty());
        severed.view(12, &[8, 9], false);
        assert!(severed.may_go_on());
        assert_eq!(severed.ended_by(DDL), set(&[7]));
        comes(&severed, 13, (8, 1), flags::ROLLBACK);
        assert!(severed.may_go_on(), "another one of its may be open, which was not noted");
        severed.view(14, &[9], false);
        assert!(!severed.may_go_on());
        assert_eq!(severed.ended_by(DDL), set(&[7, 8]));
        assert!(severed.ended_by(11).is_empty(), "nobody noted that this one ended any");

        let severed = watching(&[(7, 1)]);
        severed.view(12, &[7, 8], true);
        assert_eq!(severed.ended_by(DDL), set(&[7]), "equal views end all");
    }

    #[test]
    fn nothing_ends_of_a_process_that_committed_one_from_before() {
        for (trx, ends) in [(1, false), (5, false), (2, true)] {
            let severed = watching(&[(7, 1), (8, 1)]);
            comes(&severed, 11, (7, 2), FIRST);
            comes(&severed, 12, (7, 1), 0);
            comes(&severed, 13, (7, trx), LAST);
            comes(&severed, 14, (8, 1), 0);
            comes(&severed, 15, (8, 1), flags::ROLLBACK);
            severed.view(16, &[9], false);
            assert!(!severed.may_go_on());
            assert_eq!(severed.ended_by(DDL), if ends { set(&[7, 8]) } else { set(&[8]) });
        }
    }

    #[test]
    fn of_what_is_over_nothing_stays() {
        let severed = watching(&[(7, 1)]);
        for trx in 0..100 {
            let seqno = DDL + 3 * trx as i64;
            comes(&severed, seqno + 1, (8, trx), FIRST);
            ddl_comes(&severed, seqno + 2);
            comes(&severed, seqno + 3, (8, trx), LAST);
        }
        assert_eq!(severed.inner.lock().streams.kept(), 200, "DDL has yet to run");
        assert!(met(&severed, DDL + 301).is_empty());
        assert_eq!(severed.inner.lock().streams.kept(), 0);
    }
}
