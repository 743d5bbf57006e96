//! Loggers, learners and priorities among real members; expulsion; a majority given up for lost.

mod common;

use common::{in_time, Cluster, Node};
use quorate_consensus::{MemberId, MemberRole, Primaries, Rules};
use quorate_live::{Alteration, GroupError, OrderError};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Two data members and a logger.
fn with_logger(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, 3);
    cluster.nodes[2].options.role = MemberRole::Logger;
    for at in 0..3 {
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].joined();
    }
    cluster.await_members(&[0, 1, 2]);
    cluster
}

fn role(role: MemberRole) -> Alteration {
    Alteration { role: Some(role), ..Alteration::default() }
}

fn votes(node: &Node, of: &Node) -> bool {
    node.status().voters.contains(&of.id())
}

#[test]
fn two_data_members_and_a_logger_lose_either_of_the_two() {
    let mut cluster = with_logger("logger");
    assert_eq!(cluster.nodes[0].status().loggers, [cluster.nodes[2].id()]);
    let leader = cluster.nodes[cluster.leader()].operator();
    for (at, wanted) in [(2, MemberRole::Voter), (2, MemberRole::Learner), (1, MemberRole::Logger)]
    {
        let name = &cluster.nodes[at].options.name;
        let asked = leader.alter_member(name, &role(wanted), MINUTE);
        let Err(GroupError::Order(OrderError::Membership { reason, .. })) = asked else {
            panic!("{asked:?}")
        };
        assert!(reason.contains("never becomes"), "{reason}");
    }
    let mut proposals: Vec<_> = (0..20).map(|_| cluster.nodes[0].propose()).collect();
    // What was not applied was promised to nobody, and may end with the node that proposed it.
    cluster.nodes[0].await_applied(&proposals);
    for victim in [0, 1] {
        let other = 1 - victim;
        cluster.nodes[victim].kill();
        proposals.push(cluster.nodes[other].propose());
        cluster.nodes[other].await_applied(&proposals);
        cluster.nodes[other]
            .wait("leadership: a logger only hands over", |node| node.status().is_leader);
        cluster.nodes[victim].start().unwrap();
        cluster.await_members(&[0, 1, 2]);
        cluster.await_applied(&proposals);
    }
}

/// Of the data members, the one that leads and the other. A logger leads for a moment at most.
fn data_members(cluster: &Cluster) -> (usize, usize) {
    let leads = Cell::new(2);
    cluster.nodes[2].wait("that a data member leads", |_| {
        leads.set(cluster.leader());
        leads.get() != 2
    });
    (leads.get(), 1 - leads.get())
}

/// A snapshot of a logger has no rows.
#[test]
fn a_logger_keeps_what_the_other_server_lacks_however_much_that_is() {
    let mut cluster = with_logger("kept");
    let (leader, other) = data_members(&cluster);
    let had = cluster.nodes[2].status().last_index;
    cluster.nodes[other].kill();
    let (mut proposals, until) = (Vec::new(), Instant::now() + MINUTE);
    while cluster.nodes[leader].status().first_index <= had + 1 {
        assert!(Instant::now() < until, "the log of the leader was not cut off");
        proposals.extend((0..16).map(|_| cluster.nodes[leader].propose_padded(64 << 10)));
        cluster.nodes[leader].await_applied(&proposals);
    }
    assert!(cluster.nodes[2].status().first_index <= had + 1);
    cluster.nodes[leader].kill();
    cluster.nodes[other].start().unwrap();
    cluster.nodes[other].await_applied(&proposals);
}

#[test]
fn what_only_the_logger_has_is_not_lost() {
    let mut cluster = with_logger("logger");
    let (leader, other) = data_members(&cluster);
    cluster.nodes[other].kill();
    let proposals: Vec<_> = (0..20).map(|_| cluster.nodes[leader].propose()).collect();
    cluster.nodes[leader].await_applied(&proposals);
    cluster.nodes[leader].kill();
    cluster.nodes[other].start().unwrap();
    cluster.nodes[other].await_applied(&proposals);
    cluster.nodes[other].wait("leadership", |node| node.status().is_leader);
}

#[test]
fn roles_and_priorities_change_while_the_group_works() {
    let cluster = Cluster::started("alter", 3);
    let leader = cluster.leader();
    let [first, second] = [1, 2].map(|step| (leader + step) % 3);
    let lead = cluster.nodes[leader].operator();
    let name = |at: usize| cluster.nodes[at].options.name.clone();

    let asked = cluster.nodes[first].operator().alter_member(
        &name(second),
        &role(MemberRole::Learner),
        MINUTE,
    );
    let Err(GroupError::Order(OrderError::Membership { reason, .. })) = asked else {
        panic!("{asked:?}")
    };
    assert!(reason.contains(&name(leader)), "it says who leads: {reason}");
    let asked = lead.alter_member("nobody", &role(MemberRole::Learner), MINUTE);
    assert!(asked.unwrap_err().to_string().contains("no member is called nobody"));

    lead.alter_member(&name(first), &role(MemberRole::Learner), MINUTE).unwrap();
    assert!(!votes(&cluster.nodes[leader], &cluster.nodes[first]));
    cluster.nodes[leader]
        .wait("a learner stays one", |node| node.status().learners == [cluster.nodes[first].id()]);
    lead.alter_member(&name(first), &role(MemberRole::Voter), MINUTE).unwrap();
    cluster.await_members(&[0, 1, 2]);

    let refused = lead.set_rules(Rules { zones_min: 2, ..Rules::default() }, MINUTE);
    assert!(refused.unwrap_err().to_string().contains("zones"));
    let west = Alteration { zone: Some("west".into()), ..Alteration::default() };
    lead.alter_member(&name(first), &west, MINUTE).unwrap();
    lead.set_rules(Rules { zones_min: 2, ..Rules::default() }, MINUTE).unwrap();

    let first_choice = Alteration { priority: Some(90), ..Alteration::default() };
    lead.alter_member(&name(second), &first_choice, MINUTE).unwrap();
    cluster.nodes[second].wait("leadership", |node| node.status().is_leader);
    let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
}

/// Taking leave takes a member out of the configuration. Its options are for a member that is new.
#[test]
fn a_member_that_took_leave_comes_back_as_what_operators_had_made_of_it() {
    let mut cluster = Cluster::started("back", 3);
    let lead = cluster.leader();
    let [learner, preferred] = [1, 2].map(|step| (lead + step) % 3);
    let alter = |at: usize, alteration: Alteration| {
        let name = &cluster.nodes[at].options.name;
        cluster.nodes[lead].operator().alter_member(name, &alteration, MINUTE).unwrap();
    };
    alter(learner, role(MemberRole::Learner));
    alter(
        preferred,
        Alteration { priority: Some(49), zone: Some("west".into()), ..role(MemberRole::Voter) },
    );
    let said = cluster.nodes[lead].status().last_index;
    // Logs are cut off below snapshots meanwhile: what was said of both is not in an entry any more. What a member may
    // let go hangs on what it knows of the others at that moment, so more snapshots may have to follow.
    let purged = |at: usize| cluster.nodes[at].status().first_index > said;
    let until = Instant::now() + MINUTE;
    while ![learner, preferred].into_iter().all(purged) {
        assert!(Instant::now() < until, "no log was cut off");
        let proposals: Vec<_> =
            (0..16).map(|_| cluster.nodes[lead].propose_padded(64 << 10)).collect();
        cluster.await_applied(&proposals);
    }
    for at in [learner, preferred] {
        cluster.nodes[at].group().leave(MINUTE).unwrap();
        cluster.nodes[at].kill();
        let id = cluster.nodes[at].id();
        let gone = |node: &Node| !node.status().config.members.contains_key(&id);
        cluster.nodes[lead].wait("its leave", gone);
        cluster.nodes[at].start().unwrap();
        cluster.nodes[at].joined();
    }
    let config = cluster.nodes[lead].status().config;
    let is = |at: usize| {
        let info = &config.members[&cluster.nodes[at].id()];
        (info.role, info.priority, info.zone.as_str())
    };
    assert_eq!(is(learner), (MemberRole::Learner, 50, ""));
    assert_eq!(is(preferred), (MemberRole::Voter, 49, "west"));
}

/// It carries the order out, and is no leader any more when that is done.
#[test]
fn a_leader_is_told_that_it_has_no_vote_any_more() {
    let cluster = Cluster::started("demoted", 3);
    let demoted = &cluster.nodes[cluster.leader()];
    let name = &demoted.options.name;
    demoted.operator().alter_member(name, &role(MemberRole::Learner), MINUTE).unwrap();
    assert!(!votes(demoted, demoted));
    let next = &cluster.nodes[cluster.leader()];
    assert_ne!(next.id(), demoted.id());
    next.operator().alter_member(name, &role(MemberRole::Voter), MINUTE).unwrap();
    next.wait("its vote", |node| votes(node, demoted));
}

#[test]
fn views_name_the_single_primary_wherever_leadership_goes() {
    let mut cluster = Cluster::new("primary", 3);
    for (at, node) in cluster.nodes.iter_mut().enumerate() {
        // The founder's holds.
        let primaries = if at == 0 { Primaries::Single } else { Primaries::Multi };
        node.options.rules = Rules { primaries, ..Rules::default() };
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    let named = |primary: Option<MemberId>| {
        for node in &cluster.nodes {
            node.wait("a view that names the primary", |node| node.view().primary == primary);
        }
    };
    let leader = cluster.leader();
    named(Some(cluster.nodes[leader].id()));
    let next = (leader + 1) % 3;
    let name = &cluster.nodes[next].options.name;
    let hand_over = || cluster.nodes[cluster.leader()].operator().switchover(Some(name), MINUTE);
    assert_eq!(in_time(hand_over).unwrap(), *name);
    assert_eq!(cluster.leader(), next);
    named(Some(cluster.nodes[next].id()));
    cluster.nodes[next].operator().set_rules(Rules::default(), MINUTE).unwrap();
    named(None);
}

#[test]
fn a_voter_gone_for_long_is_expelled_and_admitted_again() {
    let mut cluster = Cluster::new("expel", 3);
    for node in &mut cluster.nodes {
        node.options.expel_timeout = Some(Duration::from_secs(2));
        node.start().unwrap();
        node.joined();
    }
    cluster.await_members(&[0, 1, 2]);
    cluster.nodes[2].kill();
    cluster.await_members(&[0, 1]);
    let proposal = cluster.nodes[0].propose();
    cluster.await_applied(std::slice::from_ref(&proposal));
    cluster.nodes[2].start().unwrap();
    cluster.await_members(&[0, 1, 2]);
    cluster.await_applied(&[proposal]);
    // The last two stay two: neither can tell whether it is the other that is gone.
    cluster.nodes[1].kill();
    cluster.nodes[2].kill();
    cluster.nodes[0].wait("no leader", |node| node.status().leader.is_none());
    assert_eq!(cluster.nodes[0].status().voters.len(), 3);
}

#[test]
fn a_lost_majority_is_given_up_by_force_and_stays_out() {
    let mut cluster = Cluster::started("force", 3);
    let mut proposals: Vec<_> = (0..10).map(|_| cluster.nodes[0].propose()).collect();
    cluster.await_applied(&proposals);
    let survivor = cluster.follower();
    let node = &cluster.nodes[survivor];
    let name = node.options.name.clone();
    let plan = node.group().plan_force_quorum(&[&name]);
    assert!(plan.refusal.is_some_and(|why| why.contains("a leader is in office")));
    let lost: Vec<_> = (0..3).filter(|at| *at != survivor).collect();
    for at in &lost {
        cluster.nodes[*at].kill();
    }
    let node = &cluster.nodes[survivor];
    node.wait("no leader", |node| node.status().leader.is_none());
    let other = cluster.nodes[lost[0]].options.name.clone();
    let refused = node.operator().force_quorum(&[&other], "test", MINUTE);
    assert!(matches!(refused, Err(GroupError::Order(OrderError::Forced { .. }))), "{refused:?}");
    node.wait("their ends", |node| node.group().plan_force_quorum(&[&name]).refusal.is_none());
    let plan = node.operator().force_quorum(&[&name], "both disks burnt", MINUTE).unwrap();
    assert_eq!((plan.kept.len(), plan.lost.len()), (1, 2));
    let audit = node.status().config.audit;
    assert!(audit.contains("both disks burnt") && audit.contains(&other), "{audit}");
    proposals.push(node.propose());
    node.await_applied(&proposals);

    // With its log a lost one is refused; without, it is somebody new.
    cluster.nodes[lost[0]].start().unwrap();
    cluster.nodes[survivor].wait("a refusal", |_| {
        cluster.nodes[lost[0]].has_line("was removed from the group for good")
    });
    cluster.nodes[lost[0]].options.bootstrap = false;
    cluster.nodes[lost[0]].wipe();
    cluster.nodes[lost[0]].start().unwrap();
    cluster.await_members(&[survivor, lost[0]]);
    cluster.await_applied(&proposals);
}

#[test]
fn a_leader_whose_host_hangs_hands_over_until_it_goes_on() {
    let cluster = Cluster::started("hang", 3);
    let leader = cluster.leader();
    let node = &cluster.nodes[leader];
    node.shared.commit.store(7, Ordering::SeqCst);
    node.wait("another leader", |node| !node.status().is_leader);
    assert!(node.has_line("in the middle of committing seqno 7"));
    let proposals: Vec<_> = cluster.nodes.iter().map(|node| node.propose()).collect();
    cluster.await_applied(&proposals);
    node.shared.commit.store(0, Ordering::SeqCst);
    node.wait("its going on", |node| node.has_line("this server goes on"));
}
