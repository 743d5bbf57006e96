//! Unique inserts: acknowledged = present, once, everywhere; refused = absent; unknown = either,
//! but a transaction of several rows as a whole.

use super::{finals, Anomaly, Finding, Findings};
use crate::history::{Action, IdSet, Operation, Outcome};

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::default();
    let inserts: Vec<(&Operation, u64, u32)> = history
        .iter()
        .filter_map(|operation| match operation.action {
            Action::Insert { first, rows } => Some((operation, first, rows)),
            _ => None,
        })
        .collect();
    let mut asked: Vec<u64> =
        inserts.iter().flat_map(|(_, first, rows)| *first..first + u64::from(*rows)).collect();
    asked.sort_unstable();
    let asked = IdSet::from_sorted(asked);

    for read in finals(history) {
        let Action::Present(present) = &read.action else { continue };
        let node = read.node;
        for (operation, first, rows) in &inserts {
            let here =
                (*first..first + u64::from(*rows)).filter(|id| present.contains(*id)).count();
            let anomaly = match (operation.outcome, here) {
                (Outcome::Ok, 0) => Anomaly::Lost,
                (Outcome::Fail, 1..) => Anomaly::Resurrected,
                (_, 1..) if here < *rows as usize => Anomaly::Torn,
                _ => continue,
            };
            findings.add(anomaly, format!("node {node} has {here} of {rows} rows: {operation}"));
        }
        for id in &present.repeated {
            findings.add(Anomaly::Repeated, format!("node {node} has id {id} more than once"));
        }
        for id in present.iter().filter(|id| !asked.contains(*id)) {
            findings.add(Anomaly::Invented, format!("node {node} has id {id}: nobody inserted it"));
        }
    }
    findings.finish()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{final_read, named, sequence};
    use super::*;
    use proptest::prelude::*;

    fn insert(first: u64, rows: u32) -> Action {
        Action::Insert { first, rows }
    }

    fn present(ids: &[u64]) -> Action {
        Action::Present(IdSet::from_sorted(ids.iter().copied()))
    }

    fn found(ids: &[u64]) -> Vec<(&'static str, usize)> {
        let mut history = sequence(vec![
            (Outcome::Ok, insert(1, 1)),
            (Outcome::Ok, insert(2, 1)),
            (Outcome::Fail, insert(3, 1)),
            (Outcome::Unknown, insert(4, 1)),
            (Outcome::Ok, insert(10, 3)),
            (Outcome::Unknown, insert(20, 3)),
        ]);
        history.push(final_read(1, present(&[1, 2, 10, 11, 12])));
        history.push(final_read(2, present(ids)));
        named(&check(&history))
    }

    #[test]
    fn what_may_be_and_what_may_not() {
        assert_eq!(found(&[1, 2, 10, 11, 12]), []);
        assert_eq!(found(&[1, 2, 4, 10, 11, 12, 20, 21, 22]), []);
        assert_eq!(found(&[1, 10, 11, 12]), [("lost", 1)]);
        assert_eq!(found(&[1, 2, 3, 10, 11, 12]), [("resurrected", 1)]);
        assert_eq!(found(&[1, 2, 2, 10, 11, 12]), [("repeated", 1)]);
        assert_eq!(found(&[1, 2, 10, 11, 12, 30]), [("invented", 1)]);
        assert_eq!(found(&[1, 2, 10, 12, 21]), [("torn", 2)]);
        assert_eq!(found(&[]), [("lost", 3)]);
    }

    proptest! {
        /// Any outcome consistent with the acknowledgements passes; leaving out any acknowledged
        /// row, or adding any refused one, does not.
        #[test]
        fn exactly_the_planted_anomaly_is_found(
            outcomes in prop::collection::vec(0..3u8, 1..40),
            applied in any::<u64>(),
            victim in any::<prop::sample::Index>(),
        ) {
            let outcome = |kind| match kind {
                0 => Outcome::Ok,
                1 => Outcome::Fail,
                _ => Outcome::Unknown,
            };
            let mut history = sequence(
                outcomes
                    .iter()
                    .enumerate()
                    .map(|(id, kind)| (outcome(*kind), insert(id as u64, 1)))
                    .collect(),
            );
            let there = |id: usize| match outcomes[id] {
                0 => true,
                1 => false,
                _ => applied >> (id % 64) & 1 == 1,
            };
            let good: Vec<u64> =
                (0..outcomes.len()).filter(|id| there(*id)).map(|id| id as u64).collect();
            let victim = victim.index(outcomes.len());
            let mut bad = good.clone();
            match bad.binary_search(&(victim as u64)) {
                Ok(place) => { bad.remove(place); }
                Err(place) => bad.insert(place, victim as u64),
            }
            history.push(final_read(1, present(&good)));
            prop_assert_eq!(named(&check(&history)), []);
            history.push(final_read(2, present(&bad)));
            let expected = match outcomes[victim] {
                0 => vec![("lost", 1)],
                1 => vec![("resurrected", 1)],
                _ => vec![],
            };
            prop_assert_eq!(named(&check(&history)), expected);
        }
    }
}
