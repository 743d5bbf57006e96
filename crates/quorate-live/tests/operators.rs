//! Operators on the group's own port: whom a member lets in, and what it does for them.

mod common;

use common::{in_time, Cluster, Node};
use quorate_live::port::{
    Answer, FailoverWord, MemberChange, Operating, OwnReport, Refused, Report, Request, RoleWord,
    RulesChange, Unanswered, Why,
};
use quorate_live::{
    Credential, OperatorIdentity, Operators, Privilege, Secret, SecretOptions, Security,
};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A secret's file, and what is made of it.
struct Keeper(PathBuf);

impl Keeper {
    fn new(name: &str) -> Keeper {
        let file =
            std::env::temp_dir().join(format!("quorate-keeper-{name}-{}", std::process::id()));
        let _absent = fs::remove_file(&file);
        Secret::new().unwrap().write(&file).unwrap();
        Keeper(file)
    }

    fn security(&self) -> Security {
        Security::Secret(SecretOptions { file: self.0.clone(), dynamic: false })
    }

    fn operator(&self, name: &str, privilege: Privilege) -> Operating {
        let credential = Credential::derive(name, privilege, &self.0).unwrap();
        Operating::new(&OperatorIdentity::Credential(credential)).unwrap()
    }

    fn started(&self, name: &str, count: usize) -> Cluster {
        Cluster::secured(name, count, |_| self.security())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _left = fs::remove_file(&self.0);
    }
}

fn ask(who: &Operating, node: &Node, request: Request) -> Answer {
    who.ask(&node.options.listen, &request).unwrap().answer
}

fn status(who: &Operating, node: &Node) -> Report {
    match ask(who, node, Request::Status) {
        Answer::Status(report) => *report,
        other => panic!("{other:?}"),
    }
}

fn refused(answer: Answer) -> Refused {
    match answer {
        Answer::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

fn switchover() -> Request {
    Request::Switchover { to: None }
}

#[test]
fn every_member_says_everything_it_knows() {
    let keeper = Keeper::new("status");
    let cluster = keeper.started("operators-status", 3);
    let ann = keeper.operator("ann", Privilege::Read);
    let leader = cluster.leader();
    for (at, node) in cluster.nodes.iter().enumerate() {
        node.wait("connections to all", |node| {
            status(&ann, node).members.iter().all(|member| member.connected)
        });
        let report = status(&ann, node);
        assert_eq!((&*report.operator, &*report.privilege), ("ann", "read"));
        assert_eq!(report.group_name, "operators-status");
        assert_eq!(report.group.len(), 36, "{}", report.group);
        assert_eq!(report.leading().unwrap().name, format!("n{leader}"));
        let names: Vec<_> = report.members.iter().map(|member| &*member.name).collect();
        assert!(["n0", "n1", "n2"].iter().all(|name| names.contains(name)), "{names:?}");
        assert!(report.members.iter().all(|member| member.role == "voter"));
        assert!(report.members.iter().any(|member| member.client_address == "client1"));
        let OwnReport { name, leads, primary, last_fault, server, log, .. } = report.own;
        assert_eq!((name, leads, primary), (format!("n{at}"), at == leader, true));
        assert_eq!((last_fault, server), (None, None));
        assert!(log.bytes > 0 && log.age_s.is_some());
        let known = report.members.iter().filter(|member| member.matched_index.is_some());
        assert_eq!(known.count(), if at == leader { 3 } else { 0 });
    }
}

#[test]
fn only_who_has_a_credential_of_this_group_is_let_in() {
    let (ours, theirs) = (Keeper::new("ours"), Keeper::new("theirs"));
    let cluster = ours.started("operators-others", 1);
    let node = &cluster.nodes[0];
    let ask = |who: &Operating| who.ask(&node.options.listen, &Request::Status);
    let answered = ask(&theirs.operator("ann", Privilege::All));
    let Err(Unanswered::Forbidden(reason)) = answered else { panic!("{answered:?}") };
    assert!(reason.contains("does not take this operator's credential"), "{reason}");
    // Complaints are few: this one has to come before the next stranger does.
    node.wait("the complaint", |node| node.has_line("nor a credential made of it"));
    let answered = ask(&Operating::new(&OperatorIdentity::Anonymous).unwrap());
    assert!(matches!(answered, Err(Unanswered::Forbidden(_))), "{answered:?}");
    assert!(ask(&ours.operator("ann", Privilege::All)).is_ok());
}

#[test]
fn who_may_only_look_gives_no_orders() {
    let keeper = Keeper::new("read");
    let cluster = keeper.started("operators-read", 2);
    let node = &cluster.nodes[cluster.leader()];
    let eve = keeper.operator("eve", Privilege::Read);
    let keep = vec![node.options.name.clone()];
    for order in [
        switchover(),
        Request::Isolate { isolated: true },
        Request::ForceQuorum { keep: keep.clone(), reason: "no".into() },
    ] {
        let Refused { why, reason } = refused(ask(&eve, node, order));
        assert_eq!(why, Why::Permission);
        assert!(reason.contains("eve") && reason.contains("nothing was done"), "{reason}");
    }
    assert!(node.status().is_leader);
    let plan = ask(&eve, node, Request::ForcePlan { keep });
    assert!(matches!(&plan, Answer::Plan(plan) if plan.refusal.is_some()), "{plan:?}");
}

#[test]
fn a_right_is_taken_by_the_list_at_once() {
    let keeper = Keeper::new("list");
    let cluster = keeper.started("operators-list", 1);
    let node = &cluster.nodes[0];
    let set = |list: &str| node.group().set_operators(list.parse::<Operators>().unwrap()).unwrap();
    let ann = keeper.operator("ann", Privilege::All);
    assert_eq!(status(&ann, node).privilege, "all");
    set("bob,ann:read");
    assert_eq!(status(&ann, node).privilege, "read");
    assert_eq!(refused(ask(&ann, node, switchover())).why, Why::Permission);
    for list in ["bob", "none"] {
        set(list);
        let answered = ann.ask(&node.options.listen, &Request::Status);
        let Err(Unanswered::Forbidden(reason)) = answered else { panic!("{answered:?}") };
        assert!(reason.contains("quorate.operators"), "{reason}");
    }
    set("");
    assert_eq!(status(&ann, node).privilege, "all");
    // Another secret is another credential, for everybody.
    fs::remove_file(&keeper.0).unwrap();
    Secret::new().unwrap().write(&keeper.0).unwrap();
    node.group().reload_security().unwrap();
    assert!(ann.ask(&node.options.listen, &Request::Status).is_err());
    assert!(keeper
        .operator("ann", Privilege::All)
        .ask(&node.options.listen, &Request::Status)
        .is_ok());
}

#[test]
fn orders_are_carried_out_by_the_leader_and_others_say_who_that_is() {
    let keeper = Keeper::new("orders");
    let cluster = keeper.started("operators-orders", 3);
    let ann = keeper.operator("ann", Privilege::All);
    let (leader, other) = (cluster.leader(), cluster.follower());
    let (leads, follows) = (&cluster.nodes[leader], &cluster.nodes[other]);
    let change = MemberChange {
        name: follows.options.name.clone(),
        priority: Some(70),
        zone: Some("eu".into()),
        role: Some(RoleWord::Learner),
    };
    let asked = ask(&ann, follows, Request::MemberSet(change.clone()));
    let (name, address) = (leads.options.name.clone(), leads.options.advertise.clone());
    assert_eq!(asked, Answer::AskLeader { name, address });
    assert_eq!(ask(&ann, leads, Request::MemberSet(change.clone())), Answer::Done);
    leads.wait("the line of who ordered it", |node| node.has_line(r#"by="ann" from="127.0.0.1""#));
    let report = status(&ann, leads);
    let altered = report.members.iter().find(|member| member.name == change.name).unwrap();
    assert_eq!((&*altered.role, altered.priority, &*altered.zone), ("learner", 70, "eu"));

    let rules = RulesChange { primary_failover: Some(FailoverWord::Wait), ..Default::default() };
    assert_eq!(ask(&ann, leads, Request::Rules(rules)), Answer::Done);
    assert_eq!(status(&ann, leads).rules.primary_failover, "wait");

    let wrong = Request::MemberRemove { name: "nobody".into() };
    let Refused { why, reason } = refused(ask(&ann, leads, wrong));
    assert!(why == Why::Order && reason.contains("no member is called nobody"), "{reason}");
    let third = 3 - leader - other;
    let name = cluster.nodes[third].options.name.clone();
    let to = Request::Switchover { to: Some(name.clone()) };
    let handed = in_time(|| ask(&ann, &cluster.nodes[cluster.leader()], to.clone()));
    assert_eq!(handed, Answer::Leads { name });
    let remove = Request::MemberRemove { name: follows.options.name.clone() };
    assert_eq!(ask(&ann, &cluster.nodes[third], remove), Answer::Done);
}

#[test]
fn every_member_shows_the_same_history_with_the_reasons() {
    let keeper = Keeper::new("history");
    let mut cluster = keeper.started("operators-history", 3);
    let reader = keeper.operator("monitor", Privilege::Read);
    let history = |node: &Node| match ask(&reader, node, Request::History) {
        Answer::History(history) => history,
        other => panic!("{other:?}"),
    };
    let told = |node: &Node, kind: &str, words: &str| {
        history(node).iter().any(|each| each.kind == kind && each.what.contains(words))
    };
    let (leader, other) = (cluster.leader(), cluster.follower());
    let (former, next) = {
        let name = |at: usize| cluster.nodes[at].options.name.clone();
        (name(leader), name(other))
    };
    let ann = keeper.operator("ann", Privilege::All);
    let to = Request::Switchover { to: Some(next.clone()) };
    in_time(|| ask(&ann, &cluster.nodes[cluster.leader()], to.clone()));
    let handed = format!(": {former} handed leadership over");
    for node in &cluster.nodes {
        node.wait("why another leads", |node| told(node, "leader", &handed));
        node.wait("what was ordered", |node| told(node, "order", "switchover"));
    }
    cluster.nodes[other].kill();
    let left = [leader, 3 - leader - other];
    for at in left {
        let node = &cluster.nodes[at];
        let ended = format!("the process of {next}, which led before, had ended");
        node.wait("why another leads", |node| told(node, "leader", &ended));
        let gone = format!("{next} is gone: its process has ended");
        node.wait("who is gone", |node| told(node, "view", &gone));
    }
    let [first, second] = left.map(|at| history(&cluster.nodes[at]));
    assert_eq!(first, second);
    assert!(first.is_sorted_by(|a, b| a.index < b.index), "{first:?}");
    let given = first.iter().filter_map(|each| each.order.clone()).find(|order| order.done);
    assert_eq!(given.unwrap().by, "ann");
}

#[test]
fn without_a_quorum_members_answer_and_force_is_told_to_those_that_are_left() {
    let keeper = Keeper::new("force");
    let mut cluster = keeper.started("operators-force", 3);
    let ann = keeper.operator("ann", Privilege::All);
    cluster.nodes[1].kill();
    cluster.nodes[2].kill();
    let node = &cluster.nodes[0];
    node.wait("to have no leader", |node| node.status().leader.is_none());
    node.wait("their ends", |node| node.group().plan_force_quorum(&["n0"]).refusal.is_none());
    let report = status(&ann, node);
    assert_eq!(report.leader, None);
    let reached = report.members.iter().filter(|member| member.connected);
    assert_eq!(reached.map(|member| &*member.name).collect::<Vec<_>>(), ["n0"]);
    let Refused { why, reason } = refused(ask(&ann, node, switchover()));
    assert!(why == Why::Order && reason.contains("no leader"), "{reason}");
    let keep = vec!["n0".to_owned()];
    let Answer::Plan(plan) = ask(&ann, node, Request::ForcePlan { keep: keep.clone() }) else {
        panic!("no plan")
    };
    assert_eq!((plan.refusal, plan.lost.len()), (None, 2));
    let order = Request::ForceQuorum { keep, reason: "as the test wants it".into() };
    assert!(matches!(ask(&ann, node, order), Answer::Plan(_)));
    assert_eq!(status(&ann, node).leading().unwrap().name, "n0");
}

#[test]
fn who_has_cut_a_member_off_hears_of_it_and_lets_it_go_on() {
    let keeper = Keeper::new("isolate");
    let cluster = keeper.started("operators-isolate", 3);
    let ann = keeper.operator("ann", Privilege::All);
    let node = &cluster.nodes[cluster.follower()];
    assert_eq!(ask(&ann, node, Request::Isolate { isolated: true }), Answer::Done);
    node.wait("to be cut off", |node| !node.status().primary);
    let own = status(&ann, node).own;
    assert!(own.isolated && !own.primary);
    assert_eq!(ask(&ann, node, Request::Isolate { isolated: false }), Answer::Done);
    cluster.await_members(&[0, 1, 2]);
}

#[test]
fn one_thing_after_the_other_may_be_asked_as_fast_as_it_is_answered() {
    let keeper = Keeper::new("brisk");
    let cluster = keeper.started("operators-brisk", 1);
    let ann = keeper.operator("ann", Privilege::All);
    let ask = |times: usize| {
        let asked = Instant::now();
        (0..times).for_each(|_| drop(status(&ann, &cluster.nodes[0])));
        asked.elapsed()
    };
    let brisk = ask(40);
    let paced = ask(30);
    println!("40 questions, a connection each, in {brisk:?}; 30 more in {paced:?}");
    assert!(brisk + paced > Duration::from_millis(70 * 50 - 2_100), "by and by at a pace");
}

#[test]
fn on_one_host_nothing_is_to_be_shown() {
    let mut cluster = Cluster::new("operators-plain", 1);
    cluster.nodes[0].start().unwrap();
    cluster.nodes[0].joined();
    let who = Operating::new(&OperatorIdentity::Anonymous).unwrap();
    let report = status(&who, &cluster.nodes[0]);
    assert_eq!((&*report.operator, &*report.privilege), ("anonymous", "all"));
    cluster.nodes[0].group().set_operators("anonymous:read".parse().unwrap()).unwrap();
    assert_eq!(refused(ask(&who, &cluster.nodes[0], switchover())).why, Why::Permission);
    cluster.nodes[0].group().set_operators("none".parse().unwrap()).unwrap();
    let answered = who.ask(&cluster.nodes[0].options.listen, &Request::Status);
    assert!(matches!(answered, Err(Unanswered::Forbidden(_))), "{answered:?}");
}

#[test]
fn a_member_that_hangs_is_not_waited_for() {
    let keeper = Keeper::new("hung");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let held = std::thread::spawn(move || {
        // As a stopped process: the system takes the connection, and nobody reads it.
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = Vec::new();
        let _ended = stream.read_to_end(&mut heard);
    });
    let began = Instant::now();
    let answered = keeper.operator("ann", Privilege::All).ask(&address, &Request::Status);
    assert!(matches!(answered, Err(Unanswered::NotReached(_))), "{answered:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    held.join().unwrap();
}
