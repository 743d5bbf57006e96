//! What is said of a commit's time beside what the network makes of it.

mod common;

use common::{alone, start};
use quorate_bench::drive::sysbench::Tables;
use quorate_bench::plan::Grid;
use quorate_bench::record::figure::COMMIT_PARTS;
use quorate_bench::record::Place;
use quorate_bench::suite::{self, Found, Scale, Site};
use quorate_lab::net::Topology;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A run with one client, on a network where an answer takes a millisecond.
fn measure(system: &str, profiles: Option<PathBuf>) -> Found {
    let fleet = start(system, 3);
    fleet.network().shape(Topology::Region);
    let scale = Scale {
        grid: Grid::Quick,
        time: Duration::from_secs(2),
        clients: None,
        tables: Tables { count: 1, rows: 100 },
        profiles,
    };
    let place = Place {
        test: "latency".into(),
        network: "region".into(),
        members: 3,
        load: "primary".into(),
        clients: 1,
    };
    let site = Site { fleet: &fleet, scale: &scale, round: 1, filled: &Cell::new(false) };
    let found = suite::named("latency").unwrap().measure(&site, &place).unwrap();
    println!("{system}: {found:#?}");
    found
}

#[test]
fn parts_make_up_a_commit_and_the_network_has_its_share() {
    let _alone = alone();
    let folder = std::env::temp_dir().join(format!("quorate-profiles-{}", std::process::id()));
    let found = measure("quorate", Some(folder.clone()));
    let part = |name: &str| found.figures[name];
    assert!(COMMIT_PARTS.iter().all(|name| part(name) >= 0.0));
    let waited = part("sync_us") + part("majority_us");
    assert!(waited > 800.0, "an answer takes a millisecond: {waited}");
    assert!(part("send_us") > 0.0 && part("innodb_us") > 0.0 && part("wake_us") > 0.0);
    let traced = &found.facts["while its parts were told, a commit took"];
    let traced: f64 = traced.trim_end_matches(" µs").parse().unwrap();
    let sum: f64 = COMMIT_PARTS.iter().map(|name| part(name)).sum();
    assert!(sum < 1.1 * traced && sum > 0.6 * traced, "{sum} of {traced}");
    assert!(traced < 3.0 * part("commit_us"), "tracing makes a commit slower, but not much");
    assert!(part("wakeups_per_trx") >= 3.0, "the session, and a receiver at both ends");
    let profile =
        fs::read_to_string(folder.join("latency-region-primary-1-quorate-1.txt")).unwrap();
    fs::remove_dir_all(folder).unwrap();
    println!("{profile}");
    for thread in ["qrt-recv", "quorate-log"] {
        assert!(profile.contains(thread), "{profile}");
    }
}

#[test]
fn a_peer_has_a_time_without_parts() {
    let _alone = alone();
    let found = measure("galera", None);
    assert!(found.figures["commit_us"] > 800.0);
    assert!(!found.figures.contains_key("sync_us") && !found.facts.contains_key("parts"));
}
