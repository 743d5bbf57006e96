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
//! Invariant: an index counts as committed only if the log has the snapshot's term there.

use crate::error::GroupError;
use crate::options::GroupOptions;
use crate::snapshot::Stored;
use quorate_consensus::{Config, EntryKind, Index, LogPosition, Restored, SnapshotMeta, Term};
use quorate_wal::Recovered;

/// How the newest snapshot and the log fit together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The log contains the snapshot's last entry, or starts there, or after it.
    Continued,
    /// The snapshot was received, and the log has yet to be replaced by it.
    Unfinished,
    /// The log ends below, or contradicts, what this member had on disk once.
    LogLost,
}

pub(crate) fn fit(recovered: &Recovered, stored: &Stored) -> Fit {
    let last = stored.meta.last;
    let continued = match last.index.cmp(&recovered.base.index) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => last.term == recovered.base.term,
        std::cmp::Ordering::Greater => term_at(recovered, last.index) == Some(last.term),
    };
    match (continued, stored.received) {
        (true, _) => Fit::Continued,
        (false, true) => Fit::Unfinished,
        (false, false) => Fit::LogLost,
    }
}

/// The term of the entry at `index`, which is above the base.
fn term_at(recovered: &Recovered, index: Index) -> Option<Term> {
    let runs = || recovered.term_runs.iter().rev();
    let run = runs().find(|(first, _)| *first <= index);
    run.filter(|_| index <= recovered.last.index).map(|(_, term)| *term)
}

/// What recovery would have found, had the log been replaced by a snapshot that ends at `base`.
pub(crate) fn replaced(recovered: &mut Recovered, base: LogPosition) {
    recovered.base = base;
    recovered.last = base;
    recovered.term_runs.clear();
    recovered.special.clear();
}

/// The state of the core: `newest` fits the log. Where the log starts below it, its configuration
/// is at least as new as that before the log's first entry, and whatever the log has after the
/// snapshot is newer.
pub(crate) fn restored(
    options: &GroupOptions,
    recovered: &Recovered,
    newest: Option<SnapshotMeta>,
) -> Result<Restored, GroupError> {
    let covered = newest.filter(|meta| meta.last.index >= recovered.base.index);
    let commit = covered.as_ref().map_or(recovered.base.index, |meta| meta.last.index);
    let configs = recovered
        .special
        .iter()
        .filter(|entry| entry.kind == EntryKind::Config)
        .map(|entry| match Config::decode(&entry.data) {
            Ok(config) => Ok((entry.index, config)),
            Err(error) => Err(GroupError::UnreadableMembership {
                dir: options.dir.clone(),
                index: entry.index,
                reason: error.to_string(),
            }),
        })
        .collect::<Result<_, _>>()?;
    Ok(Restored {
        hard_state: recovered.hard_state,
        snapshot: SnapshotMeta {
            last: recovered.base,
            config: covered.map(|meta| meta.config).unwrap_or_default(),
        },
        last: recovered.last,
        term_runs: recovered.term_runs.clone(),
        configs,
        commit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::{Charter, HardState, MemberId};
    use quorate_wal::Identity;

    /// A log with base (1, 10), entries 11 to 14 of term 2, 15 to 20 of term 4.
    fn log() -> Recovered {
        let identity =
            Identity { member: MemberId(1), group: 1, charter: Charter::default(), incarnation: 2 };
        Recovered {
            identity,
            hard_state: HardState { term: 4, voted_for: None },
            base: LogPosition { term: 1, index: 10 },
            last: LogPosition { term: 4, index: 20 },
            term_runs: vec![(11, 2), (15, 4)],
            special: Vec::new(),
            torn_bytes: 0,
            closed: true,
        }
    }

    fn stored(term: Term, index: Index, received: bool) -> Stored {
        let meta = SnapshotMeta { last: LogPosition { term, index }, config: Config::default() };
        Stored { meta, received }
    }

    #[test]
    fn only_a_snapshot_whose_last_entry_is_in_the_log_says_what_is_committed() {
        let cases = [
            (1, 9, Fit::Continued, Fit::Continued),
            (1, 10, Fit::Continued, Fit::Continued),
            (2, 10, Fit::Unfinished, Fit::LogLost),
            (2, 14, Fit::Continued, Fit::Continued),
            (3, 14, Fit::Unfinished, Fit::LogLost),
            (4, 15, Fit::Continued, Fit::Continued),
            (4, 20, Fit::Continued, Fit::Continued),
            (5, 20, Fit::Unfinished, Fit::LogLost),
            (4, 21, Fit::Unfinished, Fit::LogLost),
        ];
        for (term, index, received, own) in cases {
            assert_eq!(fit(&log(), &stored(term, index, true)), received, "({term}, {index})");
            assert_eq!(fit(&log(), &stored(term, index, false)), own, "({term}, {index})");
        }
        let mut empty = log();
        replaced(&mut empty, LogPosition { term: 5, index: 20 });
        assert_eq!(fit(&empty, &stored(5, 20, true)), Fit::Continued);
        assert_eq!(fit(&empty, &stored(5, 21, true)), Fit::Unfinished);
    }
}
