//! Foreign keys with cascading deletes: no child without its parent, ever; what was acknowledged
//! and not deleted is there; what was deleted is gone.

use super::{finals, Anomaly, Finding, Findings};
use crate::history::{Action, Operation, Outcome};
use std::collections::{BTreeMap, BTreeSet};

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::default();
    // Outcome of the deletion of each parent, where one was tried.
    let mut deleted: BTreeMap<u64, Outcome> = BTreeMap::new();
    for operation in history {
        if let (Action::Delete { parent }, Outcome::Ok | Outcome::Unknown) =
            (&operation.action, operation.outcome)
        {
            let worst = deleted.entry(*parent).or_insert(operation.outcome);
            if operation.outcome == Outcome::Ok {
                *worst = Outcome::Ok;
            }
        }
    }
    for node in finals(history).map(|read| read.node).collect::<BTreeSet<_>>() {
        check_node(history, node, &deleted, &mut findings);
    }
    findings.finish()
}

fn check_node(
    history: &[Operation],
    node: u16,
    deleted: &BTreeMap<u64, Outcome>,
    findings: &mut Findings,
) {
    let reads: Vec<&Operation> = finals(history).filter(|read| read.node == node).collect();
    let parents = reads.iter().find_map(|read| match &read.action {
        Action::Present(parents) => Some(parents),
        _ => None,
    });
    let children = reads.iter().find_map(|read| match &read.action {
        Action::Children(children) => Some(children.iter().copied().collect::<BTreeMap<_, _>>()),
        _ => None,
    });
    let (Some(parents), Some(children)) = (parents, children) else { return };
    for (id, parent) in children.iter().filter(|(_, parent)| !parents.contains(**parent)) {
        findings.add(Anomaly::Orphan, format!("node {node}: child {id} has no parent {parent}"));
    }
    for operation in history {
        let (there, parent) = match &operation.action {
            Action::Insert { first, .. } => (parents.contains(*first), *first),
            Action::Child { id, parent } => (children.contains_key(id), *parent),
            _ => continue,
        };
        let anomaly = match (operation.outcome, deleted.get(&parent), there) {
            (Outcome::Ok, None, false) => Anomaly::Lost,
            (Outcome::Fail, _, true) | (_, Some(Outcome::Ok), true) => Anomaly::Resurrected,
            _ => continue,
        };
        findings.add(anomaly, format!("node {node}: {operation}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{final_read, named, sequence};
    use super::*;
    use crate::history::IdSet;

    #[test]
    fn planted_anomalies() {
        use Outcome::{Fail, Ok, Unknown};
        let parent = |first| Action::Insert { first, rows: 1 };
        let child = |id, parent| Action::Child { id, parent };
        let found = |parents: &[u64], children: &[(u64, u64)]| {
            let mut history = sequence(vec![
                (Ok, parent(1)),
                (Ok, parent(2)),
                (Ok, parent(3)),
                (Ok, child(10, 1)),
                (Fail, child(11, 1)),
                (Ok, child(20, 2)),
                (Unknown, Action::Delete { parent: 2 }),
                (Ok, Action::Delete { parent: 3 }),
            ]);
            let present = IdSet::from_sorted(parents.iter().copied());
            history.push(final_read(1, Action::Present(present)));
            history.push(final_read(1, Action::Children(children.to_vec())));
            named(&check(&history))
        };
        assert_eq!(found(&[1, 2], &[(10, 1), (20, 2)]), []);
        assert_eq!(found(&[1], &[(10, 1)]), []);
        assert_eq!(found(&[1], &[(10, 1), (20, 2)]), [("orphan", 1)]);
        assert_eq!(found(&[1, 2], &[(20, 2)]), [("lost", 1)]);
        assert_eq!(found(&[2], &[(20, 2)]), [("lost", 2)]);
        assert_eq!(found(&[1, 3], &[(10, 1)]), [("resurrected", 1)]);
        assert_eq!(found(&[1], &[(10, 1), (11, 1)]), [("resurrected", 1)]);
    }
}
