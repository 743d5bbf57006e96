//! What this machine alone knows of a cluster.

use super::*;
use crate::cluster::{Account, Role, State};
use crate::server::ProcessId;
use quorate_live::port::MemberReport;
use quorate_live::OperatorIdentity;
use rustix::process::{geteuid, Signal};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Two servers and a logger, none of which runs.
fn cluster(name: &str) -> Cluster {
    let account = if geteuid().is_root() { "root".into() } else { Account::choose().unwrap().name };
    let mut state = State::new(3400, &account);
    state.provider = PathBuf::from("/lib/libquorate.so");
    [Role::Voter, Role::Voter, Role::Logger].into_iter().for_each(|role| state.add_node(role));
    let dir = std::env::temp_dir().join(format!("quorate-here-{name}-{}", std::process::id()));
    Cluster { dir, account: Account::named(&account).unwrap(), state }
}

fn look(cluster: &Cluster) -> Survey {
    let operating = Arc::new(Operating::new(&OperatorIdentity::Anonymous).unwrap());
    survey(cluster, &[], &operating).unwrap()
}

struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have ended.
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn where_nothing_runs_all_nodes_are_shown_and_nothing_accepts_writes() {
    let cluster = cluster("down");
    let seen = look(&cluster);
    let states: Vec<(&str, Option<&str>)> =
        seen.nodes.iter().map(|node| (node.state.as_str(), node.role.as_deref())).collect();
    assert_eq!(states, [("Down", None), ("Down", None), ("Down", Some("Logger"))]);
    assert_eq!((seen.health, seen.dir.as_ref()), (Health::NoPrimary, Some(&cluster.dir)));
    assert_eq!(seen.troubles[0], "node1 does not run; start it with: quorate start node1");
    assert_eq!(seen.troubles.len(), 3);
    assert_eq!(
        seen.to_string().lines().take(2).collect::<Vec<_>>(),
        [
            "NODE   ADDRESS         ROLE    STATE  SEQNO  LAG  LOG  ZONE  PRIO  RELEASE",
            "node1  127.0.0.1:3410  -       Down   -      -    -    -     -     -"
        ]
    );
    let shown = serde_json::to_value(&seen).unwrap();
    assert!(shown["nodes"][0]["pid"].is_null() && shown["nodes"][2]["address"].is_null());
}

#[test]
fn a_process_that_is_stopped_is_not_waited_for() {
    let mut cluster = cluster("paused");
    let sleeper = Sleeper(Command::new("sleep").arg("60").spawn().unwrap());
    let process = ProcessId::of(sleeper.0.id()).unwrap();
    process.signal(Signal::STOP).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while process.activity() != Activity::Paused {
        assert!(Instant::now() < end, "it does not stop");
        thread::sleep(Duration::from_millis(5));
    }
    cluster.node_state(2).process = Some(process);
    let seen = look(&cluster);
    assert_eq!(seen.nodes[1].state, "Paused");
    let told = seen.troubles.join("\n");
    assert!(told.contains(&format!("kill -CONT {}", process.pid)), "{told}");
}

#[test]
fn a_node_that_runs_and_answers_nobody_is_told_so() {
    let mut cluster = cluster("silent");
    for number in [1, 3] {
        cluster.node_state(number).process = Some(ProcessId::own().unwrap());
    }
    let seen = look(&cluster);
    let states: Vec<&str> = seen.nodes.iter().map(|node| node.state.as_str()).collect();
    assert_eq!(states, ["No answer", "Down", "No answer"]);
    assert_eq!(seen.nodes[0].here.as_ref().unwrap().pid, Some(std::process::id() as i32));
    assert!(seen.troubles[0].starts_with("node1 does not answer"), "{:?}", seen.troubles);
}

#[test]
fn of_two_members_at_a_nodes_address_it_is_the_one_that_answers() {
    let node = cluster("twice").node(1);
    let member = |name: &str, address: String, answers: bool| NodeSurvey {
        name: name.into(),
        member: Some(MemberReport { address, ..MemberReport::default() }),
        own: answers.then(Default::default),
        ..NodeSurvey::default()
    };
    let at = node.group_address();
    let mut members = vec![
        member("new", at.clone(), true),
        member("former", at, false),
        member("other", "127.0.0.1:1".into(), true),
    ];
    assert_eq!(take(&mut members, &node).unwrap().name, "new");
    assert_eq!(take(&mut members, &node).unwrap().name, "former");
    assert!(take(&mut members, &node).is_none());
    assert_eq!(members[0].name, "other");
}
