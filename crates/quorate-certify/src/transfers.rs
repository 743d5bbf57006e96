//! Who sends the state of its database to whom, as far as the log says.
//!
//! A donor's script sends to an address, and does not know who listens there. If a joiner dies and
//! its next process listens while the script for its former one still runs, that process gets a
//! stream that was not meant for it. So all members know which transfers are under way; a process
//! that needs the state begins to listen only when none is left whose joiner is gone.
//!
//! Invariant: a transfer is open from its request on, if donor and joiner are in the view then,
//! until the donor's outcome for it; a view does not close it, for a donor that was dropped from
//! the view may be alive. Requests that are not opened start no script.

use crate::Seqno;
use bytes::{Buf, BufMut, Bytes};
use std::collections::BTreeMap;

/// What a log entry of kind [`Kind::STATE_REQUEST`](crate::Kind::STATE_REQUEST) says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRequest {
    pub donor: u128,
    pub joiner: u128,
    /// What the joiner's script printed: `method NUL address NUL`.
    pub message: Bytes,
}

/// What a log entry of kind [`Kind::STATE_OUTCOME`](crate::Kind::STATE_OUTCOME) says: how the
/// transfer went that its origin was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateOutcome {
    pub joiner: u128,
    /// 0, or a negative errno.
    pub code: i32,
}

impl StateRequest {
    pub fn encode(&self) -> Vec<u8> {
        [&self.donor.to_be_bytes()[..], &self.joiner.to_be_bytes(), &self.message].concat()
    }

    pub fn decode(data: &Bytes) -> Option<Self> {
        let mut input = data.clone();
        let donor = input.try_get_u128().ok()?;
        let joiner = input.try_get_u128().ok()?;
        Some(Self { donor, joiner, message: input })
    }
}

impl StateOutcome {
    pub fn encode(&self) -> Vec<u8> {
        [&self.joiner.to_be_bytes()[..], &self.code.to_be_bytes()].concat()
    }

    pub fn decode(mut data: &[u8]) -> Option<Self> {
        Some(Self { joiner: data.try_get_u128().ok()?, code: data.try_get_i32().ok()? })
    }
}

/// What became of a request at its place in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// The donor is to begin.
    Opened,
    /// Donor or joiner is not in the view: nobody begins.
    Void,
    /// One that was sent twice: it has been here.
    Copy,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transfer {
    donor: u128,
    /// Of the request, by which copies are told. Serials of one process grow.
    serial: u64,
    /// Where the database stood.
    seqno: Seqno,
    open: bool,
}

/// The last transfer of each joiner that is in the view, and open ones of others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transfers(BTreeMap<u128, Transfer>);

/// Open transfers to joiners that are gone, for donors that do not come back to end them: the
/// oldest are forgotten.
const ORPHANS_MAX: usize = 64;
const ENCODED_LEN: usize = 49;

impl Transfers {
    /// A request of `joiner`, in a view with `members`.
    pub fn request(
        &mut self,
        request: &StateRequest,
        serial: u64,
        seqno: Seqno,
        members: impl Fn(u128) -> bool,
    ) -> Asked {
        if self.0.get(&request.joiner).is_some_and(|last| serial <= last.serial) {
            return Asked::Copy;
        }
        if !members(request.joiner) {
            return Asked::Void;
        }
        let open = members(request.donor);
        self.0.insert(request.joiner, Transfer { donor: request.donor, serial, seqno, open });
        if open {
            Asked::Opened
        } else {
            Asked::Void
        }
    }

    /// Whether it comes from the donor that this joiner has asked: what anybody else says of it counts for nothing.
    pub fn outcome(&mut self, donor: u128, joiner: u128) -> bool {
        let ended = self.0.get_mut(&joiner).filter(|transfer| transfer.donor == donor);
        let counts = ended.is_some();
        if let Some(transfer) = ended {
            transfer.open = false;
        }
        counts
    }

    /// The next view.
    pub fn view(&mut self, members: &[u128]) {
        self.0.retain(|joiner, transfer| transfer.open || members.contains(joiner));
        while self.orphans(members).count() > ORPHANS_MAX {
            let gone = self.0.iter().filter(|(joiner, _)| !members.contains(joiner));
            let oldest = gone.min_by_key(|(_, transfer)| transfer.seqno).map(|(joiner, _)| *joiner);
            oldest.and_then(|joiner| self.0.remove(&joiner));
        }
    }

    /// Donors that may still send to joiners that are gone.
    pub fn orphans<'a>(&'a self, members: &'a [u128]) -> impl Iterator<Item = u128> + 'a {
        let gone =
            |(joiner, transfer): &(&u128, &Transfer)| transfer.open && !members.contains(joiner);
        self.0.iter().filter(gone).map(|(_, transfer)| transfer.donor)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * ENCODED_LEN);
        for (joiner, transfer) in &self.0 {
            out.put_u128_le(*joiner);
            out.put_u128_le(transfer.donor);
            out.put_u64_le(transfer.serial);
            out.put_i64_le(transfer.seqno);
            out.put_u8(u8::from(transfer.open));
        }
        out
    }

    pub(crate) fn decode(mut input: &[u8]) -> Option<Transfers> {
        let mut transfers = BTreeMap::new();
        while !input.is_empty() {
            let joiner = input.try_get_u128_le().ok()?;
            let donor = input.try_get_u128_le().ok()?;
            let serial = input.try_get_u64_le().ok()?;
            let seqno = input.try_get_i64_le().ok()?;
            let open = match input.try_get_u8().ok()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let ordered = transfers.last_key_value().is_none_or(|(last, _)| *last < joiner);
            if !ordered {
                return None;
            }
            transfers.insert(joiner, Transfer { donor, serial, seqno, open });
        }
        Some(Transfers(transfers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(donor: u128, joiner: u128) -> StateRequest {
        StateRequest { donor, joiner, message: Bytes::from_static(b"rsync\0x\0") }
    }

    fn asked(
        transfers: &mut Transfers,
        pair: (u128, u128),
        serial: u64,
        members: &[u128],
    ) -> Asked {
        transfers.request(&request(pair.0, pair.1), serial, 5, |id| members.contains(&id))
    }

    fn orphans(transfers: &Transfers, members: &[u128]) -> Vec<u128> {
        transfers.orphans(members).collect()
    }

    #[test]
    fn messages_survive_the_log_and_garbage_is_refused() {
        let request = request(7, 9);
        assert_eq!(StateRequest::decode(&Bytes::from(request.encode())), Some(request));
        let outcome = StateOutcome { joiner: 9, code: -11 };
        assert_eq!(StateOutcome::decode(&outcome.encode()), Some(outcome));
        assert_eq!(StateRequest::decode(&Bytes::from_static(b"short")), None);
        assert_eq!(StateOutcome::decode(b"short"), None);
    }

    #[test]
    fn a_transfer_whose_joiner_is_gone_is_known_until_its_donor_has_ended_it() {
        let mut transfers = Transfers::default();
        assert_eq!(asked(&mut transfers, (1, 9), 4, &[1, 2, 9]), Asked::Opened);
        assert_eq!(orphans(&transfers, &[1, 2, 9]), []);
        transfers.view(&[1, 2]);
        assert_eq!(orphans(&transfers, &[1, 2]), [1]);
        transfers.view(&[2, 10]);
        assert_eq!(orphans(&transfers, &[2, 10]), [1], "a donor that is away may be alive");
        transfers.outcome(2, 9);
        assert_eq!(orphans(&transfers, &[2, 10]), [1], "not its donor");
        let saved = Transfers::decode(&transfers.encode()).unwrap();
        assert_eq!(saved, transfers);
        transfers.outcome(1, 9);
        assert_eq!(orphans(&transfers, &[2, 10]), []);
        transfers.view(&[2, 10]);
        assert_eq!(transfers, Transfers::default());
    }

    #[test]
    fn copies_and_requests_from_or_to_nobody_open_nothing() {
        let mut transfers = Transfers::default();
        assert_eq!(asked(&mut transfers, (1, 9), 4, &[1, 2]), Asked::Void, "no joiner");
        assert_eq!(asked(&mut transfers, (3, 9), 4, &[1, 9]), Asked::Void, "no donor");
        assert_eq!(asked(&mut transfers, (1, 9), 5, &[1, 9]), Asked::Opened);
        transfers.outcome(1, 9);
        assert_eq!(asked(&mut transfers, (1, 9), 5, &[1, 9]), Asked::Copy);
        assert_eq!(asked(&mut transfers, (1, 9), 4, &[1, 9]), Asked::Copy);
        transfers.view(&[1]);
        assert_eq!(orphans(&transfers, &[1]), []);
        assert_eq!(asked(&mut transfers, (1, 9), 5, &[1]), Asked::Void, "a copy, later");
    }

    #[test]
    fn what_nobody_ends_is_bounded_and_damage_is_refused() {
        let mut transfers = Transfers::default();
        for joiner in 100..200 {
            let request = request(1, joiner);
            transfers.request(&request, 1, joiner as Seqno, |_| true);
            transfers.view(&[1]);
        }
        assert_eq!(orphans(&transfers, &[1]).len(), ORPHANS_MAX);
        assert!(transfers.0.contains_key(&199) && !transfers.0.contains_key(&100));
        let bytes = transfers.encode();
        assert!(Transfers::decode(&bytes[1..]).is_none());
        assert!(
            Transfers::decode(&[&bytes[ENCODED_LEN..], &bytes[..ENCODED_LEN]].concat()).is_none()
        );
    }
}
