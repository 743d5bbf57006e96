//! Whose streaming transactions may go on: who is in the view, and since when without a break.
//!
//! A streaming transaction is open on every server between its first fragment and its last, and
//! nothing in the log but a view ends it there when its server is gone: the servers roll back, on
//! their own, the open transactions of whoever is not in the view, and all open transactions when
//! two views in a row have the same members (such a pair stands for a time without a quorum). The
//! server that was dropped may be alive, and may propose the next fragment before it has heard of
//! the view. If that one passed, its commit would take effect there alone.
//!
//! Invariant: a fragment passes only if its origin has been in every view since the one before it
//! was sequenced (for a first fragment: since the origin stamped it), and no two of those views in
//! a row were equal. So whatever servers rolled back because of a view at seqno *v* cannot go on:
//! - its last fragment before *v* is below *v*, and `since` of its origin is at least *v* from then
//!   on (or the origin is not in the view at all): the next fragment fails, and with it, by
//!   induction, all later ones;
//! - a first fragment stamped before *v* and sequenced after it fails too, because its own server
//!   aborts at *v* whatever it has begun to stream by then, without another word to the others.
//!
//! A fragment says which one it follows: `last_seen - pa_range`. All of this is in the log.

use crate::{flags, Header, Seqno};

/// Members of the last view, by id, each with the seqno of the view since which it is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Members(Vec<(u128, Seqno)>);

impl Members {
    /// A view with `members` was sequenced at `seqno`.
    pub fn view(&mut self, seqno: Seqno, members: impl Iterator<Item = u128>) {
        let mut now: Vec<u128> = members.collect();
        now.sort_unstable();
        now.dedup();
        let same = now.iter().eq(self.0.iter().map(|(id, _)| id));
        let since = |id| self.since(id).filter(|_| !same).unwrap_or(seqno);
        self.0 = now.into_iter().map(|id| (id, since(id))).collect();
    }

    /// Whether a fragment may follow what came before it. True for what is no fragment.
    pub fn admit(&self, header: &Header) -> bool {
        let whole = flags::TRX_START | flags::TRX_END;
        if header.flags & whole == whole || header.has(flags::ISOLATION | flags::ROLLBACK) {
            return true;
        }
        let follows = match (header.has(flags::TRX_START), header.pa_range) {
            (true, _) => header.last_seen,
            (false, Header::PA_RANGE_ANY) => return false,
            (false, range) => header.last_seen.saturating_sub(Seqno::from(range)),
        };
        self.since(header.origin).is_some_and(|since| since <= follows)
    }

    pub fn ids(&self) -> impl Iterator<Item = u128> + '_ {
        self.0.iter().map(|(id, _)| *id)
    }

    fn since(&self, id: u128) -> Option<Seqno> {
        let place = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.0[place].1)
    }

    pub(crate) fn entries(&self) -> &[(u128, Seqno)] {
        &self.0
    }

    /// `None`: not in order, or not of the past.
    pub(crate) fn restore(entries: Vec<(u128, Seqno)>, seqno: Seqno) -> Option<Members> {
        let ordered = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let past = entries.iter().all(|(_, since)| (0..=seqno).contains(since));
        (ordered && past).then_some(Members(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(origin: u128, flags: u32, last_seen: Seqno, follows: Seqno) -> Header {
        let pa_range = (last_seen - follows) as u32;
        Header { flags, pa_range, ..Header::transaction(origin, 1, last_seen) }
    }

    #[test]
    fn who_was_out_of_a_view_may_not_go_on_with_what_it_had_open() {
        let mut members = Members::default();
        members.view(1, [7, 3].into_iter());
        assert!(members.admit(&fragment(3, flags::TRX_START, 1, 1)));
        assert!(members.admit(&fragment(3, 0, 4, 2)));
        members.view(5, [7].into_iter());
        assert!(!members.admit(&fragment(3, 0, 4, 2)), "out of the view");
        assert!(!members.admit(&fragment(3, flags::TRX_START, 5, 5)), "out of the view");
        assert!(members.admit(&fragment(7, 0, 4, 2)), "stayed");
        members.view(8, [3, 7].into_iter());
        assert!(!members.admit(&fragment(3, flags::TRX_END, 9, 2)), "begun before");
        assert!(!members.admit(&fragment(3, flags::TRX_START, 7, 7)), "stamped before");
        assert!(members.admit(&fragment(3, flags::TRX_START, 8, 8)));
        assert!(members.admit(&fragment(7, flags::TRX_END, 9, 2)), "stayed");
        assert!(members.admit(&Header::transaction(3, 1, 0)), "no fragment");
    }

    #[test]
    fn equal_views_in_a_row_end_everything() {
        let mut members = Members::default();
        members.view(1, [3, 7].into_iter());
        members.view(6, [7, 3].into_iter());
        for origin in [3, 7] {
            assert!(!members.admit(&fragment(origin, 0, 6, 2)));
            assert!(members.admit(&fragment(origin, 0, 8, 7)));
        }
        members.view(9, [3, 7, 9].into_iter());
        assert!(members.admit(&fragment(3, 0, 9, 7)), "somebody came: no break");
    }
}
