//! Tests of replicas that are behind, on small groups of Quorate: what they report beside what the servers
//! themselves have counted.

mod common;

use common::{alone, sources, start};
use mysql::prelude::Queryable;
use quorate_bench::drive::sysbench::Tables;
use quorate_bench::fleet::Fleet;
use quorate_bench::plan::Grid;
use quorate_bench::record::Place;
use quorate_bench::suite::{self, Found, Scale, Site};
use quorate_bench::system::named;
use quorate_lab::net::Topology;
use quorate_lab::process::Syncs;
use std::cell::Cell;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn scale() -> Scale {
    Scale {
        grid: Grid::Quick,
        time: Duration::from_secs(4),
        clients: None,
        tables: Tables { count: 2, rows: 1000 },
        profiles: None,
    }
}

fn place(test: &str, load: &str, clients: u32) -> Place {
    let (test, network, load) = (test.into(), Topology::Lan.to_string(), load.into());
    Place { test, network, members: 3, load, clients }
}

/// Quorate, unless the variable names another.
fn system() -> String {
    std::env::var("QUORATE_BENCH_SYSTEM").unwrap_or_else(|_| "quorate".to_owned())
}

/// Measures these places one after the other on one fleet; transactions that were applied meanwhile.
fn measured(places: &[Place], seen: impl Fn(&Place, &Found, f64, &Fleet)) {
    let _alone = alone();
    let (system, scale) = (system(), scale());
    let test = suite::named(&places[0].test).unwrap();
    let fleet = match test.syncs(&places[0]) {
        Syncs::Done => start(&system, 3),
        taken => {
            let system = named(&system, &sources()).unwrap();
            Fleet::start_with(system, Topology::Lan, 3, taken).unwrap()
        }
    };
    let filled = Cell::new(false);
    let site = Site { fleet: &fleet, scale: &scale, round: 1, filled: &filled };
    for place in places.iter().filter(|place| test.is_for(fleet.system(), place)) {
        let before = fleet.applied(0).unwrap();
        let found = test.measure(&site, place).unwrap();
        fleet.wait_level(LIMIT).unwrap();
        let applied = (fleet.applied(0).unwrap() - before) as f64;
        println!("{system} {}: {applied} applied; {found:?}", place.load);
        seen(place, &found, applied, &fleet);
    }
}

#[test]
fn replay() {
    let places = ["1000 events", "1000 events, held back"].map(|load| place("replay", load, 20));
    measured(&places, |place, found, applied, _| {
        let figure = |name: &str| found.figures[name];
        assert_eq!(figure("transactions"), 1000.0);
        assert!(applied >= 1000.0, "{applied}");
        assert!(figure("replay_s") > 0.0 && figure("apply_over_write") > 0.0);
        assert!(figure("cpu_us_per_trx") > 0.0 && figure("net_bytes_per_trx") > 100.0);
        if place.load.ends_with("back") {
            return;
        }
        assert!(figure("replay_s") >= 1000.0 / figure("tps"), "{found:?}");
        assert!(figure("apply_over_write") <= 1.0, "{found:?}");
        assert!(figure("lag_p50_ms") <= figure("lag_max_ms"), "{found:?}");
        assert!(figure("lag_max_ms") <= figure("replay_s") * 1e3, "{found:?}");
    });
}

#[test]
fn scale_out() {
    let places =
        ["durable", "relaxed"].map(|kind| place("scale", &format!("update_index {kind}"), 16));
    measured(&places, |_, found, applied, fleet| {
        let figure = |name: &str| found.figures[name];
        // A trial of two seconds, and a second of warm-up before it.
        assert!(figure("best_tps") > 0.0 && applied >= figure("best_tps") * 2.0 * 0.8, "{found:?}");
        let per_second = figure("trx_per_cpu_s") * figure("cpu_us_per_trx") / 1e6;
        assert!((0.99..1.01).contains(&per_second), "{found:?}");
        // An error if durability was not taken back.
        fleet.setup().unwrap();
    });
}

#[test]
fn flow() {
    measured(&[place("flow", "threshold 100", 16)], |_, found, applied, fleet| {
        let figure = |name: &str| found.figures[name];
        assert!(figure("tps") > 0.0 && applied > figure("tps") * 4.0, "{found:?}");
        assert!(figure("lag_p99_ms") > 0.0, "{found:?}");
        assert_eq!(
            found.facts["slow"],
            format!("node{}", 3 - usize::from(fleet.primary().unwrap() == 2))
        );
    });
}

/// The servers believe to have synced; the kernel knows better.
#[test]
fn persistence() {
    measured(&[place("persistence", "log synced", 16)], |_, found, _, _| {
        assert!(found.figures["tps"] > 0.0, "{found:?}");
        assert!(found.figures["syncs_per_trx"] > 0.01, "{found:?}");
    });
    let place = place("persistence", "log unsynced", 16);
    assert_eq!(suite::named("persistence").unwrap().syncs(&place), Syncs::TakenAway);
    measured(&[place], |_, found, _, fleet| {
        assert_eq!(found.figures["syncs_per_trx"], 0.0, "{found:?}");
        let variable = "SHOW GLOBAL STATUS LIKE 'Innodb\\_data\\_fsyncs'";
        let told: Option<(String, u64)> = fleet.connect(0).unwrap().query_first(variable).unwrap();
        assert!(told.unwrap().1 > 0, "InnoDB has not asked for any");
    });
}
