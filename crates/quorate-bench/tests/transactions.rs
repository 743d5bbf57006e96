//! Transactions of several kinds, as the suite measures them, beside what the servers then have.

mod common;

use common::{alone, start};
use mysql::prelude::Queryable;
use quorate_bench::drive::sysbench::Tables;
use quorate_bench::fleet::Fleet;
use quorate_bench::plan::Grid;
use quorate_bench::record::Place;
use quorate_bench::suite::{self, Found, Scale, Site};
use std::cell::Cell;
use std::time::Duration;

/// The first point of the quick grid of a test, with as few clients as make sense.
fn measure(fleet: &Fleet, test: &str, clients: u32) -> Found {
    let scale = Scale {
        grid: Grid::Quick,
        time: Duration::from_secs(2),
        clients: Some(vec![clients]),
        tables: Tables { count: 1, rows: 1000 },
        profiles: None,
    };
    let test = suite::named(test).unwrap();
    let point = test.points(&scale).remove(0);
    let place = Place {
        test: test.name().into(),
        network: fleet.topology().to_string(),
        members: point.members,
        load: point.load,
        clients: point.clients,
    };
    let site = Site { fleet, scale: &scale, round: 1, filled: &Cell::new(false) };
    let found = test.measure(&site, &place).unwrap();
    println!("{}, {}: {found:#?}", fleet.system().name(), test.name());
    found
}

fn number(fleet: &Fleet, member: usize, select: &str) -> f64 {
    fleet.connect(member).unwrap().query_first(select).unwrap().unwrap()
}

#[test]
fn clients_of_all_members_conflict_and_lose_nothing() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    let found = measure(&fleet, "conflicts", 6);
    assert_eq!(found.facts["equal"], "yes");
    assert!(found.figures["goodput_tps"] > 10.0 && found.figures["cert_failures"] > 0.0);
    // Those of the warm-up and of the last moment are in the rows, too.
    for member in fleet.members() {
        let updates = number(&fleet, member, "SELECT CAST(SUM(v) AS DOUBLE) FROM hot.t");
        let counted = 2.0 * found.figures["transactions"];
        assert!((counted..3.0 * counted).contains(&updates), "{updates} updates");
    }
}

#[test]
fn clients_of_a_single_primary_wait_for_each_other() {
    let _alone = alone();
    let fleet = start("async", 3);
    let found = measure(&fleet, "conflicts", 6);
    assert_eq!(found.facts["equal"], "yes");
    assert!(found.figures["goodput_tps"] > 10.0 && found.figures["cert_failures"] == 0.0);
}

#[test]
fn a_large_transaction_is_everywhere_and_small_ones_go_on() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    let found = measure(&fleet, "large", 4);
    for member in fleet.members() {
        let bytes = number(&fleet, member, "SELECT SUM(LENGTH(filler)) FROM large.t");
        assert_eq!(bytes, 10e6, "node{}", member + 1);
    }
    let figure = |name: &str| found.figures[name];
    assert!(figure("large_s") > 0.0 && figure("large_s") < 60.0);
    assert!(figure("gap_s") > 0.0 && figure("gap_s") < 60.0);
    // Each of a member's clients waits at least as long as there is no commit.
    assert!(figure("max_ms") / 1e3 >= figure("gap_s") * 0.5, "{found:?}");
    assert!(figure("memory_mb") > 50.0 && figure("memory_mb") < 2000.0);
    assert_eq!(found.figures["small_failed"], 0.0);
}

#[test]
fn orders_are_counted_as_they_are_in_the_tables() {
    let _alone = alone();
    let fleet = start("quorate", 3);
    let found = measure(&fleet, "tpcc", 4);
    let figure = |name: &str| found.figures[name];
    // A warehouse begins with 30,000 of each. A payment leaves a row, an order does unless it is taken back.
    let orders = "SELECT CAST(COUNT(*) - 30000 AS DOUBLE) FROM tpcc.orders";
    let payments = "SELECT CAST(COUNT(*) - 30000 AS DOUBLE) FROM tpcc.history";
    for member in fleet.members() {
        let (orders, payments) = (number(&fleet, member, orders), number(&fleet, member, payments));
        let new_orders = figure("tpm") / 60.0 * 2.0;
        assert!(
            orders > 0.9 * new_orders && orders <= new_orders + 0.5,
            "{orders} of {new_orders}"
        );
        let written = orders + payments;
        assert!(written > 0.8 * figure("transactions") && written < figure("transactions"));
    }
    assert!(figure("replica_elapsed_s") >= 2.0 && figure("replica_elapsed_s") < 60.0);
    assert_eq!(found.facts["warehouses"], "1");
}
