//! Whether a row is kept that the primary has committed, if the primary is lost for good before the others
//! have applied the row, and they crash in their turn.

use super::{replicates, Found, Scale, Site, Test};
use crate::drive::writers::table;
use crate::fleet::Fleet;
use crate::plan::{Grid, Point};
use crate::record::Place;
use crate::system::System;
use anyhow::{ensure, Context, Result};
use mysql::prelude::Queryable;
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

pub struct Rpo;

const LOAD: &str = "primary lost";
const ROW: u64 = 1;
/// Of who is to lead rather than others: the primary first.
const WEIGHTS: [u8; 3] = [100, 90, 80];
const COMMIT_LIMIT: Duration = Duration::from_secs(10);
const LEVEL_LIMIT: Duration = Duration::from_secs(60);
/// A row that is not there by then is not going to be.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);
/// What it takes besides the gaps, about.
const ABOUT: Duration = Duration::from_secs(15);

impl Test for Rpo {
    fn name(&self) -> &'static str {
        "rpo"
    }

    fn about(&self) -> &'static str {
        "the primary commits a row that the others are kept from applying, and is lost for good; then they \
         crash one after the other: is the row there?"
    }

    fn points(&self, _scale: &Scale) -> Vec<Point> {
        vec![Point { members: WEIGHTS.len(), load: LOAD.into(), clients: 0 }]
    }

    fn each(&self, scale: &Scale, _point: &Point) -> Duration {
        ABOUT + 2 * gap(scale.grid)
    }

    fn fills(&self) -> bool {
        false
    }

    fn differs(&self, scale: &Scale) -> Option<String> {
        let (gap, published) = (gap(scale.grid).as_secs(), gap(Grid::Full).as_secs());
        Some(format!(
            "{gap} s between two losses, published with {published} s; followers are held by a lock or by a stopped \
             applier, whichever the system has, with the row already in their relay log if that is where it waits"
        ))
    }

    fn harms(&self) -> bool {
        true
    }

    fn spends(&self) -> bool {
        true
    }

    fn is_for(&self, system: &dyn System, place: &Place) -> bool {
        replicates(system, place) && system.hold().is_some()
    }

    fn measure(&self, site: &Site, _place: &Place) -> Result<Found> {
        let fleet = site.fleet;
        let primary = fleet.primary()?;
        let others: Vec<usize> = fleet.others(primary).collect();
        let mut weights = WEIGHTS;
        weights.swap(0, primary);
        fleet.system().weigh(fleet, &weights)?;
        let mut connection = fleet.connect_for(primary, COMMIT_LIMIT)?;
        table::make_empty(&mut connection)?;
        fleet.wait_level(LEVEL_LIMIT)?;

        let held = fleet.hold_others(primary)?;
        connection.query_drop(table::insert(ROW)).context("committing the row")?;
        for member in &others {
            ensure!(!has_row(fleet, *member)?, "node{} applies, though held back", member + 1);
        }
        fleet.kill(primary)?;
        fleet.wipe(primary)?;
        crash(fleet, &others, gap(site.scale.grid))?;
        drop(held);

        let mut found = Found::default();
        found.facts.insert("row".into(), fate(fleet, &others)?);
        Ok(found)
    }
}

/// Between the loss of the primary, the crash of the first of the others, and that of the second.
fn gap(grid: Grid) -> Duration {
    Duration::from_secs(match grid {
        Grid::Quick => 2,
        Grid::Default => 10,
        Grid::Full => 60,
    })
}

/// One after the other; a service manager starts each again at once.
fn crash(fleet: &Fleet, members: &[usize], gap: Duration) -> Result<()> {
    thread::scope(|scope| {
        let mut starts = Vec::new();
        for member in members {
            thread::sleep(gap);
            fleet.kill(*member)?;
            // A member that finds no group waits for one, and so does its start.
            starts.push(scope.spawn(|| fleet.start_again(*member)));
        }
        starts.into_iter().try_for_each(|start| start.join().expect("a start panicked"))
    })
}

/// What has become of the row, once these members are all that is left.
fn fate(fleet: &Fleet, members: &[usize]) -> Result<String> {
    // A replica is not up without a primary. Who makes it one looks for the row wherever it is.
    if fleet.system().fails_over() {
        fleet.wait_up(members)?;
    }
    for member in members {
        fleet.wait_answer(*member)?;
    }
    let end = Instant::now() + SETTLE_LIMIT;
    loop {
        let mut having = Vec::new();
        for member in members {
            if has_row(fleet, *member)? {
                having.push(&*fleet.node(*member).name);
            }
        }
        match having.len() {
            all if all == members.len() => return Ok("kept".to_owned()),
            0 if Instant::now() >= end => return Ok("lost".to_owned()),
            _ if Instant::now() >= end => return Ok(format!("kept on {}", having.join(", "))),
            _ => thread::sleep(POLL),
        }
    }
}

fn has_row(fleet: &Fleet, member: usize) -> Result<bool> {
    let missing = table::missing(&mut fleet.connect(member)?, &HashSet::from([ROW]), 0)?;
    Ok(missing.is_empty())
}
