//! What the core starts from: the log, and the newest snapshot beside it.
//!
//! A snapshot stands for a committed state. If the log contains its last entry, everything up to
//! there is committed. If not, where the snapshot came from decides:
//! - it was *received*: a crash, or a refusal by the core, kept the log from being replaced by it.
//!   That is finished here, before anything else: what the log holds was superseded, or is in the
//!   snapshot;
//! - this member *took it itself*: it had the entries up to there, on disk and acknowledged. The
//!   log has lost them, and a member that does not remember what it acknowledged must not vote.
//!
//! A received snapshot of a majority that was given up for lost since is [`superseded`]: it is deleted,
//! and the next one is looked at. A running member lets none stay ([`crate::Member::stored`]), so this
//! is for directories that nobody watched over. That the log merely has an entry of a later term below
//! the snapshot's last does not say so: such an entry may be what a leader left that lost the next
//! election, and the snapshot be acknowledged already.
//!
//! Invariant: an index counts as committed only if the log has the snapshot's term there.

use super::directory::Directory;
use crate::error::StartError;
use crate::snapshot::Stored;
use quorate_consensus::{level, Config, Entry, EntryKind, Level, Restored, SnapshotMeta};
use std::cmp::Ordering;

/// How the newest snapshot and the log fit together.
#[derive(Debug, PartialEq, Eq)]
pub enum Fit {
    /// The log contains the snapshot's last entry, or starts there, or after it.
    Continued,
    /// The snapshot was received, and the log has yet to be replaced by it: reset it, wait until
    /// that is durable, and tell the directory ([`Directory::replace_log`]).
    Unfinished,
}

/// Whether what it stands for was given up: at or before its last entry the log gives up members by force that
/// the snapshot does not know as lost, or starts in a later term. (Who was expelled by order was not given up.)
pub(crate) fn superseded(directory: &Directory, stored: &Stored) -> bool {
    let SnapshotMeta { last, config } = &stored.meta;
    let forced = |entry: &Entry| {
        let decoded = Config::decode(&entry.data);
        entry.kind == EntryKind::Config
            && entry.index <= last.index
            && decoded.is_ok_and(|found| {
                !found.audit.is_empty() && found.lost.iter().any(|id| !config.lost.contains(id))
            })
    };
    let base = directory.base;
    let starts_later = base.index <= last.index && base.term > last.term;
    stored.received && (starts_later || directory.special.iter().any(forced))
}

/// Refuses where the log ends below, or contradicts, what this member had on disk once. `dir` is for
/// the error.
pub fn fit(directory: &Directory, stored: &Stored, dir: &str) -> Result<Fit, StartError> {
    let snapshot = stored.meta.last;
    let continued = match snapshot.index.cmp(&directory.base.index) {
        Ordering::Less => true,
        Ordering::Equal => snapshot.term == directory.base.term,
        Ordering::Greater => directory.term_at(snapshot.index) == Some(snapshot.term),
    };
    match (continued, stored.received) {
        (true, _) => Ok(Fit::Continued),
        (false, true) => Ok(Fit::Unfinished),
        (false, false) => Err(StartError::LogLost {
            dir: dir.to_owned(),
            last: directory.last.index,
            snapshot: snapshot.index,
        }),
    }
}

/// The state of the core: `newest` fits the log. Where the log starts below it, its configuration
/// is at least as new as that before the log's first entry, and whatever the log has after the
/// snapshot is newer.
pub(crate) fn restored(
    directory: Directory,
    newest: Option<SnapshotMeta>,
    dir: &str,
    known: Level,
) -> Result<Restored, StartError> {
    let unreadable =
        |index, reason| StartError::UnreadableMembership { dir: dir.to_owned(), index, reason };
    let covered = newest.filter(|meta| meta.last.index >= directory.base.index);
    if let Some(meta) = covered.as_ref().filter(|meta| meta.config.level > known) {
        return Err(unreadable(meta.last.index, level::upgrade(meta.config.level)));
    }
    let commit = covered.as_ref().map_or(directory.base.index, |meta| meta.last.index);
    let configs = directory
        .special
        .iter()
        .filter(|entry| entry.kind == EntryKind::Config)
        .map(|entry| match Config::decode_up_to(known, &entry.data) {
            Ok(config) => Ok((entry.index, config)),
            Err(error) => Err(unreadable(entry.index, error.to_string())),
        })
        .collect::<Result<_, _>>()?;
    Ok(Restored {
        hard_state: directory.hard_state,
        snapshot: SnapshotMeta {
            last: directory.base,
            config: covered.map(|meta| meta.config).unwrap_or_default(),
        },
        last: directory.last,
        term_runs: directory.term_runs,
        configs,
        commit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::{Charter, HardState, Index, LogPosition, MemberId, Term};

    /// A log with base (1, 10), entries 11 to 14 of term 2, 15 to 20 of term 4.
    fn log() -> Directory {
        Directory {
            member: MemberId(1),
            incarnation: 2,
            group: 1,
            charter: Charter::default(),
            hard_state: HardState { term: 4, voted_for: None },
            base: LogPosition { term: 1, index: 10 },
            last: LogPosition { term: 4, index: 20 },
            term_runs: vec![(11, 2), (15, 4)],
            special: Vec::new(),
        }
    }

    fn stored(term: Term, index: Index, received: bool) -> Stored {
        let meta = SnapshotMeta { last: LogPosition { term, index }, config: Config::default() };
        Stored { meta, received }
    }

    #[test]
    fn a_received_snapshot_is_superseded_by_a_log_that_gives_up_others_below_its_end() {
        let giving_up = |lost: &[u128]| Config {
            lost: lost.iter().copied().map(MemberId).collect(),
            ..Config::default()
        };
        let with = |index, config: Config| {
            let mut log = log();
            log.special = vec![Entry::new(index, 4, EntryKind::Config, config.encode())];
            log
        };
        let by_force = |index| with(index, Config { audit: "why".into(), ..giving_up(&[7, 8]) });
        let snapshot = |term, index, lost: &[u128]| {
            let mut stored = stored(term, index, true);
            stored.meta.config = giving_up(lost);
            stored
        };
        for (forced, term, index, lost, gone) in [
            (15, 2, 14, &[7][..], false),
            (15, 2, 15, &[7], true),
            (15, 3, 30, &[], true),
            (15, 4, 30, &[7, 8], false),
            (15, 5, 30, &[7, 8, 9], false),
        ] {
            let stored = snapshot(term, index, lost);
            assert_eq!(superseded(&by_force(forced), &stored), gone, "({term}, {index}) {lost:?}");
            assert!(!superseded(&by_force(forced), &Stored { received: false, ..stored }));
        }
        // Expelled by an order that another leader's log superseded.
        assert!(!superseded(&with(15, giving_up(&[7, 8])), &snapshot(3, 30, &[])));
        // The leader of term 4 wrote 15, and was superseded by one who had 15 of term 3.
        assert!(!superseded(&log(), &stored(3, 15, true)));
        // What the log starts after is committed.
        assert!(
            superseded(&log(), &stored(0, 12, true)) && !superseded(&log(), &stored(0, 9, true))
        );
    }

    #[test]
    fn only_a_snapshot_whose_last_entry_is_in_the_log_says_what_is_committed() {
        let cases = [
            (1, 9, true),
            (1, 10, true),
            (2, 10, false),
            (2, 14, true),
            (3, 14, false),
            (4, 15, true),
            (4, 20, true),
            (5, 20, false),
            (4, 21, false),
        ];
        for (term, index, continued) in cases {
            let expected = if continued { Fit::Continued } else { Fit::Unfinished };
            assert_eq!(fit(&log(), &stored(term, index, true), ""), Ok(expected), "{term} {index}");
            let own = fit(&log(), &stored(term, index, false), "");
            assert_eq!(own.is_ok(), continued, "({term}, {index})");
        }
        let mut empty = log();
        empty.replace_log(LogPosition { term: 5, index: 20 });
        assert_eq!(fit(&empty, &stored(5, 20, true), ""), Ok(Fit::Continued));
        assert_eq!(fit(&empty, &stored(5, 21, true), ""), Ok(Fit::Unfinished));
    }
}
