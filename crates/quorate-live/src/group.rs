//! The handle of a running member.

use crate::error::GroupError;
use crate::host::{Observer, Rehearsal, StateMachine};
use crate::live::Live;
use crate::net::trust::Operators;
use crate::open;
use crate::operator::{Operator, AT_ONCE};
use crate::options::{GroupOptions, OpenInfo};
use crate::threads::feeder;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_consensus::{Charter, Index, LogPosition, SnapshotMeta, Term};
use quorate_group::{
    memory_fault, Author, Content, Done, EventKind, Feed, ForcePlan, GroupStatus, Notes, Order,
    OrderNote, Stored, View, ViewMember,
};
use quorate_wal::{ReadError, Room};
use quorate_wire::Standing;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A snapshot beside the log, or (index 0, no bytes) the empty state before its first entry.
#[derive(Clone, Debug)]
pub struct StartingPoint {
    pub last: LogPosition,
    /// The log's term at that index; `None`: the log does not have it. Only where it is the same
    /// can a start begin.
    pub log_term: Option<Term>,
    pub machine: Bytes,
}

/// Bytes of entries read at once, to see how far the log goes.
const REHEARSED_BYTES: usize = 4 << 20;

/// With what a start from there begins.
type Point = (StartingPoint, (Stored, Option<Content>));

/// A running member. All methods may be called from any thread. Dropping it closes it, without
/// taking leave: to the others that is a crash.
pub struct Group {
    pub(crate) live: Arc<Live>,
    started: Mutex<bool>,
}

impl Group {
    /// Opens the log directory, starts listening and all threads except the feeder.
    pub fn open(
        options: GroupOptions,
        observer: Arc<dyn Observer>,
    ) -> Result<(Group, OpenInfo), GroupError> {
        let (live, info) = open::open(options, observer)?;
        Ok((Group { live, started: Mutex::new(false) }, info))
    }

    /// The group this member belongs to; 0 as long as it belongs to none.
    pub fn group_id(&self) -> u128 {
        self.live.with_machine(|machine, _, _| machine.group().0)
    }

    /// What the group was founded with; all zero as long as this member belongs to none.
    pub fn charter(&self) -> Charter {
        self.live.with_machine(|machine, _, _| machine.group().1)
    }

    /// Blocks until this member belongs to a group (its configuration contains it) or `timeout`.
    /// Fails at once with `OrderError::Refused` when everybody asked refuses for good, as another
    /// group does. It goes on asking in either case.
    pub fn wait_joined(&self, timeout: Duration) -> Result<(), GroupError> {
        self.order(Order::AwaitJoined, timeout)
    }

    /// Where [`Group::start`] could begin, the newest first. A snapshot from the leader may replace all
    /// of them at any time before the start.
    pub fn starting_points(&self) -> Result<Vec<StartingPoint>, GroupError> {
        self.points()?.map(|point| point.map(|(point, _)| point)).collect()
    }

    /// Starts the feeder thread: restores the newest local snapshot that `accept` takes (it
    /// decodes the snapshot bytes, newest first; index 0 and no bytes = the empty state, offered
    /// last if the log reaches back to index 1), then feeds committed entries after it. Returns
    /// the index it starts from.
    ///
    /// [`GroupError::NeedsStateTransfer`] if `accept` takes none: the caller may try again with
    /// another state machine and an `accept` that takes any.
    pub fn start(
        &self,
        mut machine: Box<dyn StateMachine>,
        accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<Index, GroupError> {
        let mut started = self.started.lock();
        if *started {
            return Err(GroupError::AlreadyStarted);
        }
        let (stored, content) = self.starting_point(accept)?;
        let index = stored.meta.last.index;
        let (view, notes) = match content {
            Some(content) => {
                let restored = machine.restore(index, content.machine);
                restored
                    .map_err(|reason| GroupError::Snapshot { action: "continue from", reason })?;
                (content.view, content.notes)
            }
            None => (View::default(), Notes::default()),
        };
        let options = &self.live.options;
        let node = (&options.name[..], self.live.id);
        let feed = Feed::new(node, options.level, options.segment_bytes, stored, view, notes);
        let unlogged = match machine.rehearsal() {
            Some(rehearsal) => !self.log_reaches(feed.clone(), rehearsal)?,
            None => false,
        };
        self.live.feeding.begin(machine, feed, unlogged);
        let live = self.live.clone();
        if !self.live.threads.spawn("feeder", move || feeder::run(&live)) {
            self.live.feeding.end();
            return Err(GroupError::NoThreads);
        }
        *started = true;
        Ok(index)
    }

    /// Queues a proposal and returns at once. It is sent again (same bytes) to each new leader
    /// until `decided(serial)`; so it may be committed more than once: the layer above drops
    /// duplicates by (member, incarnation, serial), which it puts into `data` itself.
    /// Serials are unique within this incarnation and ascending.
    ///
    /// The bytes are kept until then, however many: whoever proposes bounds them.
    pub fn propose(&self, serial: u64, data: Bytes) -> Result<(), GroupError> {
        self.live.propose(serial, data)
    }

    /// The feeder saw this proposal committed, or the caller gives it up: stop sending it.
    pub fn decided(&self, serial: u64) {
        self.live.core.decided(serial);
    }

    /// A linearizable read point: every entry committed before the call is at or below the
    /// returned index. Callers at the same time share one round.
    pub fn barrier(&self, timeout: Duration) -> Result<Index, GroupError> {
        match self.live.order(Order::ReadPoint, timeout, None)? {
            Done::ReadPoint(index) => Ok(index),
            other => unreachable!("{other:?} is no read point"),
        }
    }

    /// The host's server has got further: for those who wait for it elsewhere.
    pub fn stands(&self, standing: Standing) {
        self.live.core.stands(standing);
    }

    /// Blocks until all members that are up to date have applied `seqno`, or so many, this one included. An error says
    /// where it is not applied; what is committed is so in any case.
    pub fn await_applied(
        &self,
        seqno: i64,
        at_least: Option<u8>,
        timeout: Duration,
    ) -> Result<(), GroupError> {
        self.order(Order::AwaitApplied { seqno, at_least }, timeout)
    }

    /// Reads the data of entries back from the log (cache or disk), for appliers that are behind: of the one
    /// at `from`, which is committed, and of those that follow until there are `bytes` of it. What is behind
    /// the last committed entry may be among them, and be replaced later.
    pub fn read(&self, from: Index, bytes: usize) -> Result<Vec<Bytes>, GroupError> {
        let mut entries = Vec::new();
        self.live.hands.wal.read(from, bytes, &mut entries)?;
        if entries.first().is_none_or(|first| first.index != from) {
            return Err(GroupError::NotWritten { index: from });
        }
        if let Some(damaged) = entries.iter().find(|entry| !entry.is_intact()) {
            let what = format!("log index {}", damaged.index);
            return Err(GroupError::LogFailed(memory_fault(&self.live.options.name, &what)));
        }
        Ok(entries.into_iter().map(|entry| entry.data).collect())
    }

    /// Whether the disk of the log has room. If not, the log goes on with the segments that are in reserve, and then
    /// stands still.
    pub fn has_log_room(&self) -> bool {
        self.live.hands.wal.room() == Room::Enough
    }

    /// Members of the newest view that this one hears from, itself included.
    pub fn reachable(&self) -> Vec<ViewMember> {
        self.live.with_machine(|machine, now_ms, _| machine.reachable(now_ms))
    }

    /// The state machine is to see a view after those that it was given before this call, even if nobody comes
    /// or goes.
    pub fn refresh_view(&self) {
        self.live.with_applied(|_, _, _| ());
        self.tell(Order::RefreshView);
    }

    /// Reads the files of [`Security`](crate::Security) again. Connections to this member are made anew
    /// with them, at once. On an error the former ones stay in use, and connections stand.
    pub fn reload_security(&self) -> Result<(), GroupError> {
        self.live.reload_security()
    }

    /// An error if [`Group::set_operators`] would refuse the list.
    pub fn check_operators(&self, operators: &Operators) -> Result<(), GroupError> {
        self.live.check_revoked(operators)
    }

    /// Takes these operators from now on, and no others. With certificates their files are read again; on
    /// an error only rights that are taken have gone.
    pub fn set_operators(&self, operators: Operators) -> Result<(), GroupError> {
        self.live.set_operators(operators)
    }

    /// Whole days until this member's certificate ends; below 0 from then on. `None`: it has none.
    pub fn certificate_days(&self) -> Option<i64> {
        let trust = self.live.trust();
        trust.expiry.as_ref().map(|expiry| expiry.days_left(SystemTime::now()))
    }

    /// The orders that `author` may give to this member; whether it may is for the caller to know.
    pub fn operator(&self, author: Author) -> Operator<'_> {
        Operator { live: &self.live, author }
    }

    /// What operators ordered of any member, and what came of it: the last [`quorate_group::NOTES_MAX`]
    /// that this member's state machine has passed in the log, the oldest first. What a member took whose
    /// process ended at once is in its error log alone.
    pub fn orders(&self) -> Vec<OrderNote> {
        self.live.hands.notes.lock().orders().cloned().collect()
    }

    /// Something happened to this member that the group is to know: it is noted in the log, unless this
    /// process ends at once. Does not wait.
    pub fn happened(&self, kind: EventKind, what: String) {
        self.live.core.event(kind, what);
    }

    pub fn status(&self) -> GroupStatus {
        self.live.status()
    }

    /// Silence after which a member leaves the view, from now on.
    pub fn set_suspect_timeout(&self, timeout: Duration) {
        self.tell(Order::SuspectAfter(timeout.as_millis() as u64));
    }

    /// This member wants to have so many votes (`pc.weight`); waits up to `patience` until it has.
    /// It goes on asking after that.
    pub fn want_votes(&self, votes: u8, patience: Duration) {
        // That it took longer, or that the member closes, is no failure.
        let _asked = self.live.order(Order::WantVotes(votes), patience, None);
    }

    /// Cuts this member off from the others, or lets it go on, as its options say. An operator's word is
    /// [`Operator::isolate`].
    pub fn isolate(&self, isolated: bool) {
        self.tell(Order::Isolate(isolated));
    }

    /// Whether this member, one of two, may go on alone when the other one's process is gone
    /// (`pc.ignore_sb`). For why that is safe, and when it is refused, see `alone` in quorate-group.
    pub fn allow_alone(&self, allowed: bool) {
        self.tell(Order::AllowAlone(allowed));
    }

    /// What [`Operator::force_quorum`] would do, and what may be lost by it. Changes nothing.
    pub fn plan_force_quorum(&self, keep: &[&str]) -> ForcePlan {
        let keep: Vec<String> = keep.iter().map(|name| (*name).to_owned()).collect();
        self.live.with_machine(|machine, _, _| machine.plan_force(&keep))
    }

    /// Leaves the group: removed from the voters (dead voters first, where the rest would have no
    /// majority), and from the view. Then `close`. Past the timeout it stays a (dead) voter.
    pub fn leave(&self, timeout: Duration) -> Result<(), GroupError> {
        self.order(Order::Leave, timeout)
    }

    /// Stops and joins all threads. Idempotent.
    pub fn close(&self) {
        self.live.close();
    }

    fn order(&self, order: Order, timeout: Duration) -> Result<(), GroupError> {
        self.live.order(order, timeout, None).map(drop)
    }

    /// An order that cannot be refused, but by a member that is closed.
    fn tell(&self, order: Order) {
        let told = self.live.order(order, AT_ONCE, None);
        debug_assert!(told.is_ok() || self.live.is_stopping() || self.live.has_failed());
    }

    /// Whether the log, as it is now, has all that the database above has. What of it is committed does not matter:
    /// where the log ends before that, it is the beginning of what the database saw.
    fn log_reaches(
        &self,
        mut feed: Feed,
        mut rehearsal: Box<dyn Rehearsal>,
    ) -> Result<bool, GroupError> {
        let failed = |reason: String| GroupError::Snapshot { action: "continue from", reason };
        let mut entries = Vec::new();
        loop {
            let next = feed.position().index + 1;
            match self.live.hands.wal.read(next, REHEARSED_BYTES, &mut entries) {
                Ok(()) if entries.is_empty() => return Ok(false),
                Ok(()) => {}
                // A leader's snapshot replaced it meanwhile: what comes after that will tell.
                Err(ReadError::Purged { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            for entry in entries.drain(..) {
                let Some(committed) =
                    feed.entry(entry).map_err(|error| failed(error.to_string()))?
                else {
                    continue;
                };
                if rehearsal.reaches_database(committed).map_err(failed)? {
                    return Ok(true);
                }
            }
        }
    }

    fn starting_point(
        &self,
        accept: &mut dyn FnMut(Index, &Bytes) -> bool,
    ) -> Result<(Stored, Option<Content>), GroupError> {
        for point in self.points()? {
            let (point, start) = point?;
            if point.log_term == Some(point.last.term) && accept(point.last.index, &point.machine) {
                return Ok(start);
            }
        }
        Err(GroupError::NeedsStateTransfer { log_base: self.live.hands.wal.base().index })
    }

    /// Snapshots from the newest on, then the beginning. A damaged file is left out: it was reported.
    fn points(&self) -> Result<impl Iterator<Item = Result<Point, GroupError>> + '_, GroupError> {
        let hands = &self.live.hands;
        let failed = |reason: String| GroupError::Snapshot { action: "read", reason };
        let snapshots = hands.snapshots.list()?.into_iter().filter_map(move |index| {
            let (stored, content) = hands.snapshots.load(index).ok()?;
            let decoded = Content::decode(content).map_err(|error| failed(error.to_string()));
            Some(decoded.map(|content| {
                let (last, log_term) = (stored.meta.last, hands.wal.term_at(index));
                let machine = content.machine.clone();
                (StartingPoint { last, log_term, machine }, (stored, Some(content)))
            }))
        });
        let beginning = StartingPoint {
            last: LogPosition::default(),
            log_term: hands.wal.term_at(0),
            machine: Bytes::new(),
        };
        let empty = Stored { meta: SnapshotMeta::default(), received: false };
        Ok(snapshots.chain([Ok((beginning, (empty, None)))]))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.close();
    }
}
