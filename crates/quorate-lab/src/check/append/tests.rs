use super::super::testing::{final_read, named, sequence};
use super::graph::{Graph, Kind};
use super::*;
use petgraph::visit::EdgeRef;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Transactions as the history writes them: `1=1,2 1+3`. The last one is the final read.
fn history(txns: &[(Outcome, &str)]) -> Vec<Operation> {
    let lines: String = txns
        .iter()
        .enumerate()
        .map(|(number, (outcome, steps))| {
            let outcome = format!("{outcome:?}").to_lowercase();
            format!("{number} {number} p{number} n1 {outcome} txn {steps}\n")
        })
        .collect();
    crate::history::read(lines.as_bytes()).unwrap()
}

fn found(txns: &[(Outcome, &str)]) -> Vec<(&'static str, usize)> {
    named(&check(&history(txns)))
}

#[test]
fn serial_histories_are_clean() {
    use Outcome::{Fail, Ok, Unknown};
    assert_eq!(found(&[]), []);
    assert_eq!(found(&[(Ok, "1=- 1+1 1=1"), (Ok, "1=1 1+2"), (Ok, "1=1,2 2=-")]), []);
    assert_eq!(found(&[(Fail, "1+1"), (Unknown, "1+2"), (Ok, "1=-")]), []);
    assert_eq!(found(&[(Unknown, "1+2 2=?"), (Ok, "1=2")]), []);
}

#[test]
fn aborted_read() {
    use Outcome::{Fail, Ok};
    assert_eq!(found(&[(Fail, "1+1"), (Ok, "1=1")]), [("G1a", 1)]);
}

#[test]
fn intermediate_read() {
    use Outcome::Ok;
    let between = [(Ok, "1+1 1+2"), (Ok, "1=1"), (Ok, "1=1,2")];
    // Who reads between two writes is before and after the writer as well.
    assert_eq!(found(&between), [("G1b", 1), ("G-single", 1)]);
    assert_eq!(found(&[(Ok, "1+1 1=1 1+2"), (Ok, "1=1,2")]), []);
}

#[test]
fn a_value_from_nowhere_or_twice() {
    use Outcome::Ok;
    assert_eq!(found(&[(Ok, "1=9")]), [("invented", 1)]);
    assert_eq!(found(&[(Ok, "1+1"), (Ok, "1=1,1")]), [("repeated", 1)]);
}

#[test]
fn reads_that_contradict_each_other() {
    use Outcome::Ok;
    let orders = [(Ok, "1+1"), (Ok, "1+2"), (Ok, "1=1,2"), (Ok, "1=2")];
    assert!(found(&orders).contains(&("incompatible order", 1)));
}

#[test]
fn a_transaction_that_contradicts_itself() {
    use Outcome::Ok;
    assert_eq!(found(&[(Ok, "1=- 1+1 1=-"), (Ok, "1=1")])[0], ("internal", 1));
    assert!(found(&[(Ok, "1+1"), (Ok, "1=- 1=1")]).contains(&("internal", 1)));
    assert_eq!(found(&[(Ok, "1+1"), (Ok, "1+2 1=1,2")]), []);
}

#[test]
fn write_cycle() {
    use Outcome::Ok;
    assert_eq!(found(&[(Ok, "1+1 2+1"), (Ok, "1+2 2+2"), (Ok, "1=1,2 2=2,1")])[0], ("G0", 1));
}

#[test]
fn circular_information_flow() {
    use Outcome::Ok;
    let flow = [(Ok, "1+1 2=5"), (Ok, "2+5 1=1")];
    assert_eq!(found(&flow), [("G1c", 1)]);
}

#[test]
fn read_skew_and_lost_update_are_g_single() {
    use Outcome::Ok;
    let skew = [(Ok, "1=- 2=1"), (Ok, "1+1 2+1"), (Ok, "1=1 2=1")];
    assert_eq!(found(&skew), [("G-single", 1)]);
    let lost = [(Ok, "1=- 1+1"), (Ok, "1=- 1+2"), (Ok, "1=1,2")];
    assert_eq!(found(&lost), [("lost update", 1), ("G-single", 1)]);
}

#[test]
fn write_skew_is_g2_alone() {
    use Outcome::Ok;
    let skew = [(Ok, "1=- 2+1"), (Ok, "2=- 1+1"), (Ok, "1=1 2=1")];
    assert_eq!(found(&skew), [("G2", 1)]);
}

#[test]
fn a_long_fork_is_nonadjacent_under_snapshot_isolation() {
    use Outcome::Ok;
    let fork = [(Ok, "1+1"), (Ok, "2+1"), (Ok, "1=1 2=-"), (Ok, "1=- 2=1"), (Ok, "1=1 2=1")];
    assert_eq!(found(&fork), [("G-nonadjacent", 1)]);
}

#[test]
fn an_acknowledged_append_that_the_final_read_lacks_is_lost() {
    let mut history =
        history(&[(Outcome::Ok, "1+1"), (Outcome::Ok, "1+2"), (Outcome::Unknown, "1+3")]);
    let list =
        |values: &[u64]| Action::Txn(vec![Step::Read { key: 1, list: Some(values.to_vec()) }]);
    history.push(final_read(1, list(&[1, 2])));
    assert_eq!(named(&check(&history)), []);
    history.push(final_read(2, list(&[1])));
    assert_eq!(named(&check(&history)), [("lost", 1)]);
}

/// The evidence names the smallest cycle though longer ones are there.
#[test]
fn the_smallest_case_is_shown() {
    use Outcome::Ok;
    let txns = [
        (Ok, "1=- 2+1"),
        (Ok, "2=- 3+1"),
        (Ok, "3=- 1+1"),
        (Ok, "4=- 5+1"),
        (Ok, "5=- 4+1"),
        (Ok, "1=1 2=1 3=1 4=1 5=1"),
    ];
    let findings = check(&history(&txns));
    assert_eq!(named(&findings), [("G2", 2)]);
    assert!(findings[0].evidence.contains("4=- 5+1"), "{}", findings[0].evidence);
    assert_eq!(findings[0].evidence.lines().count(), 4);
}

#[derive(Clone, Copy, Debug)]
enum Access {
    Read(u32),
    Append(u32),
}

fn transactions() -> impl Strategy<Value = Vec<Vec<Access>>> {
    let access = prop_oneof![(0..3u32).prop_map(Access::Read), (0..3u32).prop_map(Access::Append)];
    prop::collection::vec(prop::collection::vec(access, 1..5), 1..12)
}

type Lists = BTreeMap<u32, Vec<u64>>;

/// Runs a transaction on a state of the lists, with values of its own.
fn run(accesses: &[Access], state: &mut Lists, next: &mut u64) -> Vec<Step> {
    accesses
        .iter()
        .map(|access| match access {
            Access::Read(key) => {
                Step::Read { key: *key, list: Some(state.entry(*key).or_default().clone()) }
            }
            Access::Append(key) => {
                *next += 1;
                state.entry(*key).or_default().push(*next);
                Step::Append { key: *key, value: *next }
            }
        })
        .collect()
}

fn read_all(state: &Lists) -> Operation {
    let read = |key| Step::Read { key, list: Some(state.get(&key).cloned().unwrap_or_default()) };
    final_read(1, Action::Txn((0..3).map(read).collect()))
}

/// First-committer-wins on snapshots of random age.
fn under_snapshot_isolation(txns: &[Vec<Access>], ages: &[usize]) -> Vec<Operation> {
    let mut states = vec![Lists::new()];
    // Which lists each commit wrote.
    let mut written: Vec<BTreeSet<u32>> = Vec::new();
    let mut next = 0;
    let mut actions = Vec::new();
    for (txn, age) in txns.iter().zip(ages.iter().cycle()) {
        let at = written.len().saturating_sub(*age);
        let mut snapshot = states[at].clone();
        let steps = run(txn, &mut snapshot, &mut next);
        let writes: BTreeSet<u32> = versions::appends(&steps).map(|(key, _)| key).collect();
        let conflict = written[at..].iter().any(|later| !later.is_disjoint(&writes));
        let outcome = if conflict { Outcome::Fail } else { Outcome::Ok };
        if !conflict {
            let mut state = states[states.len() - 1].clone();
            for key in &writes {
                state.insert(*key, snapshot[key].clone());
            }
            states.push(state);
            written.push(writes);
        }
        actions.push((outcome, Action::Txn(steps)));
    }
    let mut history = sequence(actions);
    history.push(read_all(&states[states.len() - 1]));
    history
}

/// Each read sees any prefix of its list: little isolation at all.
fn without_isolation(txns: &[Vec<Access>], ages: &[usize]) -> Vec<Operation> {
    let mut state = Lists::new();
    let (mut next, mut ages) = (0, ages.iter().cycle());
    let mut actions = Vec::new();
    for txn in txns {
        let mut steps = Vec::new();
        let mut known = BTreeSet::new();
        for access in txn {
            let mut one = run(&[*access], &mut state, &mut next);
            if let Step::Read { key, list: Some(list) } = &mut one[0] {
                if known.insert(*key) {
                    list.truncate(list.len().saturating_sub(*ages.next().unwrap()));
                } else {
                    continue;
                }
            } else if let Step::Append { key, .. } = one[0] {
                known.insert(key);
            }
            steps.append(&mut one);
        }
        actions.push((Outcome::Ok, Action::Txn(steps)));
    }
    let mut history = sequence(actions);
    history.push(read_all(&state));
    history
}

/// Every simple cycle's name, by trying all paths, one dependency of each kind between two.
fn cycles_by_force(graph: &Graph) -> BTreeSet<Anomaly> {
    fn walk(
        graph: &Graph,
        path: &mut Vec<petgraph::graph::NodeIndex>,
        kinds: &mut Vec<Kind>,
        names: &mut BTreeSet<Anomaly>,
    ) {
        let at = path[path.len() - 1];
        let edges: BTreeSet<_> =
            graph.edges(at).map(|edge| (edge.target(), edge.weight().kind)).collect();
        for (target, kind) in edges {
            if target == path[0] {
                kinds.push(kind);
                names.insert(match () {
                    () if kinds.iter().all(|kind| *kind == Kind::Ww) => Anomaly::G0,
                    () if kinds.iter().all(|kind| *kind != Kind::Rw) => Anomaly::G1c,
                    () => cycles::kind_of(kinds),
                });
                kinds.pop();
            } else if target > path[0] && !path.contains(&target) {
                path.push(target);
                kinds.push(kind);
                walk(graph, path, kinds, names);
                path.pop();
                kinds.pop();
            }
        }
    }
    let mut names = BTreeSet::new();
    for start in graph.node_indices() {
        walk(graph, &mut vec![start], &mut Vec::new(), &mut names);
    }
    names
}

proptest! {
    #[test]
    fn serializable_histories_pass(txns in transactions()) {
        let (mut state, mut next) = (Lists::new(), 0);
        let actions = txns
            .iter()
            .map(|txn| (Outcome::Ok, Action::Txn(run(txn, &mut state, &mut next))))
            .collect();
        let mut history = sequence(actions);
        history.push(read_all(&state));
        prop_assert_eq!(named(&check(&history)), []);
    }

    #[test]
    fn snapshot_isolation_shows_g2_at_most(
        txns in transactions(),
        ages in prop::collection::vec(0..5usize, 1..8),
    ) {
        let findings = check(&under_snapshot_isolation(&txns, &ages));
        let others: Vec<_> =
            findings.iter().filter(|finding| finding.anomaly != Anomaly::G2).collect();
        prop_assert!(others.is_empty(), "{:?}", others);
    }

    /// Whatever a search over all cycles finds, the checker finds, and nothing else. (G2 may be
    /// hidden by a stronger anomaly through the same dependencies.)
    #[test]
    fn cycles_are_those_that_are_there(
        txns in transactions(),
        ages in prop::collection::vec(0..4usize, 1..8),
    ) {
        let history = without_isolation(&txns, &ages);
        let txns = committed(&history);
        let versions = Versions::of(&history, &txns, &mut Findings::default());
        let forced = cycles_by_force(&graph::build(&txns, &versions));
        let mut findings = Findings::default();
        cycles::find(&txns, &graph::build(&txns, &versions), &mut findings);
        let found: BTreeSet<Anomaly> =
            findings.finish().iter().map(|finding| finding.anomaly).collect();
        prop_assert!(found.is_subset(&forced), "{found:?} found, {forced:?} there");
        for anomaly in [Anomaly::G0, Anomaly::G1c, Anomaly::GSingle] {
            prop_assert_eq!(found.contains(&anomaly), forced.contains(&anomaly));
        }
        prop_assert_eq!(found.is_empty(), forced.is_empty());
    }
}
