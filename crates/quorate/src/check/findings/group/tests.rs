//! Findings of groups whose members say this and that.

use super::*;
use crate::remote::{CutEnd, SYNCED};
use quorate_live::port::{LogReport, MemberReport, OwnReport};

/// Members with one vote each, which are all well; the first leads.
fn group(zones: &[&str]) -> Survey {
    let node = |(zone, number): (&&str, u32)| {
        let name = format!("db{number}");
        let member = MemberReport {
            id: number.to_string(),
            name: name.clone(),
            role: "voter".into(),
            priority: 50,
            votes: 1,
            zone: zone.to_string(),
            connected: true,
            ..MemberReport::default()
        };
        let log = LogReport { syncs: 1000, sync_us_avg: 700.0, ..LogReport::default() };
        NodeSurvey {
            name,
            state: SYNCED.into(),
            release: Some("0.2.0".into()),
            member: Some(member),
            own: Some(OwnReport { primary: true, log, ..OwnReport::default() }),
            ..NodeSurvey::default()
        }
    };
    let mut survey = Survey::unknown("shop");
    survey.nodes = zones.iter().zip(1..).map(node).collect();
    survey.leader = Some("db1".into());
    survey.level = 2;
    survey
}

fn member(survey: &mut Survey, at: usize) -> &mut MemberReport {
    survey.nodes[at].member.as_mut().unwrap()
}

fn lose(survey: &mut Survey, at: usize) {
    survey.nodes[at].own = None;
    member(survey, at).connected = false;
}

fn one(survey: &Survey) -> (Weight, String) {
    let found = of_group(survey);
    assert_eq!(found.len(), 1, "{found:?}");
    (found[0].weight, found[0].what.clone())
}

#[test]
fn nothing_is_found_in_a_group_that_survives_any_loss() {
    for zones in [&["", "", ""][..], &["eu", "us", "asia"], &["", "", "", "", ""]] {
        assert_eq!(of_group(&group(zones)), [], "{zones:?}");
    }
}

#[test]
fn a_link_that_is_cut_is_told_with_where_to_look() {
    let mut survey = group(&["", "", ""]);
    let end = |name: &str| CutEnd { name: name.into(), address: format!("{name}.lan:4567") };
    survey.cuts = vec![Cut { ends: [end("db2"), end("db3")] }];
    let found = of_group(&survey);
    assert_eq!(found[0].weight, Weight::Warning, "{found:?}");
    assert!(found[0].advice.contains("on db2: quorate check --peers db3.lan:4567"), "{found:?}");
    survey.leader = Some("db3".into());
    assert_eq!(one(&survey).0, Weight::Error);
}

#[test]
fn one_disk_that_is_slower_than_the_others_is_named() {
    let mut survey = group(&["", "", ""]);
    survey.nodes[1].own.as_mut().unwrap().log.sync_us_avg = 4_000.0;
    let uneven = "a sync of db2's log takes 4.0 ms, where 0.7 ms are usual in this group";
    assert_eq!(one(&survey), (Weight::Warning, uneven.into()));
    // All alike, or told of as slow for itself.
    survey.nodes[1].own.as_mut().unwrap().log.sync_us_avg = 12_000.0;
    assert_eq!(of_group(&survey), []);
}

#[test]
fn releases_and_levels_that_differ_are_told() {
    let mut survey = group(&["", "", ""]);
    survey.nodes[2].release = Some("0.1.0".into());
    survey.level = 1;
    survey.levels = Levels { highest: 2, without: vec!["db3".into()] };
    let whats: Vec<String> = of_group(&survey).into_iter().map(|finding| finding.what).collect();
    assert_eq!(
        whats,
        [
            "releases of Quorate differ: \"0.1.0\" at db3; \"0.2.0\" at db1, db2",
            "the group works at feature level 1 of 2, because of db3"
        ]
    );
}

#[test]
fn the_loss_that_a_group_does_not_survive_is_named() {
    let two = group(&["", ""]);
    assert_eq!(one(&two).1, "the loss of db1 or db2 stops all writes: a majority is 2 of 2 votes");
    let mut three = group(&["", "", ""]);
    lose(&mut three, 2);
    assert_eq!(one(&three).1, "missing: db3. The loss of db1 or db2, too, stops all writes");
    // Others are connected to it: it is this command alone that does not reach it.
    member(&mut three, 2).connected = true;
    assert_eq!(of_group(&three), []);
    let mut heavy = group(&["", "", ""]);
    member(&mut heavy, 0).votes = 3;
    assert_eq!(one(&heavy).1, "the loss of db1 stops all writes: a majority is 3 of 5 votes");
    let even = group(&["", "", "", ""]);
    assert_eq!(one(&even), (Weight::Note, "4 votes survive the loss of as many as 3 do".into()));
    // Who has no vote does not matter.
    let mut learner = group(&["", "", "", ""]);
    member(&mut learner, 3).role = "learner".into();
    assert_eq!(of_group(&learner), []);
}

#[test]
fn somebody_else_has_to_be_able_to_lead() {
    let mut survey = group(&["", "", ""]);
    member(&mut survey, 1).priority = 0;
    member(&mut survey, 2).role = "logger".into();
    assert_eq!(one(&survey).1, "only db1 may lead, so its loss stops all writes");
    survey.leader = None;
    lose(&mut survey, 0);
    lose(&mut survey, 1);
    assert_eq!(one(&survey), (Weight::Error, "no member leads, so nothing can be written".into()));
}

#[test]
fn the_loss_of_a_zone_is_thought_of() {
    let mut survey = group(&["eu", "eu", "us"]);
    assert_eq!(one(&survey).1, "the loss of a whole zone stops all writes: eu");
    survey.rules.zones = 2;
    let found = of_group(&survey);
    assert!(
        found[1].what.starts_with("commits wait for 2 zones, and voters stand in 2 only"),
        "{found:?}"
    );
    let mut three = group(&["eu", "us", "asia"]);
    three.rules.zones = 2;
    assert_eq!(of_group(&three), []);
    three.rules.zones = 3;
    assert_eq!(of_group(&three).len(), 1);
}

#[test]
fn a_pause_is_not_forgotten() {
    let mut survey = group(&["", "", ""]);
    survey.rules.paused = true;
    assert_eq!(one(&survey).0, Weight::Note);
}
