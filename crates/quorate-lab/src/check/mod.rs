//! Checkers: pure functions of a history. Each finding carries the smallest evidence for it.
//!
//! A checker claims an anomaly only where the history proves it. What is not known to have
//! happened ([`Outcome::Unknown`]) may or may not have: it excuses both.

pub mod append;
pub mod bank;
pub mod causal;
pub mod counter;
pub mod level;
pub mod references;
pub mod set;

use crate::history::{Operation, Outcome};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Acknowledged, and not there after all is healed.
    Lost,
    /// Part of a transaction is there, part is not.
    Torn,
    /// Refused, and there.
    Resurrected,
    /// Done once, and there more than once.
    Repeated,
    /// Nobody wrote it.
    Invented,
    /// Nodes differ after all is healed.
    Diverged,
    /// A total that transactions keep constant was seen changed.
    Unbalanced,
    /// Two read the same version and both wrote the next.
    LostUpdate,
    /// A causal read did not see what had been acknowledged or seen before it began.
    Stale,
    /// A row that refers to nothing.
    Orphan,
    /// A transaction's own reads contradict each other, or its own writes.
    Internal,
    /// Two reads of one list contradict each other about the order of its values.
    IncompatibleOrder,
    /// Write cycle.
    G0,
    /// Aborted read.
    G1a,
    /// Intermediate read.
    G1b,
    /// Cycle of writes and reads of them.
    G1c,
    /// A cycle with exactly one anti-dependency (read skew among them).
    GSingle,
    /// A cycle in which no two anti-dependencies are adjacent: snapshot isolation has none.
    GNonadjacent,
    /// A cycle with adjacent anti-dependencies (write skew): snapshot isolation allows it.
    G2,
}

impl Anomaly {
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::Lost => "lost",
            Anomaly::Torn => "torn",
            Anomaly::Resurrected => "resurrected",
            Anomaly::Repeated => "repeated",
            Anomaly::Invented => "invented",
            Anomaly::Diverged => "diverged",
            Anomaly::Unbalanced => "unbalanced",
            Anomaly::LostUpdate => "lost update",
            Anomaly::Stale => "stale read",
            Anomaly::Orphan => "orphan",
            Anomaly::Internal => "internal",
            Anomaly::IncompatibleOrder => "incompatible order",
            Anomaly::G0 => "G0",
            Anomaly::G1a => "G1a",
            Anomaly::G1b => "G1b",
            Anomaly::G1c => "G1c",
            Anomaly::GSingle => "G-single",
            Anomaly::GNonadjacent => "G-nonadjacent",
            Anomaly::G2 => "G2",
        }
    }

    /// False for what MariaDB's own strongest snapshot (REPEATABLE READ with
    /// `innodb_snapshot_isolation=ON`) allows on a single server.
    pub fn is_violation(self) -> bool {
        self != Anomaly::G2
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An anomaly that a history proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub anomaly: Anomaly,
    /// How often it was seen.
    pub count: usize,
    /// The smallest case, with its operations; may have several lines.
    pub evidence: String,
}

/// Collects findings of one checker: counts, and keeps the shortest evidence of each anomaly.
#[derive(Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub fn add(&mut self, anomaly: Anomaly, evidence: impl Into<String>) {
        self.add_many(anomaly, 1, evidence);
    }

    pub fn add_many(&mut self, anomaly: Anomaly, count: usize, evidence: impl Into<String>) {
        let evidence = evidence.into();
        match self.0.iter_mut().find(|finding| finding.anomaly == anomaly) {
            Some(finding) => {
                finding.count += count;
                if evidence.len() < finding.evidence.len() {
                    finding.evidence = evidence;
                }
            }
            None => self.0.push(Finding { anomaly, count, evidence }),
        }
    }

    pub fn finish(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.anomaly);
        self.0
    }
}

/// Final reads that succeeded.
fn finals(history: &[Operation]) -> impl Iterator<Item = &Operation> {
    history.iter().filter(|operation| operation.is_final() && operation.outcome == Outcome::Ok)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Hand-made histories.

    use super::Finding;
    use crate::history::{Action, Operation, Outcome, FINAL};

    /// Operation number `n` of a history, one after the other, by process `n` on node 1.
    pub fn sequence(actions: Vec<(Outcome, Action)>) -> Vec<Operation> {
        actions
            .into_iter()
            .enumerate()
            .map(|(number, (outcome, action))| Operation {
                begin_us: number as u64 * 10,
                end_us: number as u64 * 10 + 5,
                process: number as u32,
                node: 1,
                outcome,
                action,
                note: String::new(),
            })
            .collect()
    }

    /// A final read on a node.
    pub fn final_read(node: u16, action: Action) -> Operation {
        Operation {
            begin_us: 1_000_000,
            end_us: 1_000_001,
            process: FINAL + u32::from(node),
            node,
            outcome: Outcome::Ok,
            action,
            note: String::new(),
        }
    }

    /// Names and counts of what was found.
    pub fn named(findings: &[Finding]) -> Vec<(&'static str, usize)> {
        findings.iter().map(|finding| (finding.anomaly.name(), finding.count)).collect()
    }
}
