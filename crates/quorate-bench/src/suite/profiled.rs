//! `--profile`: after what is measured, the same once more while the threads of all members are looked at. That makes
//! everything slower, so no figure of the test itself comes from there.

use super::{Found, Scale, Site};
use crate::meter::Profile;
use crate::record::{Cell, Place};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// What only a profile tells.
const PROFILED: &str = "wakeups_per_trx";

/// Whether a cell has what was asked for.
pub(super) fn is_whole(cell: &Cell, scale: &Scale) -> bool {
    scale.profiles.is_none() || cell.figures.contains_key(PROFILED)
}

/// How long a steady load takes, its profile included.
pub(super) fn takes(scale: &Scale) -> Duration {
    match scale.profiles {
        Some(_) => 2 * scale.time,
        None => scale.time,
    }
}

impl Site<'_> {
    /// Who uses the processor, of all members together, if that was asked for. `load` says how many transactions there
    /// were.
    pub(super) fn profile(
        &self,
        place: &Place,
        found: &mut Found,
        load: impl FnOnce() -> Result<usize>,
    ) -> Result<()> {
        let Some(folder) = &self.scale.profiles else { return Ok(()) };
        let profile = Profile::begin(self.fleet, folder)?;
        let count = load()?;
        let seen = profile.end()?;
        let (sleeps, preempted) = seen.switches();
        let each = |number: u64| number as f64 / count.max(1) as f64;
        found.set([(PROFILED, each(sleeps)), ("switches_per_trx", each(sleeps + preempted))]);
        found.facts.insert("CPU".into(), seen.line());
        let path = folder.join(self.file_name(place));
        fs::write(&path, seen.text(count)).with_context(|| format!("writing {}", path.display()))
    }

    fn file_name(&self, place: &Place) -> String {
        let (system, Place { test, network, load, clients, .. }) =
            (self.fleet.system().name(), place);
        format!("{test} {network} {load} {clients} {system} {}.txt", self.round).replace(' ', "-")
    }
}
