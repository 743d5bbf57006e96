//! What is shown of members that say this and that.

use super::*;
use quorate_live::port::{Fault, LogReport, Unanswered};
use quorate_live::ServerReport;

fn member(id: &str, role: &str) -> MemberReport {
    MemberReport {
        id: id.into(),
        name: format!("node-{id}"),
        address: format!("{id}:4567"),
        role: role.into(),
        priority: 50,
        votes: 1,
        connected: true,
        ..MemberReport::default()
    }
}

fn report(id: &str, term: u64, leads: bool, seqno: Option<i64>) -> Report {
    let server = seqno.map(|seqno| ServerReport {
        state: "Synced".into(),
        ready: true,
        seqno,
        committed: seqno,
        ..ServerReport::default()
    });
    Report {
        release: "0.2.0".into(),
        group_name: "shop".into(),
        term,
        level: 2,
        leader: leads.then(|| id.to_owned()),
        members: vec![member("a", "voter"), member("b", "voter"), member("c", "logger")],
        own: OwnReport { id: id.into(), leads, primary: true, server, ..OwnReport::default() },
        ..Report::default()
    }
}

fn answers(reports: Vec<Report>) -> Answers {
    let silent = ["a", "b", "c"].map(|id| {
        let error = Unanswered::NotReached("connection refused".into());
        (format!("{id}:4567"), Err(error))
    });
    let mut answers: Answers = silent.into();
    answers
        .extend(reports.into_iter().map(|report| (format!("{}:4567", report.own.id), Ok(report))));
    answers
}

fn survey(reports: Vec<Report>) -> Survey {
    let answers = answers(reports);
    Survey::of(best(&answers).unwrap(), &answers).judged()
}

#[test]
fn a_group_that_is_well_says_so() {
    let well = survey(vec![
        report("a", 7, true, Some(12)),
        report("b", 7, false, Some(10)),
        report("c", 7, false, None),
    ]);
    assert_eq!((well.health, well.leader.as_deref()), (Health::Synced, Some("node-a")));
    let shown = well.to_string();
    assert_eq!(
        shown,
        "shop, term 7, level 2\n\
         NODE    ADDRESS  ROLE      STATE   SEQNO  LAG  LOG  ZONE  PRIO  RELEASE\n\
         node-a  a:4567   Leader    Synced  12     0    0 B  -     50    0.2.0\n\
         node-b  b:4567   Follower  Synced  10     2    0 B  -     50    0.2.0\n\
         node-c  c:4567   Logger    Synced  -      -    0 B  -     50    0.2.0\n\
         \nNothing is wrong.\n"
    );
}

#[test]
fn who_does_not_answer_is_named_with_the_reason() {
    let mut behind = report("a", 7, true, Some(12));
    behind.own.certificate_days = Some(3);
    behind.own.server.as_mut().unwrap().lag_ms = 93_210;
    let degraded = survey(vec![behind, report("b", 7, false, Some(5000))]);
    assert_eq!(degraded.health, Health::Degraded);
    assert_eq!(degraded.nodes[0].lag_in_words().as_deref(), Some("4988, 93.2 s"));
    let troubles = degraded.troubles.join("\n");
    for part in [
        "node-c does not answer at c:4567: connection refused",
        "node-a is behind by 4988 write sets, the first of them 93 s old",
        "node-a has a certificate that expires in 3 days",
    ] {
        assert!(troubles.contains(part), "{troubles}");
    }
}

#[test]
fn without_a_leader_the_votes_are_counted() {
    let mut alone = report("b", 9, false, Some(5));
    let still_ready = survey(vec![alone.clone()]);
    assert_eq!(still_ready.health, Health::NoPrimary);
    alone.own.primary = false;
    if let Some(server) = &mut alone.own.server {
        server.ready = false;
    }
    let lost = survey(vec![alone]);
    assert_eq!(lost.health, Health::NoPrimary);
    let troubles = lost.troubles.join("\n");
    assert!(troubles.contains("members with 1 of 3 votes answer, a majority is 2"), "{troubles}");
    assert!(
        troubles.contains("force-quorum") && troubles.contains("node-b is not connected"),
        "{troubles}"
    );
}

#[test]
fn where_no_server_takes_writes_none_is_the_primary() {
    let says = |writes| {
        let mut reports = ["a", "b", "c"].map(|id| {
            let mut report = report(id, 7, id == "a", (id != "c").then_some(5));
            report.own.server.iter_mut().for_each(|server| server.writes = Some(false));
            report
        });
        reports[0].own.server.as_mut().unwrap().writes = Some(writes);
        survey(reports.into())
    };
    assert_eq!(says(true).health, Health::Synced);
    let refusing = says(false);
    assert_eq!(refusing.health, Health::NoPrimary);
    let [trouble] = &refusing.troubles[..] else { panic!("{:?}", refusing.troubles) };
    assert!(trouble.contains("no server takes writes, though node-a leads"), "{trouble}");
}

#[test]
fn a_leader_that_does_not_answer_here_may_take_writes() {
    let mut secondary = report("b", 7, false, Some(5));
    secondary.leader = Some("a".into());
    secondary.own.server.as_mut().unwrap().writes = Some(false);
    let logger = Report { leader: Some("a".into()), ..report("c", 7, false, None) };
    let seen = survey(vec![secondary, logger]);
    assert_eq!((seen.health, seen.leader.as_deref()), (Health::Degraded, Some("node-a")));
    assert!(
        seen.troubles.iter().all(|trouble| !trouble.contains("no server")),
        "{:?}",
        seen.troubles
    );
}

#[test]
fn the_newest_term_is_believed_then_who_leads() {
    let old_leader = report("a", 6, true, Some(1));
    let mut new = report("b", 7, true, Some(2));
    new.members.pop();
    let follower = report("c", 7, false, None);
    let seen = survey(vec![old_leader, new, follower]);
    assert_eq!(seen.leader.as_deref(), Some("node-b"));
    assert_eq!(seen.nodes.len(), 2);
}

#[test]
fn how_far_a_log_reaches_back_and_what_went_wrong_long_ago_is_shown() {
    let mut old = report("a", 7, true, Some(1));
    old.own.log = LogReport { bytes: 64 << 20, age_s: Some(6 * 3600), ..LogReport::default() };
    let fault = |seconds_ago| Some(Fault { message: "no space".into(), seconds_ago });
    old.own.last_fault = fault(2 * 86_400);
    let mut recent = report("b", 7, false, Some(1));
    recent.own.last_fault = fault(600);
    let seen = survey(vec![old, recent, report("c", 7, false, None)]);
    assert_eq!(seen.troubles, ["node-b had an error 10 min ago: no space"]);
    let shown = seen.to_string();
    for part in ["64.0 MiB, 6 h", "\nLast error of node-a, 2 d ago: no space\n"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn the_page_names_every_field() {
    let mut full = report("a", 7, true, Some(1));
    full.own.last_fault = Some(Fault::default());
    full.own.certificate_days = Some(1);
    let mut seen = survey(vec![full]);
    seen.dir = Some("/d".into());
    seen.nodes[0].here = Some(Here::default());
    seen.nodes[0].own.as_mut().unwrap().log.sync_latency = Some(Default::default());
    let server = seen.nodes[0].own.as_mut().unwrap().server.as_mut().unwrap();
    (server.commits, server.commit_latency) = (Some(Default::default()), Some(Default::default()));
    seen.nodes[0].member.as_mut().unwrap().standing = Some(Default::default());
    crate::view::page::names_fields_of(&serde_json::to_value(&seen).unwrap());
}
