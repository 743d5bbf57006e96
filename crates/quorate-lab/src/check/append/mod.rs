//! List-append transactions: what isolation a history proves to be broken.
//!
//! After Adya ("Weak Consistency", 1999) and Kingsbury and Alvaro ("Elle", VLDB 2020): each list
//! holds its own history, so reads show the order of versions; versions and reads give
//! dependencies between transactions; cycles of dependencies are anomalies.
//!
//! * [`versions`]: the order of each list's values, and anomalies seen without a graph: aborted and
//!   intermediate reads, internal contradictions, incompatible orders, lost updates.
//! * [`graph`]: write-write, write-read and read-write (anti-) dependencies.
//! * [`cycles`]: the smallest cycle of each kind.
//!
//! Every (list, value) is appended at most once. A transaction of unknown outcome counts as
//! committed if a value of its was read, else as not having happened. Real time plays no part.

mod cycles;
mod graph;
mod versions;

use super::{Anomaly, Finding, Findings};
use crate::history::{Action, Operation, Outcome, Step};
use std::collections::HashSet;
use versions::Versions;

const STEPS_SHOWN_MAX: usize = 12;

/// A transaction that took effect.
pub(crate) struct Txn<'a> {
    pub operation: &'a Operation,
    pub steps: &'a [Step],
}

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::default();
    let committed = committed(history);
    let versions = Versions::of(history, &committed, &mut findings);
    versions.check_durable(history, &mut findings);
    let graph = graph::build(&committed, &versions);
    cycles::find(&committed, &graph, &mut findings);
    findings.finish()
}

/// The operation, without lists that do not matter here if it has many (a final read has all).
fn shown(operation: &Operation, keys: &[u32]) -> String {
    match &operation.action {
        Action::Txn(steps) if steps.len() > STEPS_SHOWN_MAX => {
            let matters = |step: &&Step| match step {
                Step::Append { key, .. } | Step::Read { key, .. } => keys.contains(key),
            };
            let steps = steps.iter().filter(matters).cloned().collect();
            Operation { action: Action::Txn(steps), ..operation.clone() }.to_string()
        }
        _ => operation.to_string(),
    }
}

fn steps(operation: &Operation) -> Option<&[Step]> {
    match &operation.action {
        Action::Txn(steps) => Some(steps),
        _ => None,
    }
}

fn committed(history: &[Operation]) -> Vec<Txn<'_>> {
    let mut read: HashSet<(u32, u64)> = HashSet::new();
    for operation in history.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        for step in steps(operation).unwrap_or_default() {
            if let Step::Read { key, list: Some(list) } = step {
                read.extend(list.iter().map(|value| (*key, *value)));
            }
        }
    }
    let seen = |step: &Step| match step {
        Step::Append { key, value } => read.contains(&(*key, *value)),
        Step::Read { .. } => false,
    };
    history
        .iter()
        .filter_map(|operation| Some(Txn { operation, steps: steps(operation)? }))
        .filter(|txn| match txn.operation.outcome {
            Outcome::Ok => true,
            Outcome::Fail => false,
            Outcome::Unknown => txn.steps.iter().any(seen),
        })
        .collect()
}

#[cfg(test)]
mod tests;
