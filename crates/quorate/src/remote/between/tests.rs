//! What members say of each other.

use super::super::survey::Survey;
use super::*;
use quorate_live::port::OwnReport;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What the member of this name says: all are voters, and it is connected to these.
fn report(name: &str, connected: &[&str]) -> Report {
    let member = |other: &str| MemberReport {
        id: other.into(),
        name: other.into(),
        address: format!("{other}:4567"),
        role: "voter".into(),
        priority: 50,
        votes: 1,
        connected: connected.contains(&other) || other == name,
        levels: Some((1, 2)),
        ..MemberReport::default()
    };
    Report {
        release: "0.2.0".into(),
        level: 2,
        leader: Some("a".into()),
        members: NAMES.map(member).to_vec(),
        own: OwnReport { id: name.into(), primary: true, ..OwnReport::default() },
        ..Report::default()
    }
}

fn survey(reports: &[Report]) -> Survey {
    let mut answers: Answers = NAMES
        .map(|name| (format!("{name}:4567"), Err(Unanswered::NotReached("refused".into()))))
        .into();
    for report in reports {
        answers.insert(format!("{}:4567", report.own.id), Ok(report.clone()));
    }
    Survey::of(&reports[0], &answers)
}

#[test]
fn a_link_is_cut_if_both_ends_say_so() {
    let told = |by_b: &[&str], by_c: &[&str]| {
        let all = [report("a", &["b", "c"]), report("b", by_b), report("c", by_c)];
        troubles(&survey(&all)).join("\n")
    };
    assert_eq!(told(&["a", "c"], &["a", "b"]), "");
    assert_eq!(told(&["a"], &["a", "b"]), "", "it is being made, or ends");
    let cut = told(&["a"], &["a"]);
    assert!(cut.starts_with("b (b:4567) and c (c:4567) do not reach each other"), "{cut}");
}

#[test]
fn who_is_cut_off_by_order_has_no_cut_links() {
    let mut isolated = report("c", &[]);
    isolated.own.isolated = true;
    let all = [report("a", &["b"]), report("b", &["a"]), isolated];
    assert_eq!(troubles(&survey(&all)), Vec::<String>::new());
}

#[test]
fn where_members_are_missing_it_is_told_that_none_is_to_spare() {
    let two = troubles(&survey(&[report("a", &["b"]), report("b", &["a"])])).join("\n");
    let part = "if one more voter is lost, nothing can be written: members with 2 of 3 votes";
    assert!(two.starts_with(part) && two.contains("Bring c back"), "{two}");

    // The leader is connected to it: it is this command alone that does not reach it.
    let unreached = troubles(&survey(&[report("a", &["b", "c"]), report("b", &["a", "c"])]));
    assert_eq!(unreached, Vec::<String>::new());
    // It answers, and is connected to nobody.
    let mut alone = report("c", &[]);
    alone.own.primary = false;
    let cut_off = troubles(&survey(&[report("a", &["b"]), report("b", &["a"]), alone]));
    assert!(cut_off.iter().any(|told| told.starts_with(part)), "{cut_off:?}");

    // One vote of five is not there, and three are with a single member.
    let mut first = report("a", &["b"]);
    first.members[0].votes = 3;
    let weighted = troubles(&survey(&[first, report("b", &["a"])])).join("\n");
    assert!(weighted.starts_with("if a is lost, too"), "{weighted}");

    // That there is no majority is told elsewhere.
    let mut alone = report("a", &[]);
    alone.leader = None;
    assert_eq!(troubles(&survey(&[alone])), Vec::<String>::new());
}

#[test]
fn two_votes_that_are_all_there_are_worth_a_note() {
    let well = [report("a", &["b", "c"]), report("b", &["a", "c"]), report("c", &["a", "b"])];
    assert_eq!(notes(&survey(&well)), Vec::<String>::new());
    let mut learner = well.clone();
    learner[0].members[2].role = "learner".into();
    let seen = survey(&learner);
    assert_eq!(troubles(&seen), Vec::<String>::new());
    let noted = notes(&seen).join("\n");
    assert!(noted.starts_with("if a or b is lost") && noted.contains("logger"), "{noted}");
    let mut single = report("a", &[]);
    single.members.truncate(1);
    assert_eq!(notes(&survey(&[single])), Vec::<String>::new());
}

#[test]
fn releases_that_differ_and_a_level_that_waits_are_noted() {
    let mut all = [report("a", &["b", "c"]), report("b", &["a", "c"]), report("c", &["a", "b"])];
    all[2].release = "0.1.0".into();
    all[2].members[2].levels = Some((1, 1));
    // Others have not heard of it.
    all[0].members[2].levels = None;
    all[0].level = 1;
    let noted = notes(&survey(&all));
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(noted[0].contains("different releases (c 0.1.0; a, b 0.2.0)"), "{noted:?}");
    assert!(noted[1].starts_with("the group stays at feature level 1"), "{noted:?}");
    assert!(noted[1].contains("to others: c runs an older release"), "{noted:?}");

    all[0].level = 2;
    assert_eq!(notes(&survey(&all)).len(), 1, "a level that is in force waits for nobody");
}

#[test]
fn a_seed_that_does_not_answer_and_is_no_member_is_told_of() {
    let mut known = report("a", &["a"]);
    known.members.truncate(2);
    (known.members[0].address, known.members[1].address) =
        ("127.0.0.1:4567".into(), "127.0.0.2:4567".into());
    let seeds = ["127.0.0.1:4567", "127.0.0.2:4567", "127.0.0.3:4567", "127.0.0.4:4567"];
    let seeds = seeds.map(str::to_owned);
    let silent = || Err(Unanswered::NotReached("refused".into()));
    let mut answers: Answers = seeds.clone().map(|seed| (seed, silent())).into();
    answers.insert(seeds[0].clone(), Ok(known.clone()));
    answers.insert(seeds[3].clone(), Err(Unanswered::Forbidden("no".into())));
    let told = strangers(&seeds, &known, &answers);
    assert_eq!(told.len(), 1, "{told:?}");
    let strange = "127.0.0.3:4567 is no member's address, and it does not answer.";
    assert!(told[0].starts_with(strange), "{told:?}");
    let mut alone = report("c", &[]);
    (alone.own.name, alone.members) = ("c".into(), Vec::new());
    answers.insert(seeds[2].clone(), Ok(alone));
    let told = strangers(&seeds, &known, &answers);
    assert!(told[0].contains("c, which answers there, is in no group yet"), "{told:?}");
}
