use super::*;
use crate::drive::sysbench::Tables;
use crate::plan::Grid;
use crate::record::{Cell, Machine};
use crate::system::{named, Sources};
use std::fs;

/// A wish of Quorate and one peer.
fn wish(grid: Grid, tests: &[&str], networks: Option<Vec<Topology>>) -> Wish {
    let system = |name: &str| named(name, &Sources::default()).unwrap();
    Wish {
        tests: tests.iter().map(|name| suite::named(name).unwrap()).collect(),
        systems: vec![system("quorate"), system("async")],
        named: true,
        networks,
        rounds: 1,
        scale: Scale {
            grid,
            time: Duration::from_secs(10),
            clients: None,
            tables: Tables { count: 4, rows: 50_000 },
            profiles: None,
        },
        reuse: grid == Grid::Quick,
    }
}

/// Networks on which a test has cells.
fn networks(wish: &Wish, test: &str) -> BTreeSet<String> {
    let visits = wish.plan(&BTreeSet::new());
    let steps = visits.iter().flat_map(|visit| &visit.steps);
    let places = steps.map(|step| &step.place).filter(|place| place.test == test);
    places.map(|place| place.network.clone()).collect()
}

#[test]
fn jitter_has_four_networks_in_the_default_grid_unless_others_are_asked_for() {
    let tests = ["oltp", "jitter", "rpo"];
    let whole = wish(Grid::Default, &tests, None);
    assert_eq!(networks(&whole, "jitter").len(), 4);
    assert_eq!(networks(&whole, "oltp").len(), 3);
    assert_eq!(networks(&whole, "rpo").len(), 1);
    let asked = wish(Grid::Default, &tests, Some(vec![Topology::TenMs]));
    assert_eq!(networks(&asked, "jitter"), BTreeSet::from(["10ms".to_owned()]));
    assert_eq!(networks(&asked, "rpo"), BTreeSet::from(["10ms".to_owned()]));
}

#[test]
fn the_default_grid_leaves_out_what_says_nothing_unless_it_is_named() {
    let is_there = |grid, named, test| {
        let wish = Wish { named, ..wish(grid, &["oltp", "jitter"], None) };
        let visits = wish.plan(&BTreeSet::new());
        let mut asynchronous = visits.iter().filter(|visit| visit.system == "async");
        asynchronous.any(|visit| visit.steps.iter().any(|step| step.place.test == test))
    };
    assert!(is_there(Grid::Default, false, "oltp"));
    assert!(!is_there(Grid::Default, false, "jitter"));
    assert!(is_there(Grid::Default, true, "jitter"));
    assert!(is_there(Grid::Full, false, "jitter"));
}

#[test]
fn usual_systems_are_known() {
    for test in suite::ALL {
        for name in test.usual_systems().unwrap_or_default() {
            named(name, &Sources::default()).unwrap();
        }
    }
}

#[test]
fn starts_and_filling_are_part_of_what_a_run_takes() {
    let oltp = wish(Grid::Default, &["oltp"], Some(vec![Topology::Lan]));
    let visits = oltp.plan(&BTreeSet::new());
    let loads: Duration = visits.iter().flat_map(|visit| &visit.steps).map(|it| it.takes).sum();
    let besides = oltp.takes()["oltp"] - loads;
    // Two systems: each is started, filled with 200,000 rows, and has eight cells.
    assert_eq!(besides.as_secs(), 2 * (15 + 10 + 8 * 2));

    let tests = ["oltp", "jitter"];
    let reused = wish(Grid::Quick, &tests, Some(vec![Topology::Lan]));
    let visits = reused.plan(&BTreeSet::new());
    let systems: Vec<&str> = visits.iter().map(|visit| visit.system.as_str()).collect();
    assert_eq!(systems, ["quorate", "async", "quorate", "async"], "one test after the other");
    let loads: Duration = visits.iter().flat_map(|visit| &visit.steps).map(|it| it.takes).sum();
    let cells: usize = visits.iter().map(|visit| visit.steps.len()).sum();
    let all: Duration = reused.takes().values().sum();
    assert_eq!((all - loads).as_secs() as usize, 2 * (15 + 10) + cells * 2);
}

#[test]
fn a_fleet_without_syncs_and_one_whose_primary_moved_are_started_in_their_turn() {
    let besides = |tests: &[&str]| -> u64 {
        let mut wish = wish(Grid::Quick, tests, Some(vec![Topology::Lan]));
        wish.systems.retain(|system| system.name() == "quorate");
        let visits = wish.plan(&BTreeSet::new());
        let steps = visits.iter().flat_map(|visit| &visit.steps);
        let loads: Duration = steps.clone().map(|it| it.takes + Duration::from_secs(2)).sum();
        (wish.takes().into_values().sum::<Duration>() - loads).as_secs()
    };
    assert_eq!(besides(&["persistence"]), 2 * (15 + 10), "one whose syncs are done, one without");
    assert_eq!(besides(&["oltp", "failover", "secondary"]), 2 * (15 + 10));
}

#[test]
fn the_quick_grid_fits_into_a_quarter_of_an_hour() {
    let tests = suite::ALL.map(|test| test.name());
    let mut quick = wish(Grid::Quick, &tests, None);
    let peers = ["galera", "async", "semisync"];
    quick.systems.truncate(1);
    quick.systems.extend(peers.map(|name| named(name, &Sources::default()).unwrap()));
    // As the command line has it.
    (quick.scale.time, quick.scale.tables.rows) = (Duration::from_secs(3), 25_000);
    let takes = quick.takes();
    let all = takes.values().sum::<Duration>() + quick.networks_take();
    assert!(all <= Duration::from_secs(13 * 60), "{all:?}: {takes:?}");
    assert!(all >= Duration::from_secs(9 * 60), "{all:?} leaves time for more: {takes:?}");
}

#[test]
fn nothing_to_measure_is_an_error() {
    let folder = std::env::temp_dir().join(format!("quorate-nothing-{}", std::process::id()));
    let asked = wish(Grid::Quick, &["tpcc"], Some(vec![Topology::TwoRegions]));
    let refused = run(&asked, &mut Run::default(), &folder, &|_| {}).unwrap_err().to_string();
    assert!(refused.contains("tpcc") && refused.contains("two-regions"), "{refused}");
    assert!(!folder.exists(), "there is no run");
}

#[test]
fn a_folder_that_was_measured_otherwise_is_not_gone_on_with() {
    let folder = std::env::temp_dir().join(format!("quorate-resume-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let asked = wish(Grid::Default, &["oltp"], None);
    let machine = Machine { processor: "one".into(), ..Machine::default() };
    let before = Run { settings: asked.settings("one build"), machine, ..Run::default() };
    let place = Place { test: "oltp".into(), ..Place::default() };
    let cell = Cell { place, system: "quorate".into(), round: 1, ..Cell::default() };
    Store::open(&folder, &before).unwrap().append(&cell).unwrap();
    let mut other = Run { settings: asked.settings("another build"), ..before.clone() };
    let refused = run(&asked, &mut other, &folder, &|_| {}).unwrap_err();
    let refused = format!("{refused:#}");
    assert!(refused.contains("another --out") && refused.contains("build"), "{refused}");
    assert_eq!(Results::read(&folder).unwrap().run, before, "it is as it was");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn settings_tell_what_differs_from_what_was_published() {
    let tests = ["oltp", "rpo", "tpcc"];
    let differs = |grid| -> Vec<String> {
        let settings = wish(grid, &tests, None).settings("");
        settings.into_values().filter_map(|settings| settings.differs).collect()
    };
    let usual = differs(Grid::Default);
    assert_eq!(usual.len(), 3);
    assert!(usual[1].starts_with("10 s between two losses"), "{usual:?}");
    assert!(usual[2].starts_with("10 warehouses for 60 s"), "{usual:?}");
}
