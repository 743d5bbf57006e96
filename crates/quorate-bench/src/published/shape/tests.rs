use super::*;
use std::collections::BTreeMap;

fn cell(place: Place, system: &str, figure: &str, value: f64) -> Cell {
    let figures = BTreeMap::from([(figure.to_owned(), value)]);
    Cell { place, system: system.into(), round: 1, figures, ..Cell::default() }
}

#[test]
fn without_cells_nothing_can_be_said() {
    let summary = Summary::new(&[]);
    for test in [
        "oltp",
        "jitter",
        "failover",
        "rpo",
        "tpcc",
        "flow",
        "scale",
        "large",
        "replay",
        "persistence",
    ] {
        assert_eq!(judge(test, &summary).shape(), Shape::CannotBeSaid, "{test}");
    }
    assert_eq!(judge("latency", &summary).shape(), Shape::NothingPublished);
}

#[test]
fn each_check_has_its_published_figure() {
    let summary = Summary::new(&[]);
    let tests =
        ["oltp", "jitter", "failover", "secondary", "rpo", "replay", "tpcc", "flow", "scale"];
    for test in tests.into_iter().chain(["persistence"]) {
        for check in judge(test, &summary).checks {
            assert!(check.published.contains(": "), "{test}: {check:?}");
        }
    }
}

#[test]
fn the_published_figures_have_their_own_shape() {
    let own = rows().iter().map(|row| {
        let system = row.system.replace("gr-persisted", "gr-eventual");
        let system = system.replace("gr-redesigned", "gr-eventual");
        cell(row.place.clone(), &system, row.figure, row.value)
    });
    let mut cells: Vec<Cell> = own.collect();
    let rate = |load: &str, tps| cell(place("scale", "lan", load, 0), "async", "best_tps", tps);
    cells.push(rate("read_write durable", 10_800.0 / 0.84));
    cells.push(rate("update_index durable", 22_000.0 / 0.6));
    let summary = Summary::new(&cells);
    for test in ["oltp", "jitter", "failover", "tpcc", "flow", "scale"] {
        let judgement = judge(test, &summary);
        assert_eq!(judgement.shape(), Shape::Reproduced, "{test}: {:?}", judgement.checks);
        assert!(judgement.checks.iter().all(|check| check.holds == Some(true)), "{judgement:?}");
    }
}

#[test]
fn another_shape_is_told_from_it_whatever_the_machine() {
    let at = |network| oltp(network, 256);
    let cells = [
        cell(at("lan"), "gr-eventual", "tps", 1000.0),
        cell(at("two-regions"), "gr-eventual", "tps", 250.0),
        cell(at("three-regions"), "gr-eventual", "tps", 900.0),
    ];
    let judgement = judge("oltp", &Summary::new(&cells));
    assert_eq!(judgement.shape(), Shape::Partly);
    let found = |network: &str| {
        let wanted = format!("{network}, 256");
        judgement.checks.iter().find(|check| check.published.contains(&wanted)).unwrap()
    };
    assert_eq!(found("two-regions").holds, Some(true));
    assert_eq!(found("two-regions").here, "25 %");
    assert_eq!(found("three-regions").holds, Some(false));
    assert_eq!(found(" region").holds, None);
}

#[test]
fn a_ratio_is_on_the_published_side_of_one() {
    let holds = |here: f64| {
        let at = place("tpcc", "lan", "tpcc", 32);
        let cells = [cell(at.clone(), "async", "tps", 100.0), cell(at, "gr-eventual", "tps", here)];
        judge("tpcc", &Summary::new(&cells)).checks[1].holds.unwrap()
    };
    // Published: 84 %.
    assert!(holds(70.0) && holds(84.0) && holds(100.0));
    assert!(!holds(60.0) && !holds(110.0));
}

#[test]
fn a_row_that_is_kept_says_nothing_and_nothing_is_said_of_another_system() {
    let at = place("rpo", "lan", "primary lost", 0);
    let row = |fact: &str| {
        let facts = BTreeMap::from([("row".to_owned(), fact.to_owned())]);
        let cells = [Cell { facts, ..cell(at.clone(), "gr-eventual", "x", 1.0) }];
        judge("rpo", &Summary::new(&cells)).shape()
    };
    assert_eq!((row("lost"), row("kept")), (Shape::Reproduced, Shape::CannotBeSaid));
    let at = |load| place("persistence", "lan", load, 100);
    let tps = |load, tps| cell(at(load), "gr-eventual", "tps", tps);
    let cells = [tps("log synced", 86.0), tps("log unsynced", 100.0)];
    assert_eq!(judge("persistence", &Summary::new(&cells)).shape(), Shape::CannotBeSaid);
}

#[test]
fn a_near_number_of_clients_stands_in() {
    let at = Place { network: "10ms".into(), load: "read_write".into(), ..oltp("", 64) };
    let cells = [cell(at.clone(), "async", "tps", 100.0), cell(at, "gr-eventual", "tps", 20.0)];
    let judgement = judge("oltp", &Summary::new(&cells));
    assert_eq!(judgement.shape(), Shape::Reproduced, "{:?}", judgement.checks);
}

#[test]
fn only_the_limit_is_a_refusal() {
    let at = |network: &str| place("large", network, "1 GB", 4);
    let failed = |network: &str, reason: &str| Cell {
        failed: Some(reason.into()),
        ..cell(at(network), "gr-eventual", "gap_s", 1.0)
    };
    let holds = |cells: &[Cell]| judge("large", &Summary::new(cells)).checks[0].holds;
    let limit = "a transaction of 1 GB: MySqlError { ERROR 3100 (HY000): Error on observer while \
                 running replication hook 'before_commit'. }";
    assert_eq!(holds(&[failed("lan", limit)]), Some(true));
    assert_eq!(holds(&[failed("lan", "node2 does not run")]), None);
    assert_eq!(holds(&[cell(at("lan"), "gr-eventual", "gap_s", 1.0)]), Some(false));
    assert_eq!(holds(&[failed("10ms", limit)]), None, "published for another network");
}
