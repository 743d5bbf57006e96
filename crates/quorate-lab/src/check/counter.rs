//! Counters: at the end, as many as were acknowledged, and at most those of unknown outcome more.

use super::{finals, Anomaly, Finding, Findings};
use crate::history::{Action, Operation, Outcome};
use std::collections::BTreeMap;

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::default();
    // Acknowledged and unknown additions to each counter.
    let mut additions: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for operation in history {
        let Action::Add { counter } = operation.action else { continue };
        let (acknowledged, unknown) = additions.entry(counter).or_default();
        match operation.outcome {
            Outcome::Ok => *acknowledged += 1,
            Outcome::Fail => {}
            Outcome::Unknown => *unknown += 1,
        }
    }
    for read in finals(history) {
        let Action::Counters(counters) = &read.action else { continue };
        for (number, value) in counters.iter().enumerate() {
            let (acknowledged, unknown) =
                additions.get(&(number as u32)).copied().unwrap_or_default();
            let most = acknowledged + unknown;
            let (anomaly, count) = match *value {
                value if value < acknowledged => (Anomaly::LostUpdate, acknowledged - value),
                value if value > most => (Anomaly::Repeated, value - most),
                _ => continue,
            };
            let evidence = format!(
                "node {}: counter {number} stands at {value} after {acknowledged} acknowledged \
                 additions and {unknown} of unknown outcome",
                read.node
            );
            findings.add_many(anomaly, count as usize, evidence);
        }
    }
    findings.finish()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{final_read, named, sequence};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bounds_are_exact(
            outcomes in prop::collection::vec(0..3u8, 0..40),
            value in 0..50i64,
        ) {
            let count = |wanted: u8| outcomes.iter().filter(|kind| **kind == wanted).count() as i64;
            let outcome = |kind: &u8| [Outcome::Ok, Outcome::Fail, Outcome::Unknown][usize::from(*kind)];
            let add = |kind| (outcome(kind), Action::Add { counter: 0 });
            let mut history = sequence(outcomes.iter().map(add).collect());
            history.push(final_read(1, Action::Counters(vec![value])));
            let (least, most) = (count(0), count(0) + count(2));
            let expected = match value {
                value if value < least => vec![("lost update", (least - value) as usize)],
                value if value > most => vec![("repeated", (value - most) as usize)],
                _ => vec![],
            };
            prop_assert_eq!(named(&check(&history)), expected);
        }
    }
}
