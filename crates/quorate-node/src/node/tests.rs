use super::*;
use crate::fate::trx::{Fate, Handle, Phase, Remote, Trx};
use crate::group::Group;
use crate::host::{Answer, Deaf, HostCtx};
use crate::link::Link;
use crate::sequencer::Sequencer;
use crate::start::genesis::Genesis;
use crate::start::grastate::Grastate;
use bytes::Bytes;
use quorate_certify::{flags, Constants, Header, Sequenced, WriteSetBuilder};
use quorate_consensus::{Index, MemberId};
use quorate_live::{Committed, GroupError, GroupStatus, StateMachine, View, ViewMember};
use std::time::Duration;

impl Node {
    /// Without a server or a group.
    fn for_tests() -> Self {
        let config = Local::for_tests().config;
        Node::new(Box::<Deaf>::default(), config, Settings::default())
    }
}

/// What became of a write set that passed.
fn passed(seqno: i64, depends_on: i64) -> Fate {
    let flags = flags::TRX_START | flags::TRX_END;
    Fate { seqno, depends_on, certified: true, flags, payload: Bytes::new() }
}

fn write_set(origin: u128, serial: u64) -> Bytes {
    WriteSetBuilder::new().finish(&Header::transaction(origin, serial, 0))
}

/// Connects a node whose database stands at `start`, to a group that does nothing.
fn attached(node: &Node, start: i64) -> Sequencer {
    let (genesis, limits) = (genesis(), Constants::default().limits());
    node.attach(Arc::new(Nobody), (MemberId(1), 1), genesis, Some(start), limits)
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
    let behind = Remote::new(5);
    assert_eq!(node.commit_order_enter(&Handle::Remote(behind)), Answer::Broken);
    assert_eq!((node.local.commit.last_left(), node.local.apply.last_left()), (4, 4));
}

#[test]
fn a_violated_order_withdraws_the_node() {
    let node = at_four();
    let again = || Handle::Remote(Remote::new(5));
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

struct Nobody;

impl Group for Nobody {
    fn group_id(&self) -> u128 {
        7
    }
    fn propose(&self, _serial: u64, _data: Bytes) -> Result<(), GroupError> {
        Err(GroupError::Closed)
    }
    fn decided(&self, _serial: u64) {}
    fn barrier(&self, _timeout: Duration) -> Result<Index, GroupError> {
        Err(GroupError::Closed)
    }
    fn read(&self, _index: Index) -> Result<Bytes, GroupError> {
        Err(GroupError::Closed)
    }
    fn reachable(&self) -> Vec<ViewMember> {
        Vec::new()
    }
    fn refresh_view(&self) {}
    fn status(&self) -> GroupStatus {
        GroupStatus::default()
    }
    fn leave(&self, _timeout: Duration) -> Result<(), GroupError> {
        Ok(())
    }
    fn close(&self) {}
}

/// A sequencer whose database stands at `start`, and its connection.
fn sequencer(start: Option<i64>) -> (Sequencer, Arc<Link>) {
    let link = Arc::new(Link::new(Arc::new(Nobody), genesis(), MemberId(1), 1, start));
    let parts = Node::for_tests().sequencer_parts();
    (Sequencer::new(parts, link.clone(), Constants::default().limits()), link)
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
fn a_copy_of_what_passed_with_a_replaced_log_refuses_nobody() {
    let limits = Constants::default().limits();
    let (mut node, link) = sequencer(Some(0));
    let proposal = write_set(link.node, 4);
    let mut others = Sequenced::beginning(limits, 0);
    others.view(&[link.node]);
    others.entry(proposal.clone(), None).unwrap();

    let waits = Arc::new(Handle::Local(Trx::new(1)));
    link.expect(4, waits.clone());
    node.restore(9, others.snapshot()).unwrap();
    let again = Committed::Data { index: 10, data: proposal, primary_term: None };
    node.apply(again).unwrap();
    assert!(waits.local().unwrap().lock().fate.is_none(), "it is committed, on all others");
}

#[test]
fn a_session_that_ends_after_the_connection_notes_the_position() {
    let data_dir = std::env::temp_dir().join(format!("quorate-noted-{}", std::process::id()));
    std::fs::create_dir_all(&data_dir).unwrap();
    let config = NodeConfig { data_dir: data_dir.clone(), ..Local::for_tests().config };
    let node = Node::new(Box::<Deaf>::default(), config, Settings::default());
    let _sequencer = attached(&node, 4);
    node.local.queue.leave_only_the_end();
    node.local.link().unwrap().progress.set_seqno(5);
    let session = Trx::new(1);
    session.decide(passed(5, 4));
    session.lock().phase = Phase::Committed;

    node.disconnect();
    node.run_applier(HostCtx(0));
    let noted = || Grastate::read(&data_dir).map(|saved| saved.position.seqno);
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
    };
    let (own, other) = (link.node, 77);
    let view = View { number: 1, members: Vec::new(), primary: None };
    sequencer.apply(Committed::View { index: 1, view }).unwrap();
    let waits = Arc::new(Handle::Local(Trx::new(1)));
    link.expect(3, waits.clone());
    node.give_up_connection();
    let queued = node.queued().0;

    sequencer.apply(entry(2, other)).unwrap();
    sequencer.apply(entry(3, own)).unwrap();
    sequencer.restore(9, snapshot_at(18)).unwrap();
    assert_eq!(node.queued().0, queued, "nobody would apply it");
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
