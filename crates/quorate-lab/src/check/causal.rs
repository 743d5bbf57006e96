//! Causal reads: a read sees every write that was acknowledged, and every value that another read
//! had returned, before it began, on whichever node. Each register is written by one process alone
//! with growing values, so "sees" is "is not smaller".

use super::{Anomaly, Finding, Findings};
use crate::history::{Action, Operation, Outcome};
use std::collections::BTreeMap;

#[derive(Default)]
struct Register<'a> {
    writes: Vec<(&'a Operation, u64)>,
    reads: Vec<(&'a Operation, u64)>,
}

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut registers: BTreeMap<u32, Register> = BTreeMap::new();
    for operation in history {
        match operation.action {
            Action::Write { register, value } => {
                registers.entry(register).or_default().writes.push((operation, value));
            }
            Action::Read { register, value } if operation.outcome == Outcome::Ok => {
                registers.entry(register).or_default().reads.push((operation, value));
            }
            _ => {}
        }
    }
    let mut findings = Findings::default();
    for register in registers.values_mut() {
        check_stale(register, &mut findings);
        check_origin(register, &mut findings);
    }
    findings.finish()
}

fn check_stale(register: &mut Register, findings: &mut Findings) {
    // What is known of the register, in the order in which it became known.
    let acknowledged = register.writes.iter().filter(|(write, _)| write.outcome == Outcome::Ok);
    let mut known: Vec<(&Operation, u64)> =
        acknowledged.chain(register.reads.iter()).copied().collect();
    known.sort_by_key(|(operation, _)| operation.end_us);
    register.reads.sort_by_key(|(read, _)| read.begin_us);
    let mut newest: Option<(&Operation, u64)> = None;
    let mut known = known.into_iter().peekable();
    for (read, value) in &register.reads {
        while let Some(next) = known.next_if(|(operation, _)| operation.end_us < read.begin_us) {
            if newest.is_none_or(|(_, value)| next.1 > value) {
                newest = Some(next);
            }
        }
        if let Some((earlier, expected)) = newest.filter(|(_, expected)| expected > value) {
            let late = read.begin_us - earlier.end_us;
            findings.add(
                Anomaly::Stale,
                format!(
                    "{value} was read {late} µs after {expected} was known:\n{earlier}\n{read}"
                ),
            );
        }
    }
}

/// A value that was read has been written, by a write that did not fail and had begun.
fn check_origin(register: &Register, findings: &mut Findings) {
    let origin: BTreeMap<u64, &Operation> =
        register.writes.iter().map(|(write, value)| (*value, *write)).collect();
    for (read, value) in register.reads.iter().filter(|(_, value)| *value > 0) {
        match origin.get(value) {
            Some(write) if write.outcome == Outcome::Fail => {
                findings.add(Anomaly::G1a, format!("{write}\n{read}"));
            }
            Some(write) if write.begin_us <= read.end_us => {}
            _ => findings.add(Anomaly::Invented, format!("nobody had written it: {read}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{named, sequence};
    use super::*;
    use proptest::prelude::*;

    fn write(value: u64) -> Action {
        Action::Write { register: 1, value }
    }

    fn read(value: u64) -> Action {
        Action::Read { register: 1, value }
    }

    #[test]
    fn planted_anomalies() {
        use Outcome::{Fail, Ok, Unknown};
        let found = |actions| named(&check(&sequence(actions)));
        assert_eq!(found(vec![(Ok, read(0)), (Ok, write(1)), (Ok, read(1))]), []);
        assert_eq!(found(vec![(Ok, write(1)), (Ok, read(0))]), [("stale read", 1)]);
        assert_eq!(found(vec![(Unknown, write(1)), (Ok, read(0))]), []);
        assert_eq!(found(vec![(Unknown, write(1)), (Ok, read(1))]), []);
        let back = vec![(Unknown, write(1)), (Ok, read(1)), (Ok, read(0))];
        assert_eq!(found(back), [("stale read", 1)]);
        assert_eq!(found(vec![(Fail, write(1)), (Ok, read(1))]), [("G1a", 1)]);
        assert_eq!(found(vec![(Ok, read(7))]), [("invented", 1)]);
        assert_eq!(found(vec![(Ok, write(1)), (Fail, read(0))]), []);
    }

    #[test]
    fn a_read_that_began_before_the_write_was_acknowledged_may_miss_it() {
        let mut history = sequence(vec![(Outcome::Ok, write(1)), (Outcome::Ok, read(0))]);
        history[1].begin_us = history[0].end_us;
        assert_eq!(named(&check(&history)), []);
    }

    proptest! {
        /// Reads that take effect at one moment between their beginning and their end pass.
        #[test]
        fn linearizable_histories_pass(
            operations in prop::collection::vec((any::<bool>(), 0..40u64, 0..40u64, 0..20u64), 1..40)
        ) {
            let mut written = 0;
            let mut history = Vec::new();
            let mut effect = 0;
            for (number, (writes, before, after, gap)) in operations.into_iter().enumerate() {
                effect += gap + 1;
                let action = if writes { written += 1; write(written) } else { read(written) };
                let mut one = sequence(vec![(Outcome::Ok, action)]);
                one[0].process = number as u32;
                one[0].begin_us = (1000 + effect) - before;
                one[0].end_us = 1000 + effect + after;
                history.append(&mut one);
            }
            prop_assert_eq!(named(&check(&history)), []);
        }
    }
}
