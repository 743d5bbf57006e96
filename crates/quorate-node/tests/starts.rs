//! Every start there can be: `grastate.dat` × InnoDB's position × log × snapshots × saved term × new
//! or old member. What the log and the snapshots give on real directories is in `quorate-live`'s
//! matrix of the same name; here the database stands before them.
//!
//! The group has committed entries 1 to 4 in term 1, 5 and 6 in term 2, and from 7 on in term 3; entry
//! `n` has the `n`th seqno after the genesis. The leader of term 2 had entries 7 to 9 that were
//! superseded.

use quorate_certify::Constants;
use quorate_consensus::{
    Charter, Config, HardState, Index, LogPosition, MemberId, SnapshotMeta, Term,
};
use quorate_group::{fit, Directory, Fit, Stored};
use quorate_node::settings::Words;
use quorate_node::start::genesis::Genesis;
use quorate_node::start::grastate::Grastate;
use quorate_node::start::refused::Refused;
use quorate_node::start::resume::{check_confirmed, resume, Beginning, Database, Owner, Start};
use quorate_node::start::Position;
use std::collections::BTreeSet;

const GROUP: u128 = 9 << 90 | 5;
const OTHER_GROUP: u128 = 3;
const OTHER_HISTORY: u128 = 8 << 100;

#[derive(Clone, Copy, Debug)]
struct Snapshot {
    last: LogPosition,
    received: bool,
    readable: bool,
}

/// What a log holds: everything after the base.
#[derive(Clone, Debug)]
struct Log {
    base: LogPosition,
    entries: Vec<LogPosition>,
}

/// What is true of a database.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Truth {
    /// The group's history up to this seqno, and nothing else.
    Ours(i64),
    OtherHistory,
    /// It is at this seqno of the group's history by its numbers, but somebody else wrote them.
    WrittenByOthers(i64),
    NobodyKnows,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Outcome {
    Continues { seqno: i64, after: Index },
    Fetches { after: Index },
    Refuses,
}

fn at(term: Term, index: Index) -> LogPosition {
    LogPosition { term, index }
}

fn committed(index: Index) -> LogPosition {
    let term = match index {
        0 => 0,
        1..=4 => 1,
        5..=6 => 2,
        _ => 3,
    };
    at(term, index)
}

fn logs() -> Vec<(&'static str, Log)> {
    let range = |from: Index, to: Index| Log {
        base: committed(from - 1),
        entries: (from..=to).map(committed).collect(),
    };
    let superseded = (1..=6).map(committed).chain((7..=9).map(|index| at(2, index))).collect();
    vec![
        ("none", range(1, 0)),
        ("all", range(1, 12)),
        ("purged", range(7, 12)),
        ("superseded tail", Log { base: at(0, 0), entries: superseded }),
        ("rolled back", range(1, 5)),
    ]
}

fn snapshots() -> Vec<(&'static str, Vec<Snapshot>)> {
    let own = |last| Snapshot { last, received: false, readable: true };
    let received = |last| Snapshot { received: true, ..own(last) };
    let unreadable = |last| Snapshot { readable: false, ..own(last) };
    vec![
        ("none", vec![]),
        ("old", vec![own(committed(4))]),
        ("old and newer", vec![own(committed(4)), own(committed(8))]),
        ("newer one unreadable", vec![own(committed(4)), unreadable(committed(5))]),
        ("received, newer than the log", vec![own(committed(4)), received(committed(14))]),
        ("own, newer than the log", vec![own(committed(14))]),
        ("received, of a term that no log has there", vec![received(at(1, 8))]),
        ("old ones of another term", vec![own(at(9, 3)), own(at(9, 5)), own(committed(6))]),
    ]
}

/// A group that began with an empty database, and one that continues another provider's history.
fn groups() -> [Genesis; 2] {
    let new = Constants::default();
    let continued = Constants { history: 7 << 100, seqno: 10, ..new };
    [new, continued].map(|constants| Genesis::of_group(GROUP, &constants))
}

fn seqno_of(genesis: &Genesis, index: Index) -> i64 {
    genesis.seqno + i64::try_from(index).unwrap()
}

/// Undefined, before the genesis, at it, in the log, above what is known as committed, above the log.
fn seqnos(genesis: &Genesis) -> Vec<i64> {
    let from_genesis = [-3, -1, 0, 3, 5, 8, 12, 14, 20].map(|each| genesis.seqno + each);
    [-1].into_iter().chain(from_genesis.into_iter().filter(|seqno| *seqno >= 0)).collect()
}

fn saved(genesis: &Genesis) -> Vec<Option<Grastate>> {
    let mut all = vec![None];
    for safe_to_bootstrap in [false, true] {
        for group in [0, GROUP, OTHER_GROUP] {
            let mut add = |uuid, seqno| {
                let position = Position { uuid, seqno };
                all.push(Some(Grastate { position, safe_to_bootstrap, group, gtid_domain: None }));
            };
            add(0, -1);
            for seqno in seqnos(genesis) {
                add(genesis.history, seqno);
                add(OTHER_HISTORY, seqno);
            }
        }
    }
    all
}

fn recovered(genesis: &Genesis) -> Vec<Option<Position>> {
    let of = |uuid| seqnos(genesis).into_iter().map(move |seqno| Some(Position { uuid, seqno }));
    let none = [None, Some(Position { uuid: 0, seqno: -1 })];
    none.into_iter().chain(of(genesis.history)).chain(of(OTHER_HISTORY)).collect()
}

/// 1. Without `grastate.dat` nobody knows what the database was for: so people ask for a transfer. But
///    another history's stays what it is, and an empty one is the beginning of a new group.
/// 2. A file without a uuid is what a transfer leaves that did not end.
/// 3. The database is of another history if either of the two says so.
/// 4. InnoDB knows best where it stands; after a clean stop the file knows too.
/// 5. The group's own mark says that the group wrote it. Up to the genesis the founder's mark does, too,
///    here none; all else was written by others.
fn truth(genesis: &Genesis, saved: Option<Grastate>, recovered: Option<Position>) -> Truth {
    let recovered = recovered.filter(|position| position.uuid != 0);
    let foreign = recovered.is_some_and(|position| position.uuid != genesis.history);
    let Some(saved) = saved else {
        let empty = Some(Position { uuid: GROUP, seqno: 0 });
        return match recovered {
            _ if foreign => Truth::OtherHistory,
            position if position == empty => Truth::Ours(0),
            _ => Truth::NobodyKnows,
        };
    };
    if saved.position.uuid == 0 {
        return Truth::NobodyKnows;
    }
    if foreign || saved.position.uuid != genesis.history {
        return Truth::OtherHistory;
    }
    let known = [recovered, Some(saved.position)].into_iter().flatten();
    let Some(seqno) = known.map(|position| position.seqno).find(|seqno| *seqno >= 0) else {
        return Truth::NobodyKnows;
    };
    match saved.group {
        GROUP => Truth::Ours(seqno),
        0 if seqno <= genesis.seqno => Truth::Ours(seqno),
        _ => Truth::WrittenByOthers(seqno),
    }
}

impl Log {
    fn contains(&self, position: LogPosition) -> bool {
        position == self.base || self.entries.contains(&position)
    }

    fn term_at(&self, index: Index) -> Option<Term> {
        let mut all = self.entries.iter().chain([&self.base]);
        all.find(|position| position.index == index).map(|position| position.term)
    }

    fn directory(&self, term: Term) -> Directory {
        Directory {
            member: MemberId(1),
            incarnation: 2,
            group: GROUP,
            charter: Charter::default(),
            hard_state: HardState { term, voted_for: None },
            base: self.base,
            last: self.entries.last().copied().unwrap_or(self.base),
            term_runs: self.entries.iter().map(|entry| (entry.index, entry.term)).collect(),
            special: Vec::new(),
        }
    }
}

/// What the log is once a received snapshot has replaced it; `None`: it lost what the node had on disk.
fn settled(log: &Log, snapshots: &[Snapshot]) -> Option<Log> {
    let newest = snapshots.iter().max_by_key(|each| each.last.index);
    match newest.filter(|each| each.last.index >= log.base.index) {
        Some(newest) if !log.contains(newest.last) => {
            newest.received.then(|| Log { base: newest.last, entries: Vec::new() })
        }
        _ => Some(log.clone()),
    }
}

/// - A log that lost something is not used, nor one that nothing can be begun with.
/// - A database of others is replaced only by a new member, and only if it has nothing that the group
///   began without.
/// - What is ours continues from the newest snapshot of the log that reaches no further.
/// - All else takes the state of another node, beginning at the newest point of the log.
fn expected(
    genesis: &Genesis,
    log: Option<&Log>,
    snapshots: &[Snapshot],
    truth: Truth,
    fresh: bool,
) -> Outcome {
    let Some(log) = log else { return Outcome::Refuses };
    let keeps = match truth {
        Truth::OtherHistory => !fresh,
        Truth::WrittenByOthers(seqno) => !fresh || seqno > genesis.seqno,
        Truth::Ours(_) | Truth::NobodyKnows => false,
    };
    let points = snapshots.iter().filter(|each| each.readable && log.contains(each.last));
    let mut points: Vec<Index> = points.map(|each| each.last.index).collect();
    points.extend((log.base.index == 0).then_some(0));
    let Some(newest) = points.iter().copied().max().filter(|_| !keeps) else {
        return Outcome::Refuses;
    };
    let reached = |seqno| points.into_iter().filter(move |each| seqno_of(genesis, *each) <= seqno);
    let continues = match truth {
        Truth::Ours(seqno) => reached(seqno).max().map(|after| (seqno, after)),
        _ => None,
    };
    match continues {
        Some((seqno, after)) => Outcome::Continues { seqno, after },
        None => Outcome::Fetches { after: newest },
    }
}

/// As a start does it: the log and the newest snapshot first, then the database.
fn outcome(
    database: &Database,
    owner: &Owner,
    (log, term): (&Log, Term),
    snapshots: &[Snapshot],
) -> Outcome {
    let mut log = log.clone();
    if let Some(newest) = snapshots.iter().max_by_key(|each| each.last.index) {
        let meta = SnapshotMeta { last: newest.last, config: Config::default() };
        let stored = Stored { meta, received: newest.received };
        match fit(&log.directory(term), &stored, "the log's directory") {
            Ok(Fit::Continued) => {}
            Ok(Fit::Unfinished) => log = Log { base: newest.last, entries: Vec::new() },
            Err(_lost) => return Outcome::Refuses,
        }
    }
    let of = |last: LogPosition, readable: bool| Beginning {
        last,
        log_term: log.term_at(last.index),
        seqno: readable.then(|| seqno_of(&owner.genesis, last.index)),
    };
    let mut beginnings: Vec<_> =
        snapshots.iter().map(|each| of(each.last, each.readable)).collect();
    beginnings.push(of(at(0, 0), true));
    match resume(database, owner, &beginnings) {
        Start::Continue { seqno, snapshot } => Outcome::Continues { seqno, after: snapshot },
        Start::Fetch { snapshot } => Outcome::Fetches { after: snapshot },
        Start::Refuse(sentence) => {
            assert!(sentence.contains("Nothing was changed"), "{sentence}");
            let remedy = ["empty ", "remove "].iter().any(|word| sentence.contains(word));
            assert!(remedy && sentence.contains("the log's directory"), "{sentence}");
            Outcome::Refuses
        }
    }
}

fn database(saved: Option<Grastate>, recovered: Option<Position>) -> Database {
    let words = Words {
        start_position: "--position",
        recover: "--recover",
        options: "options",
        found: "--found",
        reconnect: "reconnect",
        primary_shown: "primary",
        transfer_method: "method",
        transfer_methods: "methods",
        gtid_domain: "gtid domain",
    };
    let (data_dir, log_dir) = ("/data".into(), "the log's directory".into());
    Database { saved, recovered, refused: None, data_dir, log_dir, words }
}

/// What a start continues on counts only once the group has committed more: whether the own log has it or not. At the
/// time of the first view of this process the group has committed entries 1 to `end`, and that view.
fn check_confirmation(genesis: &Genesis, seqno: i64) {
    for end in [0, 2, 4, 5, 9, 12, 13, 14, 19, 20, 25] {
        let (has, view) = (seqno_of(genesis, end), seqno_of(genesis, end + 1));
        // DDL is durable in the database before its position is.
        for noted in [None, Some(seqno + 1), Some(seqno + 3)] {
            let confirmed = check_confirmed(seqno, noted, view);
            let reached = noted.unwrap_or(seqno);
            assert_eq!(confirmed.is_ok(), reached <= has, "at {reached}; the group is at {has}");
            let sentence = confirmed.err().unwrap_or_default();
            assert!(sentence.is_empty() || sentence.contains("Nothing was changed"), "{sentence}");
        }
    }
}

/// A moment after it was refused the group may be past its seqno, with other transactions.
#[test]
fn a_database_that_was_refused_beside_this_log_stays_refused() {
    let genesis = groups()[0];
    let of = |seqno| Position { uuid: genesis.history, seqno };
    let refused =
        [None, Some(Refused::At(of(6))), Some(Refused::At(of(5))), Some(Refused::Unknown)];
    let found = |refused, founded| {
        let position = of(5);
        let saved = Grastate { position, safe_to_bootstrap: true, group: GROUP, gtid_domain: None };
        let database = Database { refused, ..database(Some(saved), None) };
        let owner = Owner { group: GROUP, genesis, fresh: false, founded };
        outcome(&database, &owner, (&logs().remove(0).1, 1), &[])
    };
    let refuses = refused.map(|refused| found(refused, false) == Outcome::Refuses);
    assert_eq!(refuses, [false, false, true, true]);
    assert!(refused.iter().all(|refused| found(*refused, true) != Outcome::Refuses), "a new log");
}

/// All starts of this database.
fn starts(database: &Database, genesis: Genesis) -> Vec<Outcome> {
    let truth = truth(&genesis, database.saved, database.recovered);
    let mut all = Vec::new();
    for (log_name, log) in logs() {
        for (snapshot_name, snapshots) in snapshots() {
            let settled = settled(&log, &snapshots);
            for fresh in [false, true] {
                let owner = Owner { group: GROUP, genesis, fresh, founded: false };
                let expected = expected(&genesis, settled.as_ref(), &snapshots, truth, fresh);
                // Below the log's, the log's, and above it.
                let last = log.entries.last().unwrap_or(&log.base).term;
                for term in [0, last, 9] {
                    let found = outcome(database, &owner, (&log, term), &snapshots);
                    assert_eq!(
                        found, expected,
                        "log: {log_name}; snapshots: {snapshot_name}; term {term}; new member: {fresh}; \
                         {truth:?}: {:?}, InnoDB at {:?}, genesis {genesis}",
                        database.saved, database.recovered
                    );
                    all.push(found);
                }
            }
        }
    }
    all
}

#[test]
fn each_start_continues_with_what_was_committed_or_fetches_it_or_refuses() {
    let (mut continued, mut fetched, mut refused) = (0, 0, 0);
    for genesis in groups() {
        let mut stand = BTreeSet::new();
        for saved in saved(&genesis) {
            for recovered in recovered(&genesis) {
                for found in starts(&database(saved, recovered), genesis) {
                    match found {
                        Outcome::Continues { seqno, .. } => {
                            continued += 1;
                            stand.insert(seqno);
                        }
                        Outcome::Fetches { .. } => fetched += 1,
                        Outcome::Refuses => refused += 1,
                    }
                }
            }
        }
        let log_end = seqno_of(&genesis, 12);
        assert!(stand.iter().any(|seqno| *seqno > log_end), "above the own log");
        stand.iter().for_each(|seqno| check_confirmation(&genesis, *seqno));
    }
    println!("{continued} starts continue, {fetched} fetch the state, {refused} refuse");
    assert!(continued > 0 && fetched > 0 && refused > 0);
}

#[test]
fn a_founder_continues_where_it_founded() {
    for genesis in groups() {
        let position = Position { uuid: OTHER_HISTORY, seqno: -1 };
        let saved = Grastate { position, safe_to_bootstrap: true, group: 0, gtid_domain: None };
        let owner = Owner { group: GROUP, genesis, fresh: true, founded: true };
        let seqno = Some(genesis.seqno);
        let beginning = Beginning { last: at(0, 0), log_term: Some(0), seqno };
        let expected = Start::Continue { seqno: genesis.seqno, snapshot: 0 };
        assert_eq!(resume(&database(Some(saved), None), &owner, &[beginning]), expected);
    }
}
