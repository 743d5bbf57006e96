//! Write sets, and the verdict on each: a pure function of the group log.
//!
//! The origin of a transaction collects its keys and its payload in a [`WriteSetBuilder`] and
//! proposes the bytes. When the log has ordered them, every member parses a [`WriteSet`] and hands
//! it to its [`Certifier`], which assigns the wsrep seqno, decides whether the transaction may
//! commit and says which seqno must be applied before it.
//!
//! Nothing here does I/O or reads a clock, and no random number has a part in what is decided (only in where a
//! table keeps it): two members that were fed the same log have the same state and gave the same verdicts.

mod builder;
mod certifier;
mod chunks;
mod constants;
mod index;
mod key;
mod key_table;
mod members;
mod packing;
mod parts;
mod probing;
mod seen;
mod sequenced;
mod snapshot;
mod transfers;
mod vote_message;
pub mod votes;
mod window;
mod write_set;

use bytes::Bytes;

pub use builder::{Part, WriteSetBuilder};
pub use certifier::{Certifier, Limits, Outcome, Verdict, KEYS_MAX_DEFAULT, WINDOW_DEFAULT};
pub use constants::Constants;
pub use index::{relation, Relation};
pub use key::{Key, KeyType};
pub use members::Members;
pub use packing::{Codec, Packed, Packing, UnpackError};
pub use parts::{OpenParts, PartsOf, Places};
pub use sequenced::{Frozen, Rules, Sequenced, Sequencing};
pub use snapshot::RestoreError;
pub use transfers::{Asked, StateOutcome, StateRequest, Transfers};
pub use vote_message::{VoteAct, VoteMessage};
pub use window::Class;
pub use write_set::{flags, Header, Keys, Kind, ParseError, WriteSet};

/// The wsrep identity of one process of a member: another after each restart, so that streaming
/// transactions of a former process are recognised as orphans.
pub fn process_uuid(member: u128, incarnation: u32) -> u128 {
    member.wrapping_add(u128::from(incarnation) << 32)
}

/// Whether this is the identity of a process of that member.
pub fn is_process_of(uuid: u128, member: u128) -> bool {
    let starts = uuid.wrapping_sub(member);
    starts & u128::from(u32::MAX) == 0 && starts >> 64 == 0
}

/// Votes, requests for a state and the like, each of which is read whole by all members.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Whether a member may propose this: every member can read it, and it comes from one of its own processes. Else one
/// could end the group with an entry that stops whoever applies it, or pass for another one, whose transactions it
/// ends, or whose serials it takes. (What is of a newer release is proposed only at a level that all members know.)
/// Nor does it say that it is the primary of the term that whoever asks leads (0: none): that one alone is.
/// What has no rows is short.
pub fn may_propose(member: u128, leads_in: impl FnOnce() -> u64, proposal: &Bytes) -> bool {
    let Ok(write_set) = WriteSet::parse(proposal.clone()) else { return false };
    let header = write_set.header();
    let has_rows = matches!(header.kind, Kind::WRITE_SET | Kind::PART);
    let is_ours = header.term != 0 && header.term == leads_in();
    is_process_of(header.origin, member)
        && !is_ours
        && (has_rows || proposal.len() <= MESSAGE_BYTES_MAX)
}

/// A wsrep sequence number. The first item of a group has 1; 0 is "before everything".
pub type Seqno = i64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_proposes_in_its_own_name_only_and_what_everybody_can_read() {
        let mut builder = WriteSetBuilder::new();
        builder.append_data(b"row");
        let built = builder.finish(&Header::transaction(process_uuid(77, 3), 1, 0));
        let with = |at: usize, byte| {
            let mut altered = built.to_vec();
            altered[at] = byte;
            Bytes::from(altered)
        };
        let may_propose = |member, leads_in, data: &Bytes| may_propose(member, || leads_in, data);
        assert!(may_propose(77, 0, &built) && may_propose(77, 4, &built));
        assert!(!may_propose(78, 0, &built));
        let stamped = Header { term: 4, ..Header::transaction(process_uuid(77, 3), 1, 0) };
        let stamped = WriteSetBuilder::new().finish(&stamped);
        assert!(may_propose(77, 0, &stamped) && may_propose(77, 5, &stamped));
        assert!(!may_propose(77, 4, &stamped), "only the leader is the primary of its term");
        let (of_another_layout, of_another_kind) = (with(0, 255), with(1, 255));
        let message = |kind, bytes| {
            let mut builder = WriteSetBuilder::new();
            builder.append_data(&vec![7; bytes]);
            builder.finish(&Header { kind, ..Header::transaction(process_uuid(77, 3), 1, 0) })
        };
        for kind in [Kind::VOTE, Kind::STATE_REQUEST, Kind::STATE_OUTCOME, Kind::PARTS_END] {
            assert!(may_propose(77, 0, &message(kind, 32 << 10)), "{kind:?}");
            assert!(!may_propose(77, 0, &message(kind, 64 << 10)), "{kind:?}");
        }
        assert!(may_propose(77, 0, &message(Kind::WRITE_SET, 64 << 10)));
        for unreadable in [of_another_layout, of_another_kind, built.slice(..20), Bytes::new()] {
            assert!(!may_propose(77, 0, &unreadable), "{unreadable:?}");
        }
    }

    #[test]
    fn a_process_is_its_members_and_nobody_elses() {
        let member = u128::MAX - 5;
        for incarnation in [0, 1, u32::MAX] {
            let process = process_uuid(member, incarnation);
            assert!(is_process_of(process, member));
            for other in [member + 1, member - 1, member ^ (1 << 70), member ^ (1 << 127), 7] {
                assert!(!is_process_of(process, other), "{incarnation} {other}");
            }
        }
    }
}
