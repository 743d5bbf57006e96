//! The folder of a run: written line by line, so that a run that ends early leaves what it measured.
//!
//! Invariant: a line of `cells.jsonl` is whole or it is the last one. A cell that was measured again
//! stands further down, and counts in place of the earlier one.

use super::{Cell, Machine, Place, Run, Settings, Setup};
use anyhow::{bail, ensure, Context, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const RUN: &str = "run.json";
const CELLS: &str = "cells.jsonl";

/// A cell by what tells it from all others: place, system, round.
pub type Key = (Place, String, u32);

impl Cell {
    pub fn key(&self) -> Key {
        (self.place.clone(), self.system.clone(), self.round)
    }
}

/// A run's folder, open for further cells.
pub struct Store {
    folder: PathBuf,
    cells: File,
    /// As the folder has it.
    run: Option<Run>,
}

impl Store {
    /// Whether a folder has a run.
    pub fn exists(folder: &Path) -> bool {
        folder.join(RUN).exists()
    }

    /// Makes the folder if there is none. One that has cells keeps them; a line that a crash tore is cut
    /// off, so that the next begins on a line of its own.
    pub fn open(folder: &Path, run: &Run) -> Result<Store> {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let path = folder.join(CELLS);
        let cells = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let mut cells = cells.with_context(|| format!("opening {}", path.display()))?;
        let mut bytes = Vec::new();
        cells.read_to_end(&mut bytes).with_context(|| format!("reading {}", path.display()))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        cells.set_len(whole as u64).with_context(|| format!("cutting {}", path.display()))?;
        cells.seek(SeekFrom::End(0))?;
        let mut store = Store { folder: folder.to_owned(), cells, run: None };
        store.describe(run)?;
        Ok(store)
    }

    /// Writes what is known of the run by now: versions and what was read back are, once systems ran.
    pub fn describe(&mut self, run: &Run) -> Result<()> {
        if self.run.as_ref() == Some(run) {
            return Ok(());
        }
        let (path, part) = (self.folder.join(RUN), self.folder.join("run.json.part"));
        let text = serde_json::to_string_pretty(run).context("the run as JSON")?;
        fs::write(&part, text + "\n").with_context(|| format!("writing {}", part.display()))?;
        fs::rename(&part, &path).with_context(|| format!("writing {}", path.display()))?;
        self.run = Some(run.clone());
        Ok(())
    }

    /// One write, so that another reader sees the line or does not. What is no number cannot be kept:
    /// an error.
    pub fn append(&mut self, cell: &Cell) -> Result<()> {
        let figures = cell.figures.values().copied();
        let points = cell.curves.values().flatten().flat_map(|(x, y)| [*x, *y]);
        ensure!(
            figures.chain(points).all(f64::is_finite),
            "a figure of {} is no number: {:?}",
            cell.system,
            cell.figures
        );
        let line = serde_json::to_string(cell).context("a cell as JSON")? + "\n";
        self.cells.write_all(line.as_bytes()).context("writing a cell")?;
        self.cells.flush().context("writing a cell")
    }
}

/// What folders have, as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Of the first folder, with the invocations, settings, systems and networks of all.
    pub run: Run,
    /// In the order of their keys.
    pub cells: Vec<Cell>,
    /// What readers have to know: a torn line, cells that were measured twice or have failed.
    pub warnings: Vec<String>,
}

impl Results {
    /// What one folder has.
    pub fn read(folder: &Path) -> Result<Results> {
        let path = folder.join(RUN);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} is no run: {}", folder.display(), path.display()))?;
        let run = serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        let path = folder.join(CELLS);
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut results = Results { run, ..Results::default() };
        let mut cells = BTreeMap::new();
        for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            match serde_json::from_slice::<Cell>(line) {
                // Only the last line can lack its end.
                _ if !line.ends_with(b"\n") => {
                    results.warnings.push(format!("{}: the last line is torn", path.display()));
                }
                Ok(cell) => results.warnings.extend(place_in(&mut cells, cell, false)),
                Err(error) => bail!("{}:{}: no cell: {error}", path.display(), number + 1),
            }
        }
        results.cells = cells.into_values().collect();
        Ok(results)
    }

    /// Writes them as the folder of one run, which can be read, merged and drawn again. What was there is
    /// replaced.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let cells = folder.join(CELLS);
        match fs::remove_file(&cells) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", cells.display()));
            }
            _ => {}
        }
        let mut store = Store::open(folder, &self.run)?;
        self.cells.iter().try_for_each(|cell| store.append(cell))
    }

    /// What several folders have. Figures of different machines are no comparison, nor are those of a test
    /// that was measured otherwise: an error. A cell that several have is taken from the last in which it
    /// has not failed; options of a system that differ are told.
    pub fn merge(folders: &[PathBuf]) -> Result<Results> {
        let mut folders = folders.iter();
        let first = folders.next().context("no folder of a run was named")?;
        let mut all = Results::read(first)?;
        for folder in folders {
            let next = Results::read(folder)?;
            let alike = all.check(&next.run.machine, &next.settings());
            alike.and_then(|()| all.check_systems(&next.run.systems)).with_context(|| {
                let (first, next) = (first.display(), folder.display());
                format!("{first} and {next} cannot be compared: report each of them by itself")
            })?;
            all.add(next, folder);
        }
        Ok(all)
    }

    fn add(&mut self, next: Results, folder: &Path) {
        self.run.settings.extend(next.settings());
        self.run.machine.take_least_sync(&next.run.machine);
        self.run.invocations.extend(next.run.invocations);
        for mut setup in next.run.systems {
            match self.run.systems.iter_mut().find(|known| known.name == setup.name) {
                None => self.run.systems.push(setup),
                Some(known) => {
                    // Earlier builds did not ask for it.
                    match known.told.is_empty() {
                        true => known.told.clone_from(&setup.told),
                        false if setup.told.is_empty() => setup.told.clone_from(&known.told),
                        false => {}
                    }
                    if *known != setup {
                        let (name, folder) = (&setup.name, folder.display());
                        self.run.notes.push(format!("{name} ran with other options in {folder}"));
                    }
                }
            }
        }
        for (what, one, other) in self.run.machine.changes(&next.run.machine) {
            let folder = folder.display();
            self.run.notes.push(format!("{what} was {other} in {folder}, and {one} elsewhere"));
        }
        self.run.notes.extend(next.run.notes);
        for network in next.run.networks {
            if !self.run.networks.iter().any(|known| known.name == network.name) {
                self.run.networks.push(network);
            }
        }
        self.warnings.extend(next.warnings);
        let mut cells: BTreeMap<Key, Cell> =
            self.cells.drain(..).map(|cell| (cell.key(), cell)).collect();
        for cell in next.cells {
            self.warnings.extend(place_in(&mut cells, cell, true));
        }
        self.cells = cells.into_values().collect();
    }

    /// Of the tests that have figures here.
    fn settings(&self) -> BTreeMap<String, Settings> {
        let measured = self.cells.iter().filter(|cell| cell.failed.is_none());
        let of_test = |cell: &Cell| {
            let test = &cell.place.test;
            (test.clone(), self.run.settings.get(test).cloned().unwrap_or_default())
        };
        measured.map(of_test).collect()
    }

    /// An error if figures of this machine and these settings, by test, cannot stand beside those here.
    pub fn check(&self, machine: &Machine, settings: &BTreeMap<String, Settings>) -> Result<()> {
        let here = &self.run.machine;
        if !here.is_like(machine) {
            bail!("they are of different machines: {} and {}", here.line(), machine.line());
        }
        for (test, here) in self.settings() {
            let differ = settings.get(&test).map_or(Vec::new(), |there| here.differences(there));
            ensure!(differ.is_empty(), "{test} has other settings there: {}", differ.join(", "));
        }
        Ok(())
    }

    /// An error if a system here is of another version there, or has read back other settings.
    fn check_systems(&self, setups: &[Setup]) -> Result<()> {
        for here in &self.run.systems {
            // What has not run has nothing to compare.
            let ran = |setup: &&Setup| setup.name == here.name && !setup.read_back.is_empty();
            let there = setups.iter().find(ran).filter(|_| !here.read_back.is_empty());
            let differ = there.map_or(Vec::new(), |there| here.differences(there));
            let name = &here.name;
            ensure!(differ.is_empty(), "{name} ran otherwise there: {}", differ.join(", "));
        }
        Ok(())
    }

    /// What a run that is resumed need not measure again: all but what failed.
    pub fn done(&self) -> BTreeSet<Key> {
        self.cells.iter().filter(|cell| cell.failed.is_none()).map(Cell::key).collect()
    }
}

/// A failure never takes the place of figures if `keeps_figures`. What becomes invisible by it is told.
fn place_in(cells: &mut BTreeMap<Key, Cell>, cell: Cell, keeps_figures: bool) -> Option<String> {
    let words = format!(
        "{}, {}, {}, round {}",
        cell.place.test,
        cell.place.words(),
        cell.system,
        cell.round
    );
    match cells.entry(cell.key()) {
        Entry::Vacant(free) => {
            free.insert(cell);
            None
        }
        Entry::Occupied(kept) if *kept.get() == cell => None,
        Entry::Occupied(mut kept) => {
            let told = match (&kept.get().failed, &cell.failed) {
                (None, None) => Some(format!("{words} was measured twice: the last one counts")),
                (Some(reason), None) => Some(format!("{words} had failed before: {reason}")),
                (None, Some(reason)) if keeps_figures => {
                    return Some(format!("{words} has failed once: {reason}"));
                }
                _ => None,
            };
            kept.insert(cell);
            told
        }
    }
}

/// Of the memory of two machines that are alike: kernels keep more or less of it for themselves.
const MEMORY_TOLERANCE: f64 = 0.05;

impl Machine {
    /// The disk of a quiet machine is the one that counts: what else ran when a run began makes a sync
    /// seem longer.
    pub fn take_least_sync(&mut self, other: &Machine) {
        if other.sync_us > 0.0 && (self.sync_us == 0.0 || other.sync_us < self.sync_us) {
            self.sync_us = other.sync_us;
        }
    }

    /// Whether figures of both may stand beside each other; how fast its disk was at that time is no
    /// part of it.
    pub fn is_like(&self, other: &Machine) -> bool {
        let what = |machine: &Machine| {
            (machine.processor.clone(), machine.processors, machine.disk.clone())
        };
        let (here, there) = (self.memory_bytes as f64, other.memory_bytes as f64);
        what(self) == what(other) && (here - there).abs() <= MEMORY_TOLERANCE * here.max(there)
    }

    /// What may have changed between runs that are compared: each with what it is here and there.
    fn changes(&self, other: &Machine) -> Vec<(String, String, String)> {
        let tool = |name: &String| {
            let (here, there) = (self.tools.get(name)?, other.tools.get(name)?);
            Some((name.clone(), here.clone(), there.clone()))
        };
        let kernel = ("the kernel".to_owned(), self.kernel.clone(), other.kernel.clone());
        let all = self.tools.keys().filter_map(tool).chain([kernel]);
        all.filter(|(_, here, there)| here != there).collect()
    }

    /// `2 × AMD EPYC, 8 GB, Linux 6.1, ext4`.
    pub fn line(&self) -> String {
        let memory = self.memory_bytes as f64 / f64::from(1 << 30);
        format!(
            "{} × {}, {memory:.0} GiB, {}, {}",
            self.processors, self.processor, self.kernel, self.disk
        )
    }
}

#[cfg(test)]
mod tests;
