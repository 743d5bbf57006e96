//! What was measured, as it is kept in the folder of a run.
//!
//! ```text
//! OUT/run.json      machine, systems with their settings, networks, what was asked for
//! OUT/cells.jsonl   a cell a line, written as soon as it is measured
//! ```
//!
//! * [`Store`]: writes it. [`Results`]: reads it, from one folder or several.
//! * [`figure`]: which figures there are. [`Summary`]: medians, spreads and ratios of them.
//!
//! Invariant: a cell is one system, at one point of one test's grid, in one round. Figures that are to be
//! compared stand in cells that differ in the system alone; ratios are taken within a round.

pub mod figure;
mod store;
mod summary;

pub use store::{Key, Results, Store};
pub use summary::{Spread, Summary};

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Everything about a run but its cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Each time that it was begun or gone on with, in order.
    #[serde(default)]
    pub invocations: Vec<Invocation>,
    /// By test. Cells that were measured otherwise do not stand beside those that have these.
    #[serde(default)]
    pub settings: BTreeMap<String, Settings>,
    pub machine: Machine,
    pub systems: Vec<Setup>,
    pub networks: Vec<Measured>,
    /// What is to be known of a run that was put together of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The command line.
    pub command: String,
    /// When it began, RFC 3339, UTC.
    pub began: String,
    /// Until its last cell.
    pub took_s: f64,
}

/// What decides on the figures of a test, besides place and system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `quick`, `default` or `full`.
    pub grid: String,
    /// Of a steady load.
    pub seconds: u64,
    /// `4x50000`.
    pub tables: String,
    /// Of Quorate's library and this command together: changes whenever one of them does.
    pub build: String,
    /// What is otherwise than in what was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub processors: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    /// File system of the nodes' data.
    pub disk: String,
    /// Median of a 4 KiB overwrite with fdatasync, in microseconds; the least of those that were taken at the
    /// begin of each invocation.
    pub sync_us: f64,
    /// The programs that measure and transfer, with what each says of its version.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
}

/// Between what members have read back, where they differ.
pub(crate) const MEMBERS_SEPARATOR: &str = " / ";

/// A system as it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// As `--systems` names it.
    pub name: String,
    pub title: String,
    /// The server's and, where there is one, the provider's.
    pub version: String,
    /// All options that it was given, in the order of its configuration. The folder of its servers, which is
    /// another one each time, has a word in its place.
    pub options: Vec<(String, String)>,
    /// What decides on durability, read back from the running server.
    pub read_back: Vec<(String, String)>,
    /// What else decides on figures, read back from the first member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<(String, String)>,
    pub encrypted: bool,
}

/// A network as it was found to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub name: String,
    /// Round trips that it is made for, in ms: hosts 1-2, 1-3, 2-3.
    pub round_trips_ms: [f64; 3],
    /// The same as measured, medians of pings.
    pub measured_ms: [f64; 3],
    /// Processor time of the lab itself for each packet that it carries, in microseconds.
    pub packet_cost_us: f64,
}

/// One measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    #[serde(flatten)]
    pub place: Place,
    pub system: String,
    /// From 1.
    pub round: u32,
    /// The member that clients wrote to, as it was at the end: `node1`.
    pub primary: Option<String>,
    /// The same as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<String>,
    /// When it was begun, in seconds since 1970. 0: not recorded.
    #[serde(default)]
    pub began_s: u64,
    /// With the start of servers and the filling of tables, where it was the first to need them.
    #[serde(default)]
    pub took_s: f64,
    /// By name, see [`crate::record::figure`]: its unit belongs to the name (`tps`, `p95_ms`).
    pub figures: BTreeMap<String, f64>,
    /// Series over time in seconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Vec<(f64, f64)>>,
    /// What was done meanwhile, by the second of the curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<(f64, String)>,
    /// What is no number: `row` = `kept`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A point of a test's grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// `oltp`, `failover`, ...
    pub test: String,
    pub network: String,
    pub members: usize,
    /// What is done: `write_only`, `kill`, `10 MB`.
    pub load: String,
    /// Clients at once; 0 where the test has no such number.
    pub clients: u32,
}

impl Place {
    /// `lan, write_only, 64 clients`; three members are not told.
    pub fn words(&self) -> String {
        let mut words = vec![self.network.clone(), self.load.clone()];
        if self.members != 3 {
            words.push(format!("{} members", self.members));
        }
        if self.clients > 0 {
            words.push(clients_words(self.clients));
        }
        words.retain(|word| !word.is_empty());
        words.join(", ")
    }
}

/// `1 client`, `64 clients`.
pub(crate) fn clients_words(clients: u32) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

/// By the size that a load names, where it does: 10 MB is before 1 GB.
impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        let order = |place: &Place| (place.members, size_bytes(&place.load));
        (&self.test, &self.network, order(self), &self.load, self.clients).cmp(&(
            &other.test,
            &other.network,
            order(other),
            &other.load,
            other.clients,
        ))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Of `10 MB`, `1 GB`, `1 GB of something`.
pub fn size_bytes(load: &str) -> Option<usize> {
    let mut words = load.split(' ');
    let (number, unit) = (words.next()?, words.next()?);
    let unit = match unit {
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    Some(number.parse::<usize>().ok()? * unit)
}

impl Run {
    /// This run as one that goes on with an earlier one.
    pub fn after(self, former: Run) -> Run {
        let settings = former.settings.into_iter().chain(self.settings).collect();
        let invocations = [former.invocations, self.invocations].concat();
        let mut machine = self.machine;
        machine.take_least_sync(&former.machine);
        // What is not measured again is as it was.
        Run { invocations, settings, machine, ..former }
    }
}

impl Settings {
    /// Each with both values: `seconds 10 / 3`.
    pub fn differences(&self, other: &Settings) -> Vec<String> {
        let words = |settings: &Settings| {
            let Settings { grid, seconds, tables, build, .. } = settings.clone();
            [("grid", grid), ("seconds", seconds.to_string()), ("tables", tables), ("build", build)]
        };
        let pairs = words(self).into_iter().zip(words(other));
        let differ = pairs.filter(|((_, here), (_, there))| here != there);
        differ.map(|((name, here), (_, there))| format!("{name} {here:?} / {there:?}")).collect()
    }
}

impl Setup {
    /// What decides on figures: version, and what was read back, each with both values. What differs between
    /// members is one after the other there, and a group of another size has as many more: only which values
    /// there are counts.
    pub fn differences(&self, other: &Setup) -> Vec<String> {
        let words = |setup: &Setup| -> BTreeMap<String, BTreeSet<String>> {
            let version = ("version".to_owned(), BTreeSet::from([setup.version.clone()]));
            let read_back = setup.read_back.iter().map(|(name, values)| {
                (name.clone(), values.split(MEMBERS_SEPARATOR).map(str::to_owned).collect())
            });
            std::iter::once(version).chain(read_back).collect()
        };
        let (here, there) = (words(self), words(other));
        let names: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
        let value = |words: &BTreeMap<String, BTreeSet<String>>, name: &String| {
            words.get(name).map_or_else(
                || "none".to_owned(),
                |values| values.iter().cloned().collect::<Vec<_>>().join(MEMBERS_SEPARATOR),
            )
        };
        let differ = names.into_iter().filter(|name| here.get(*name) != there.get(*name));
        differ
            .map(|name| format!("{name} {:?} / {:?}", value(&here, name), value(&there, name)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_name_a_size_are_in_its_order() {
        let place = |load: &str| Place { load: load.into(), ..Place::default() };
        let mut places = ["1 GB", "100 MB of x", "100 MB", "threshold 100", "10 MB"].map(place);
        places.sort();
        assert_eq!(places, ["threshold 100", "10 MB", "100 MB", "100 MB of x", "1 GB"].map(place));
    }

    #[test]
    fn a_run_that_is_gone_on_with_has_all_its_invocations() {
        let run = |command: &str, test: &str| Run {
            invocations: vec![Invocation { command: command.into(), ..Invocation::default() }],
            settings: BTreeMap::from([(test.to_owned(), Settings::default())]),
            ..Run::default()
        };
        let both = run("second", "rpo").after(run("first", "oltp"));
        let commands: Vec<&str> = both.invocations.iter().map(|it| it.command.as_str()).collect();
        assert_eq!(commands, ["first", "second"]);
        assert!(both.settings.contains_key("oltp") && both.settings.contains_key("rpo"));
    }

    #[test]
    fn setups_differ_in_versions_and_in_what_was_read_back() {
        let read_back = |flush: &str, roles: &str| {
            [("flush", flush), ("read_only", roles)]
                .map(|(name, value)| (name.into(), value.into()))
        };
        let setup = |version: &str, flush: &str, roles: &str| Setup {
            version: version.into(),
            read_back: read_back(flush, roles).into(),
            ..Setup::default()
        };
        let one = setup("10.11.6", "1", "OFF / ON / ON");
        let larger = setup("10.11.6", "1", "OFF / ON / ON / ON / ON");
        assert_eq!(one.differences(&larger), Vec::<String>::new());
        let newer = setup("10.11.8", "0", "OFF / ON / ON");
        let differ = ["flush \"1\" / \"0\"", "version \"10.11.6\" / \"10.11.8\""];
        assert_eq!(one.differences(&newer), differ);
        let fewer = Setup { version: "10.11.6".into(), ..Setup::default() };
        assert_eq!(one.differences(&fewer).len(), 2);
    }

    #[test]
    fn places_are_told_in_words() {
        let place = Place {
            test: "oltp".into(),
            network: "lan".into(),
            members: 5,
            load: "write_only".into(),
            clients: 1,
        };
        assert_eq!(place.words(), "lan, write_only, 5 members, 1 client");
        assert_eq!(Place { members: 3, clients: 0, ..place }.words(), "lan, write_only");
    }
}
