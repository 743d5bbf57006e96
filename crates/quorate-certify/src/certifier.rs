//! The sequencer: gives every ordered item its seqno and every write set its verdict.
//!
//! Invariants:
//! - Everything that can influence a verdict is in the window: the last W sequenced items, or fewer
//!   where their keys together exceed a limit. Both limits are constants of the group, and eviction
//!   follows from the log alone, so all members always hold the same window.
//! - A write set whose `last_seen` lies below the window fails, so an evicted item can never have
//!   been a conflict that was missed; and every write set depends on at least the newest evicted
//!   seqno (the *floor*), so it can never have been a dependency that was missed.
//! - An item proposed twice passes at most once: within the window its identity is known, and past
//!   it the copy's `last_seen` (the same bytes) lies below the window.

use crate::index::{Index, AT_ONCE};
use crate::members::Members;
use crate::window::{mix, Class, Item, Window};
use crate::{flags, is_process_of, Header, Key, Kind, Seqno, WriteSet};
use std::fmt;

/// Write sets in the window; as far back as Galera certifies.
pub const WINDOW_DEFAULT: u32 = 16384;

/// Keys in the window: at most 96 MiB for the table of them and 24 MiB for their order, taken only when there are so
/// many; while the table grows, the former one is there, too.
pub const KEYS_MAX_DEFAULT: u64 = 3 << 20;

/// Bounds on the window. All members of a group must have the same ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Sequenced items; at least 1.
    pub window: u32,
    /// Keys, counted once for every write set that has them. What exceeds it evicts the oldest
    /// items early. A single write set with more keys still gets its verdict, but then empties the
    /// window: whatever was concurrent with it fails as [`Outcome::TooOld`].
    pub keys_max: u64,
}

/// What became of a write set, the same on every member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub seqno: Seqno,
    pub outcome: Outcome,
    /// Everything up to this seqno must have been applied before this one is; always below `seqno`.
    /// For a write set that failed it is the order of what its failure undoes, if anything.
    pub depends_on: Seqno,
}

/// Everything but `Ok` leaves a dummy at its seqno.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Ok,
    /// Somebody else changed the same things and neither saw the other. `with` is the newest such
    /// write set. If this is a fragment, the transaction must be rolled back here, everywhere.
    Conflict {
        with: Seqno,
    },
    /// `last_seen` lies outside the window, so nobody can tell. Treat as a conflict.
    TooOld,
    /// A fragment of a streaming transaction that a view has ended everywhere (see [`Members`]), or a write set
    /// whose parts are not all there any more (see [`OpenParts`](crate::OpenParts)).
    Orphan,
    /// In single-primary mode: its origin did not lead, or leads no more; somebody else's write
    /// sets may have come in between. Treat as a conflict.
    NotPrimary,
    /// The same proposal was sequenced before and got its verdict then. This copy means nothing:
    /// it must not roll back the transaction, nor wake a session.
    Duplicate,
}

/// Why, after "failed certification: ".
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok => f.write_str("it passed"),
            Outcome::Conflict { with } => {
                write!(f, "it changes what seqno {with} changed, and had not seen that")
            }
            Outcome::TooOld => {
                f.write_str("what it had seen is older than the certification window")
            }
            Outcome::Orphan => f.write_str("its transaction had ended before"),
            Outcome::NotPrimary => f.write_str("its node was not the primary"),
            Outcome::Duplicate => f.write_str("it has had its verdict before"),
        }
    }
}

/// The state after some prefix of the log. Feed it every later item, in order.
pub struct Certifier {
    limits: Limits,
    window: Window,
    index: Index,
    /// The last item that everything later depends on: TOI, PA_UNSAFE, rollback, view.
    barrier: Seqno,
    members: Members,
}

impl Certifier {
    /// For a new group; the first item gets seqno 1.
    pub fn new(window: u32) -> Certifier {
        Certifier::starting_at(Limits { window, keys_max: KEYS_MAX_DEFAULT }, 0)
    }

    /// For a group that goes on from seqno `position` of another history, of which nothing is
    /// known but that it is over: write sets that have not seen all of it fail.
    pub fn starting_at(limits: Limits, position: Seqno) -> Certifier {
        let limits = Limits { window: limits.window.max(1), ..limits };
        Certifier {
            limits,
            window: Window::new(limits.window as usize, position),
            index: Index::new(limits.keys_max),
            barrier: position,
            members: Members::default(),
        }
    }

    /// Assigns the next seqno to a write set and decides its fate. Proposals of other kinds have no
    /// seqno and must not come here.
    pub fn sequence(&mut self, write_set: &WriteSet) -> Verdict {
        self.sequence_under(write_set, None)
    }

    /// As [`Self::sequence`]; with a `primary_term`, single-primary mode holds at this place of the
    /// log, whose entry is of that term: only what its leader proposed as such passes. A rollback
    /// does, whoever's it is: it only ends what began.
    pub fn sequence_under(&mut self, write_set: &WriteSet, primary_term: Option<u64>) -> Verdict {
        self.sequence_parts(write_set, primary_term, true)
    }

    /// As [`Self::sequence_under`]. `whole`: the parts that it counts on are there.
    pub(crate) fn sequence_parts(
        &mut self,
        write_set: &WriteSet,
        primary_term: Option<u64>,
        whole: bool,
    ) -> Verdict {
        let header = write_set.header();
        debug_assert_eq!(header.kind, Kind::WRITE_SET);
        let seqno = self.seqno() + 1;
        let mut item = Item {
            origin: header.origin,
            serial: header.serial,
            kin_epoch: header.kin_epoch,
            class: if header.is_toi() { Class::Toi } else { Class::Transaction },
            keys: 0,
            digest: 0,
        };
        let mut depends_on = self.least_dependency(header, seqno);
        let outcome = match self.decide(write_set, &item, seqno, &mut depends_on) {
            Outcome::Ok if !whole => Outcome::Orphan,
            Outcome::Ok if !is_primary(header, primary_term) => Outcome::NotPrimary,
            outcome => outcome,
        };
        let alone = match outcome {
            Outcome::Ok => header.has(flags::ISOLATION | flags::PA_UNSAFE | flags::ROLLBACK),
            Outcome::Duplicate => false,
            Outcome::Conflict { .. } | Outcome::TooOld | Outcome::Orphan | Outcome::NotPrimary => {
                undoes_fragments(header)
            }
        };
        if alone {
            depends_on = seqno - 1;
            self.barrier = seqno;
        }
        if outcome != Outcome::Ok {
            item.class = Class::Failed;
        } else if !header.has(flags::ROLLBACK) {
            item.keys = write_set.keys().len() as u32;
        }
        self.admit(item, write_set.keys());
        Verdict { seqno, outcome, depends_on }
    }

    /// Assigns the next seqno to a view of `members` (origins of write sets). Everything later
    /// depends on it.
    pub fn sequence_view(&mut self, members: impl Iterator<Item = u128>) -> Seqno {
        let view =
            Item { origin: 0, serial: 0, kin_epoch: 0, class: Class::View, keys: 0, digest: 0 };
        self.admit(view, std::iter::empty());
        self.barrier = self.seqno();
        self.members.view(self.barrier, members);
        self.barrier
    }

    /// Who is in the last view.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The last seqno that was assigned.
    pub fn seqno(&self) -> Seqno {
        self.window.seqno()
    }

    /// Whether `voter`, who has an error at `seqno`, can be right that the origin has committed it: the item passed as
    /// a transaction, and of another member. `None`: it has left the window.
    pub fn may_be_committed(&self, seqno: Seqno, voter: u128) -> Option<bool> {
        let item = self.item(seqno)?;
        let is_own = is_process_of(item.origin, voter) || is_process_of(voter, item.origin);
        Some(item.class == Class::Transaction && !is_own)
    }

    /// What the item at `seqno` is. `None`: it has left the window, or is not in the log yet.
    pub fn class(&self, seqno: Seqno) -> Option<Class> {
        self.item(seqno).map(|item| item.class)
    }

    fn item(&self, seqno: Seqno) -> Option<&Item> {
        let known = seqno > self.window.floor() && seqno <= self.seqno();
        known.then(|| self.window.item(seqno))
    }

    /// Write sets with a lower `last_seen` fail.
    pub fn last_seen_min(&self) -> Seqno {
        self.window.floor()
    }

    /// Distinct keys in memory (`wsrep_cert_index_size`).
    pub fn index_len(&self) -> usize {
        self.index.len()
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// A number that differs, all but certainly, if the state differs; takes the time of a
    /// few members.
    pub fn digest(&self) -> u64 {
        [
            self.window.floor() as u64,
            self.window.seqno() as u64,
            self.barrier() as u64,
            u64::from(self.limits.window),
            self.limits.keys_max,
        ]
        .into_iter()
        .chain(
            self.members
                .entries()
                .iter()
                .flat_map(|(id, since)| [*id as u64, (*id >> 64) as u64, *since as u64]),
        )
        .fold(self.window.digest(), mix)
    }

    /// Keys in the window: of how many the index knows.
    pub fn key_count(&self) -> u64 {
        self.window.keys()
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// A barrier at or below the floor is covered by the floor.
    pub(crate) fn barrier(&self) -> Seqno {
        self.barrier.max(self.window.floor())
    }

    /// So many keys are to be admitted.
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.index.reserve(keys);
    }

    pub(crate) fn set_barrier(&mut self, barrier: Seqno) {
        self.barrier = barrier;
    }

    pub(crate) fn set_members(&mut self, members: Members) {
        self.members = members;
    }

    /// Makes `item` the newest of the window and enters as many of `keys` as it says.
    pub(crate) fn admit(&mut self, mut item: Item, keys: impl Iterator<Item = Key> + Clone) {
        let count = item.keys as usize;
        let identity = [
            self.seqno() as u64 + 1,
            item.origin as u64,
            (item.origin >> 64) as u64,
            item.serial,
            item.class as u64 | u64::from(item.kin_epoch) << 8,
        ];
        let keys = keys.take(count);
        item.digest = identity.into_iter().chain(keys.clone().map(Key::raw)).fold(0, mix);
        self.window.push(item);
        while self.window.keys() > self.limits.keys_max {
            self.window.evict();
        }
        self.index.purge(PURGE_MIN + 2 * count, &self.window);
        if self.window.floor() < self.window.seqno() {
            self.index.enter(keys, &self.window);
        }
    }

    fn decide(
        &self,
        write_set: &WriteSet,
        item: &Item,
        seqno: Seqno,
        depends_on: &mut Seqno,
    ) -> Outcome {
        let header = write_set.header();
        if self.window.has_seen(header.origin, header.serial) {
            return Outcome::Duplicate;
        }
        if header.last_seen < self.window.floor() || header.last_seen >= seqno {
            return Outcome::TooOld;
        }
        if header.has(flags::ISOLATION | flags::ROLLBACK) {
            return Outcome::Ok;
        }
        if !self.members.admit(header) {
            return Outcome::Orphan;
        }
        let mut conflict = 0;
        let mut dependency = 0;
        let mut next = write_set.keys();
        for (at, key) in write_set.keys().enumerate() {
            if at % AT_ONCE == 0 {
                self.index.fetch(next.by_ref().take(AT_ONCE));
            }
            let meeting = self.index.meet(key, item, header.last_seen, &self.window);
            conflict = meeting.conflict.max(conflict);
            dependency = meeting.dependency.max(dependency);
        }
        if conflict > 0 {
            return Outcome::Conflict { with: conflict };
        }
        *depends_on = dependency.max(*depends_on);
        Outcome::Ok
    }

    /// What a write set depends on whatever its keys are.
    fn least_dependency(&self, header: &Header, seqno: Seqno) -> Seqno {
        let mut least = self.barrier();
        if header.pa_range != Header::PA_RANGE_ANY {
            least = least.max(header.last_seen.saturating_sub(Seqno::from(header.pa_range)));
        }
        if header.has(flags::IMPLICIT_DEPS) {
            least = least.max(header.last_seen);
        }
        least.min(seqno - 1)
    }
}

/// Whether the failure of this write set rolls back fragments that have been applied. Then it takes
/// locks away from rows, and is ordered like a rollback fragment.
fn undoes_fragments(header: &Header) -> bool {
    !header.is_toi() && !header.has(flags::TRX_START)
}

fn is_primary(header: &Header, primary_term: Option<u64>) -> bool {
    header.has(flags::ROLLBACK) || primary_term.is_none_or(|term| term == header.term)
}

/// Evicted keys that every item removes from the index, besides two for each that it enters.
const PURGE_MIN: usize = 32;
