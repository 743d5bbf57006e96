//! A primary that is lost, a secondary that is, and a row that must not be: measured with Quorate on tiny
//! sizes, and compared with what must hold for it.

mod common;

use common::{alone, start};
use quorate_bench::drive::sysbench::Tables;
use quorate_bench::fleet::Fleet;
use quorate_bench::plan::Grid;
use quorate_bench::record::Place;
use quorate_bench::suite::{named, Found, Scale, Site};
use std::cell::Cell;
use std::time::{Duration, Instant};

fn measure(fleet: &Fleet, test: &str, load: &str, clients: u32) -> Found {
    let tables = Tables { count: 2, rows: 1000 };
    let time = Duration::from_secs(2);
    let scale = Scale { grid: Grid::Quick, time, clients: None, tables, profiles: None };
    let site = Site { fleet, scale: &scale, round: 1, filled: &Cell::new(false) };
    let place =
        Place { test: test.into(), network: "lan".into(), members: 3, load: load.into(), clients };
    let test = named(test).unwrap();
    assert!(test.is_for(fleet.system(), &place));
    let begin = Instant::now();
    let found = test.measure(&site, &place).unwrap();
    println!("{load}, {clients} clients, {:.1?}: {found:?}", begin.elapsed());
    found
}

#[test]
fn a_lost_primary_is_replaced() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    for (load, clients) in [("kill idle", 0), ("stop load", 4), ("cut load", 4), ("loss idle", 0)] {
        let before = fleet.primary().unwrap();
        let found = measure(&fleet, "failover", load, clients);
        let [detect, again, back] =
            ["detect_s", "write_again_s", "back_to_three_s"].map(|name| found.figures[name]);
        // Nobody writes before somebody has noticed, but for the time that watching takes.
        assert!(0.0 < detect && detect < again + 0.5 && again < 3.0, "{load}: {found:?}");
        assert!(back < 30.0, "{load}: {found:?}");
        assert_eq!(found.facts["acknowledged rows lost"], "0", "{load}");
        assert_ne!(fleet.primary().unwrap(), before, "{load}: another leads now");
    }
}

#[test]
fn a_lost_secondary_hardly_disturbs() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    for load in ["kill", "restart", "stop", "join"] {
        let found = measure(&fleet, "secondary", load, 4);
        let figure = |name: &str| found.figures[name];
        let depth = figure("dip_depth_percent");
        assert!((0.0..=100.0).contains(&depth) && figure("dip_s") <= 10.0, "{load}: {found:?}");
        assert!(figure("gap_s") < 3.0 && figure("tps") > 1.0, "{load}: {found:?}");
        let (event, _) = found.events[0];
        let curve = &found.curves["tps"];
        let after = curve.iter().filter(|(time, _)| *time > event);
        assert!(curve[0].0 < event && after.count() >= 4, "{load}: {found:?}");
        assert_eq!(found.figures.contains_key("back_to_three_s"), load != "kill" && load != "stop");
    }
}

#[test]
fn a_row_survives_its_primary_and_crashes_of_the_others() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    let found = measure(&fleet, "rpo", "primary lost", 0);
    assert_eq!(found.facts["row"], "kept");
}
