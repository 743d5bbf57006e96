mod caught_up;
mod observed;
mod severed;
mod unlogged;
mod votes;

use super::*;
use crate::fate::trx::{Fate, Handle, Phase, Remote, Trx};
use crate::group::Group;
use crate::host::{Answer, Deaf, HostCtx};
use crate::link::{node_uuid, Link};
use crate::order::queue::Popped;
use crate::order::Event;
use crate::sequencer::Sequencer;
use crate::start::genesis::Genesis;
use crate::start::grastate::Grastate;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_certify::votes::Ballot;
use quorate_certify::{
    flags, Constants, Header, Kind, PartsOf, Rules, Sequenced, StateRequest, VoteAct, VoteMessage,
    WriteSet, WriteSetBuilder,
};
use quorate_consensus::{Index, MemberId, LEVEL};
use quorate_live::{
    Committed, EventKind, GroupError, GroupStatus, Standing, StateMachine, View, ViewMember,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

impl Node {
    /// Without a server or a group.
    fn for_tests() -> Self {
        let config = Local::for_tests().config;
        Node::new(Box::<Deaf>::default(), config, Settings::default())
    }
}

/// A node without a server or a group, whose data directory is this one.
fn with_data_dir(name: &str) -> (Node, PathBuf) {
    let data_dir = std::env::temp_dir().join(format!("quorate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&data_dir).unwrap();
    let config = NodeConfig { data_dir: data_dir.clone(), ..Local::for_tests().config };
    (Node::new(Box::<Deaf>::default(), config, Settings::default()), data_dir)
}

/// What became of a write set that passed.
fn passed(seqno: i64, depends_on: i64) -> Fate {
    let flags = flags::TRX_START | flags::TRX_END;
    let (payload, parts, packed) = Default::default();
    Fate { seqno, depends_on, certified: true, flags, payload, parts, packed }
}

fn write_set(origin: u128, serial: u64) -> Bytes {
    WriteSetBuilder::new().finish(&Header::transaction(origin, serial, 0))
}

/// Connects a node whose database stands at `start`, to a group that does nothing.
fn attached(node: &Node, start: i64) -> Sequencer {
    attached_to(node, Arc::default(), Some(start))
}

fn attached_to(node: &Node, group: Arc<Nobody>, start: Option<i64>) -> Sequencer {
    let (genesis, limits) = (genesis(), Constants::default().limits());
    node.attach(group, (MemberId(1), 1), genesis, start, limits).unwrap()
}

/// The node itself, and one more.
fn view_of_two() -> View {
    let member = |id| ViewMember { id: MemberId(id), incarnation: 1, ..ViewMember::default() };
    View { number: 1, members: vec![member(1), member(2)], primary: None }
}

/// A message of the other.
fn message(index: u64, kind: Kind, payload: &[u8]) -> Committed {
    let mut builder = WriteSetBuilder::new();
    builder.append_data(payload);
    let header = Header { kind, ..Header::transaction(node_uuid(MemberId(2), 1), index, 0) };
    Committed::Data { index, data: builder.finish(&header), primary_term: None, level: LEVEL }
}

/// A write set of the other, which has seen all before it.
fn of_the_other(index: u64, flags: u32) -> Committed {
    let seen = Header::transaction(node_uuid(MemberId(2), 1), index, index as i64 - 1);
    let data = WriteSetBuilder::new().finish(&Header { flags: seen.flags | flags, ..seen });
    Committed::Data { index, data, primary_term: None, level: LEVEL }
}

/// The other asks about an error on `seqno`.
fn asks_about(index: u64, seqno: i64) -> Committed {
    let act = VoteAct::Cast(Ballot::Error(9));
    let vote = VoteMessage { seqno, policy: 0, act, text: String::new() };
    message(index, Kind::VOTE, &vote.encode())
}

fn genesis() -> Genesis {
    Genesis::of_group(7, &Constants::default())
}

/// A node that has committed and applied up to position 4.
fn at_four() -> Node {
    let node = Node::for_tests();
    node.local.commit.set_position(4);
    node.local.apply.set_position(4);
    node
}

#[test]
fn a_victim_is_counted_once_and_one_of_a_kill_is_none() {
    let node = at_four();
    let killed = node.sessions.transactions().get_or_create(1);
    assert_eq!(node.abort(0, 1), (Answer::Done, -1));
    assert_eq!(killed.local().unwrap().lock().phase, Phase::MustAbort);
    node.sessions.transactions().get_or_create(2);
    for _ in 0..2 {
        assert_eq!(node.abort(5, 2), (Answer::Done, -1));
    }
    assert_eq!(node.abort(5, 3), (Answer::Done, -1), "that is of another server");
    assert_eq!(node.counters().commits().bf_aborts, 1);
}

#[test]
fn a_panic_in_a_call_withdraws_the_node() {
    let node = at_four();
    let answer = guard(Some(&node), Answer::Broken, || panic!("planted"));
    assert_eq!(answer, Answer::Broken);
    assert_eq!(node.local_state(), LocalState::Error);
    assert!(node.local.commit.enter(5, false).is_err(), "nothing is committed after it");
    assert!(node.local.apply.wait(5).is_err(), "nobody waits for ever");
}

#[test]
fn a_panic_on_a_thread_of_its_own_withdraws_it_too() {
    let node = Node::for_tests();
    node.helpers.spawn("test", || panic!("planted")).unwrap();
    node.helpers.join();
    assert_eq!(node.local_state(), LocalState::Error);
}

#[test]
fn what_a_withdrawn_node_does_not_apply_is_not_passed_either() {
    let node = at_four();
    node.withdrawal.inconsistent("an error that only this node has");
    let behind = Remote::new(5, true);
    assert_eq!(node.commit_order_enter(&Handle::Remote(behind)), Answer::Broken);
    assert_eq!((node.local.commit.last_left(), node.local.apply.last_left()), (4, 4));
}

#[test]
fn a_violated_order_withdraws_the_node() {
    let node = at_four();
    let again = || Handle::Remote(Remote::new(5, true));
    let first = again();
    assert_eq!(node.commit_order_enter(&first), Answer::Done);
    assert_eq!(node.commit_order_leave(&first, &[]), Answer::Done);
    assert_eq!(node.local_state(), LocalState::Undefined);
    assert_eq!(node.commit_order_enter(&again()), Answer::Broken);
    assert_eq!(node.local_state(), LocalState::Error);

    let local = Trx::new(1);
    local.decide(passed(6, 0));
    local.lock().phase = Phase::Ordered;
    assert_eq!(node.commit_order_enter(&Handle::Local(local)), Answer::Broken);
    assert_eq!(node.local.commit.last_left(), 5, "its own transactions do not commit, either");
}

#[test]
fn ddl_that_lost_its_vote_ends_without_a_failure_of_its_own() {
    let node = at_four();
    node.withdrawal.inconsistent("an error that only this node has");
    let end = |error: &str| {
        let ddl = Trx::new(u64::MAX);
        ddl.decide(passed(5, 4));
        node.sessions.put_isolated(9, ddl);
        node.end_isolated(9, error.as_bytes())
    };
    assert_eq!(end("an error that only this node has"), Answer::Done);
    assert_eq!(end(""), Answer::Broken, "what succeeded here has no place in the order any more");
}

#[test]
fn an_error_that_cannot_be_noted_makes_the_next_start_fetch_the_state() {
    let (node, data_dir) = with_data_dir("unnoted");
    let sequencer = attached(&node, 4);
    let link = node.link().unwrap();
    node.records.note_group(&link).unwrap();
    assert!(Grastate::read(&data_dir).unwrap().is_some());
    // As on a full disk: neither this note nor a new file can be written.
    for name in ["quorate_errors.dat", "grastate.dat.new"] {
        let path = data_dir.join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir(path).unwrap();
    }
    let failed = Handle::Remote(Remote::new(5, true));
    assert_eq!(node.commit_order_enter(&failed), Answer::Done);
    assert_eq!(node.commit_order_leave(&failed, b"No space left on device"), Answer::Broken);
    assert_eq!(node.local_state(), LocalState::Error);
    assert_eq!(Grastate::read(&data_dir), Ok(None));
    drop(sequencer);
    std::fs::remove_dir_all(data_dir).unwrap();
}

/// Takes nothing in.
#[derive(Default)]
struct Nobody {
    refused: Mutex<Vec<Bytes>>,
}

impl Nobody {
    /// The votes that it was to propose.
    fn votes(&self) -> Vec<(i64, VoteAct)> {
        let proposed = std::mem::take(&mut *self.refused.lock());
        let messages = proposed.into_iter().map(|data| WriteSet::parse(data).unwrap());
        let votes = messages.map(|message| VoteMessage::decode(&message.payload()).unwrap());
        votes.map(|vote| (vote.seqno, vote.act)).collect()
    }
}

impl Group for Nobody {
    fn group_id(&self) -> u128 {
        7
    }
    fn propose(&self, _serial: u64, data: Bytes) -> Result<(), GroupError> {
        self.refused.lock().push(data);
        Err(GroupError::Closed)
    }
    fn decided(&self, _serial: u64) {}
    fn barrier(&self, _timeout: Duration) -> Result<Index, GroupError> {
        Err(GroupError::Closed)
    }
    fn read(&self, _from: Index, _bytes: usize) -> Result<Vec<Bytes>, GroupError> {
        Err(GroupError::Closed)
    }
    fn stands(&self, _standing: Standing) {}
    fn await_applied(&self, _: i64, _: Option<u8>, _: Duration) -> Result<(), GroupError> {
        Err(GroupError::Closed)
    }
    fn has_log_room(&self) -> bool {
        true
    }
    fn reachable(&self) -> Vec<ViewMember> {
        Vec::new()
    }
    fn refresh_view(&self) {}
    fn status(&self) -> GroupStatus {
        GroupStatus::default()
    }
    fn happened(&self, _kind: EventKind, _what: String) {}
    fn leave(&self, _timeout: Duration) -> Result<(), GroupError> {
        Ok(())
    }
    fn close(&self) {}
}

/// A sequencer whose database stands at `start`, and its connection.
fn sequencer(start: Option<i64>) -> (Sequencer, Arc<Link>) {
    let link = Arc::new(Link::new(Arc::<Nobody>::default(), genesis(), MemberId(1), 1, start));
    let parts = Node::for_tests().sequencer_parts();
    (Sequencer::new(parts, link.clone(), Constants::default().limits(), None), link)
}

fn snapshot_at(seqno: i64) -> Bytes {
    Sequenced::beginning(Constants::default().limits(), seqno).snapshot()
}

#[test]
fn a_snapshot_past_the_database_before_anything_else_asks_for_a_transfer() {
    let (mut behind, link) = sequencer(Some(5));
    behind.restore(25, snapshot_at(18)).unwrap();
    assert_eq!(link.start(), None, "6 to 18 never come by");
    let (mut level, link) = sequencer(Some(18));
    level.restore(25, snapshot_at(18)).unwrap();
    assert_eq!(link.start(), Some(18));
}

#[test]
fn a_joiner_waits_for_transactions_of_which_it_has_no_first_part() {
    let limits = Constants::default().limits();
    let (mut node, link) = sequencer(None);
    let finished = |header| WriteSetBuilder::new().finish(&header);
    let (other, stream) = (node_uuid(MemberId(2), 1), 4);
    let mut others = Sequenced::beginning(limits, 0);
    others.view(&[other]);
    others.entry(2, finished(Header::part(other, 5, stream, 0)), Rules::default()).unwrap();
    let whole = || link.progress.wait_whole(Instant::now(), || false);
    assert!(whole());
    node.restore(2, others.snapshot()).unwrap();
    assert!(!whole());
    let mut next = |index, header| {
        let data = finished(header);
        node.apply(Committed::Data { index, data, primary_term: None, level: LEVEL }).unwrap();
        whole()
    };
    assert!(!next(3, Header::part(other, 6, stream, 1)));
    assert!(!next(4, Header::part(other, 7, 9, 0)), "another, whose first part is here");
    assert!(next(5, Header::parts_end(other, 8, stream)));
}

#[test]
fn the_parts_of_what_is_being_applied_are_kept_and_are_no_backlog() {
    let node = at_four();
    let mut sequencer = attached(&node, 1);
    sequencer.apply(Committed::View { index: 6, view: view_of_two() }).unwrap();
    let (other, stream) = (node_uuid(MemberId(2), 1), 4);
    let mut entry = |index, header| {
        let data = WriteSetBuilder::new().finish(&header);
        sequencer.apply(Committed::Data { index, data, primary_term: None, level: LEVEL }).unwrap();
        (sequencer.needs_from(), sequencer.lags_from())
    };
    assert_eq!(entry(7, Header::part(other, 1, stream, 0)), (7, Index::MAX));
    assert_eq!(entry(8, Header::part(other, 2, stream, 1)), (7, Index::MAX));
    let parts = Some(PartsOf { stream, count: 2, bytes: 0 });
    let large = Header { parts, ..Header::transaction(other, 3, 1) };
    assert_eq!(entry(9, large), (7, 9), "it waits");
    let queue = &node.local.queue;
    assert!(matches!(queue.pop(), Popped::Event(Event::Connect)));
    queue.finish_exclusive();
    let Popped::Event(Event::WriteSet(taken)) = queue.pop() else { panic!() };
    assert_eq!(entry(10, Header::transaction(other, 4, 1)), (7, 10), "it is being applied");
    node.local.part_places.done(taken.place.seqno);
    assert_eq!(sequencer.needs_from(), 7, "it may not be on disk");
}

#[test]
fn a_copy_of_what_passed_with_a_replaced_log_refuses_nobody() {
    let limits = Constants::default().limits();
    let (mut node, link) = sequencer(Some(0));
    let proposal = write_set(link.node, 4);
    let mut others = Sequenced::beginning(limits, 0);
    others.view(&[link.node]);
    others.entry(1, proposal.clone(), Rules::default()).unwrap();

    let waits = Arc::new(Handle::Local(Trx::new(1)));
    link.expect(4, waits.clone());
    node.restore(9, others.snapshot()).unwrap();
    let again = Committed::Data { index: 10, data: proposal, primary_term: None, level: LEVEL };
    node.apply(again).unwrap();
    assert!(waits.local().unwrap().lock().fate.is_none(), "it is committed, on all others");
}

#[test]
fn a_session_that_ends_after_the_connection_notes_the_position() {
    let (node, data_dir) = with_data_dir("noted");
    let _sequencer = attached(&node, 4);
    node.local.queue.leave_only_the_end();
    node.local.link().unwrap().progress.set_seqno(5);
    let session = Trx::new(1);
    session.decide(passed(5, 4));
    session.lock().phase = Phase::Committed;

    node.disconnect();
    node.run_applier(HostCtx(0));
    let noted = || Grastate::read(&data_dir).unwrap().map(|saved| saved.position.seqno);
    assert_eq!(noted(), None, "seqno 5 has not ended");
    assert_eq!(node.release(&Handle::Local(session)), Answer::Done);
    assert_eq!(noted(), Some(5));
    std::fs::remove_dir_all(&data_dir).unwrap();
}

#[test]
fn what_comes_behind_the_end_of_a_connection_has_no_effect_in_it() {
    let node = Node::for_tests();
    let mut sequencer = attached(&node, 0);
    let link = node.link().unwrap();
    let entry = |index, origin| Committed::Data {
        index,
        data: write_set(origin, index),
        primary_term: None,
        level: LEVEL,
    };
    let (own, other) = (link.node, 77);
    let view = View { number: 1, members: Vec::new(), primary: None };
    sequencer.apply(Committed::View { index: 1, view }).unwrap();
    let waits = Arc::new(Handle::Local(Trx::new(1)));
    link.expect(3, waits.clone());
    node.give_up_connection();
    let queued = node.queued().now;

    sequencer.apply(entry(2, other)).unwrap();
    sequencer.apply(entry(3, own)).unwrap();
    sequencer.restore(9, snapshot_at(18)).unwrap();
    assert_eq!(node.queued().now, queued, "nobody would apply it");
    assert!(waits.local().unwrap().lock().fate.is_none(), "what is before it is not applied");
    assert!(link.settle(3).is_some(), "its session can give it up");
    assert_eq!(link.progress.seqno(), 1, "a pause would wait for more");
    assert_eq!(sequencer.needs_from(), 2, "the next start goes on there");
    assert_ne!(node.local_state(), LocalState::Error);
}

#[test]
fn a_connection_that_is_given_up_lets_no_ddl_into_a_state_that_is_being_sent() {
    let node = Node::for_tests();
    let _sequencer = attached(&node, 0);
    node.local.commit.close_gates_of_donor(0);
    node.local.commit.note_isolated(1);
    node.give_up_connection();
    assert!(node.local.commit.holds_isolated(1), "the copy would have a part of it");
    node.disconnect();
    assert!(!node.local.commit.holds_isolated(1), "the transfer ends with the server");
}

#[test]
fn what_is_behind_a_last_fragment_that_was_given_up_is_neither_voted_on_nor_sent() {
    let node = Node::for_tests();
    let mut sequencer = attached(&node, 0);
    let link = node.link().unwrap();
    sequencer.apply(Committed::View { index: 1, view: view_of_two() }).unwrap();
    node.local.set_state(LocalState::Synced);
    let header = Header::transaction(link.node, 5, 1);
    let last = Header { flags: flags::TRX_END, pa_range: 0, ..header };
    link.given_up.lock().insert(last.serial);
    let data = WriteSetBuilder::new().finish(&last);
    let queued = node.queued().now;
    sequencer.apply(Committed::Data { index: 2, data, primary_term: None, level: LEVEL }).unwrap();
    assert_eq!(
        (node.queued().now, sequencer.needs_from()),
        (queued, 2),
        "the next start goes on there"
    );

    sequencer.apply(asks_about(3, 2)).unwrap();
    let request = StateRequest {
        donor: link.node,
        joiner: node_uuid(MemberId(2), 1),
        message: Bytes::from_static(b"rsync\0x\0"),
    };
    sequencer.apply(message(4, Kind::STATE_REQUEST, &request.encode())).unwrap();
    assert_eq!(node.queued().now, queued, "it would wait for seqno 2 for ever");
}
