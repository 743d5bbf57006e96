//! Streaming transactions that DDL ended, where a crash has undone that but not the DDL.
//!
//! DDL ends the streaming transactions that are in its way, on all servers, and nothing in the log says
//! which. After a crash their fragments may be in the database again, while the DDL, which was executed, is
//! passed over, and does not end them once more. Whatever writes their rows would wait for ever. A node that
//! has noted such DDL has the server end all that are open in its place; but only where none of them can
//! have gone on.
//!
//! Invariants:
//! - all are ended only if every process that was in the view at the DDL has left, and no streaming
//!   transaction from before it was committed after it;
//! - while such a process is there, it may go on, and has the state: that is fetched instead;
//! - where no fragment has come by since the beginning of the log that was read, DDL ends no streaming
//!   transaction, and nothing of this is noted: most applications have none, and their DDL aborts
//!   transactions, too.

use super::giving_up::is_fragment;
use crate::blocking::Mutex;
use quorate_certify::{flags, Header};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub struct Severed {
    /// By the seqno of the DDL.
    noted: Mutex<BTreeMap<i64, After>>,
    /// There is such DDL. Set before any of the log is read.
    any: AtomicBool,
    /// A fragment has come by.
    streams: AtomicBool,
}

/// What the log has behind it.
#[derive(Default)]
struct After {
    /// Who has been in all views since.
    staying: BTreeSet<u128>,
    /// Streaming transactions from before that went on, by origin.
    went_on: BTreeSet<(u128, u64)>,
    /// One of them was committed.
    committed: bool,
}

impl Severed {
    /// DDL above the position of the database that ended what may come back; before any of it is read.
    pub fn watch(&self, noted: Vec<i64>) {
        self.any.store(!noted.is_empty(), Ordering::Release);
        *self.noted.lock() = noted.into_iter().map(|seqno| (seqno, After::default())).collect();
    }

    /// This passed certification, with `members` in the view; called in the order of the log.
    pub fn sequenced(&self, seqno: i64, header: &Header, members: impl Iterator<Item = u128>) {
        if is_fragment(header.flags) {
            self.streams.store(true, Ordering::Release);
        }
        if !self.any.load(Ordering::Acquire) {
            return; // nearly always
        }
        let mut noted = self.noted.lock();
        if header.has(flags::ISOLATION) {
            if let Some(after) = noted.get_mut(&seqno) {
                after.staying = members.collect();
            }
            return;
        }
        if header.has(flags::TRX_START | flags::ROLLBACK) {
            return;
        }
        let follows = header.last_seen.saturating_sub(i64::from(header.pa_range));
        let trx = (header.origin, header.trx_id);
        for (ddl, after) in noted.range_mut(..seqno) {
            if follows < *ddl || after.went_on.contains(&trx) {
                after.went_on.insert(trx);
                after.committed |= header.has(flags::TRX_END);
            }
        }
    }

    /// The next view.
    pub fn view(&self, members: &[u128]) {
        for after in self.noted.lock().values_mut() {
            after.staying.retain(|id| members.contains(id));
        }
    }

    /// Whether DDL may end streaming transactions at all.
    pub fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Acquire)
    }

    /// Whether one that was open at such DDL may still go on.
    pub fn may_go_on(&self) -> bool {
        self.noted.lock().values().any(|after| !after.staying.is_empty())
    }

    /// Whether the server shall end all streaming transactions that are open in place of this DDL.
    pub fn ends_all(&self, ddl: i64) -> bool {
        let noted = self.noted.lock();
        noted.get(&ddl).is_some_and(|after| after.staying.is_empty() && !after.committed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DDL: i64 = 10;

    fn fragment(trx_id: u64, flags: u32, last_seen: i64, follows: i64) -> Header {
        let pa_range = (last_seen - follows) as u32;
        Header { flags, pa_range, trx_id, ..Header::transaction(7, 1, last_seen) }
    }

    /// The DDL came when two processes were there.
    fn watching() -> Severed {
        let severed = Severed::default();
        severed.watch(vec![DDL]);
        let whole = flags::TRX_START | flags::TRX_END | flags::ISOLATION;
        severed.sequenced(DDL, &fragment(1, whole, 9, 9), [7, 8].into_iter());
        assert!(!severed.has_streams());
        severed
    }

    fn then(severed: &Severed, seqno: i64, header: Header) {
        severed.sequenced(seqno, &header, std::iter::empty());
    }

    #[test]
    fn all_end_once_everybody_has_left_who_could_go_on() {
        let severed = watching();
        assert!(severed.may_go_on() && !severed.ends_all(DDL));
        severed.view(&[8, 9]);
        assert!(severed.may_go_on() && !severed.ends_all(DDL));
        severed.view(&[7, 9]);
        assert!(!severed.may_go_on() && severed.ends_all(DDL), "who comes back is another");
        assert!(!severed.ends_all(9), "nobody noted that this one ended any");
    }

    #[test]
    fn none_end_if_one_from_before_was_committed_later() {
        let last = flags::TRX_END;
        for (went_on, fragments) in [
            (false, vec![fragment(2, flags::TRX_START, 11, 11), fragment(2, last, 13, 12)]),
            (false, vec![fragment(3, 0, 11, 4), fragment(3, flags::ROLLBACK, 13, 12)]),
            (false, vec![fragment(4, flags::TRX_START | last, 11, 4)]),
            (true, vec![fragment(5, last, 11, 4)]),
            (true, vec![fragment(6, 0, 11, 4), fragment(6, last, 13, 12)]),
        ] {
            let severed = watching();
            let streams = fragments.iter().any(|header| is_fragment(header.flags));
            (12..).zip(fragments).for_each(|(seqno, header)| then(&severed, seqno, header));
            assert_eq!(severed.has_streams(), streams);
            severed.view(&[]);
            assert_eq!(severed.ends_all(DDL), !went_on);
        }
    }
}
