//! All that a start does on the disk before there is a member. A crash may come anywhere in it: the next
//! start goes on from what it finds.
//!
//! Invariants:
//! - the group's id is saved only when the group's first entry is durable: before that nobody else can have
//!   heard of it;
//! - a directory that is an older state of itself is marked, and refused, before its log is changed;
//! - the log is replaced by a snapshot only where a leader sent that; one that this member took itself, of
//!   entries which the log does not have, is a reason to refuse.

use crate::error::StartError;
use crate::lineage::check_starts;
use crate::options::Options;
use crate::output::LogLevel;
use crate::snapshot::{Content, Stored};
use crate::start::{fit, founding, judge_seed, superseded, Directory, Fit, SeedAnswer};
use crate::view::View;
use bytes::Bytes;
use quorate_consensus::{Charter, Entry, HardState, Index, LogPosition, MemberId, SnapshotMeta};

/// The directory of a member that starts. What it is told to do is durable when it returns.
pub trait Opening {
    type Error: From<StartError>;

    /// Asks who listens at `addr` for a group; `own` asks.
    fn ask_seed(&mut self, own: MemberId, addr: &str) -> SeedAnswer;

    fn save_hard_state(&mut self, state: HardState) -> Result<(), Self::Error>;

    /// The first entry of a log that is empty.
    fn write_first(&mut self, entry: &Entry) -> Result<(), Self::Error>;

    fn save_group(&mut self, group: u128, charter: Charter) -> Result<(), Self::Error>;

    /// The newest snapshot that can be read, and its content.
    fn newest_snapshot(&mut self) -> Result<Option<(Stored, Bytes)>, Self::Error>;

    fn remove_snapshot(&mut self, index: Index) -> Result<(), Self::Error>;

    /// The log is to be empty, and to start after `base`.
    fn reset_log(&mut self, base: LogPosition) -> Result<(), Self::Error>;

    /// A note by which each later start is refused.
    fn mark_rolled_back(&mut self, reason: &str) -> Result<(), Self::Error>;

    fn log(&mut self, level: LogLevel, line: String);
}

/// What a member starts from.
#[derive(Debug)]
pub struct Opened {
    pub directory: Directory,
    pub newest: Option<(SnapshotMeta, View)>,
    /// The group was created just now.
    pub founded: bool,
}

/// Brings what a directory has into a state to start from. `id` is random bits for a new group's id.
pub fn prepare<O: Opening>(
    options: &Options,
    mut directory: Directory,
    id: u128,
    disk: &mut O,
) -> Result<Opened, O::Error> {
    let founded = found(options, &mut directory, id, disk)?;
    let newest = newest_snapshot(options, &mut directory, disk)?;
    Ok(Opened { directory, newest, founded })
}

/// True if a group was founded.
fn found<O: Opening>(
    options: &Options,
    directory: &mut Directory,
    id: u128,
    disk: &mut O,
) -> Result<bool, O::Error> {
    let founding = founding(options, directory, id)?;
    for addr in &founding.ask {
        let answer = disk.ask_seed(directory.member, addr);
        judge_seed(options, directory.member, addr, answer)?;
    }
    if let Some((state, entry)) = &founding.write {
        disk.save_hard_state(*state)?;
        disk.write_first(entry)?;
    }
    if let Some((group, charter)) = founding.group {
        disk.save_group(group, charter)?;
    }
    founding.apply(directory);
    if let Some(line) = founding.line {
        disk.log(LogLevel::Info, line);
    }
    Ok(founding.group.is_some())
}

/// The newest snapshot. Where it was received and the log was not replaced by it yet, the log is.
fn newest_snapshot<O: Opening>(
    options: &Options,
    directory: &mut Directory,
    disk: &mut O,
) -> Result<Option<(SnapshotMeta, View)>, O::Error> {
    let dir = &options.dir;
    let mut newest = disk.newest_snapshot()?;
    while let Some((stored, _)) = newest.as_ref().filter(|(s, _)| superseded(directory, s)) {
        let index = stored.meta.last.index;
        let line = format!(
            "log {dir}: the snapshot of index {index} is of a majority that was given up for lost, and is \
             deleted"
        );
        disk.log(LogLevel::Warn, line);
        disk.remove_snapshot(index)?;
        newest = disk.newest_snapshot()?;
    }
    let content = newest.as_ref().and_then(|(_, content)| Content::decode(content.clone()).ok());
    let view = content.map(|content| content.view);
    if let Err(error) = check_starts(directory, view.as_ref(), dir) {
        if let StartError::RolledBack { reason, .. } = &error {
            disk.mark_rolled_back(reason)?;
        }
        return Err(error.into());
    }
    let Some((stored, _)) = newest else { return Ok(None) };
    if fit(directory, &stored, dir)? == Fit::Unfinished {
        let snapshot = stored.meta.last;
        let line = format!(
            "log {dir}: the snapshot of index {} came from the leader, and the log, which ends at {}, is \
             replaced by it now",
            snapshot.index, directory.last.index
        );
        disk.log(LogLevel::Info, line);
        disk.reset_log(snapshot)?;
        directory.replace_log(snapshot);
    }
    Ok(Some((stored.meta, view.unwrap_or_default())))
}
