//! After healing, every node returns the same final reads.

use super::{finals, Anomaly, Finding, Findings};
use crate::history::{Action, Operation};
use std::mem::discriminant;

const SHOWN_BYTES: usize = 300;

pub fn check(history: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::default();
    let mut first: Vec<&Operation> = Vec::new();
    for read in finals(history) {
        // A register is a read of its own.
        let same = |other: &&&Operation| match (&other.action, &read.action) {
            (Action::Read { register: a, .. }, Action::Read { register: b, .. }) => a == b,
            (a, b) => discriminant(a) == discriminant(b),
        };
        match first.iter().find(same) {
            None => first.push(read),
            Some(other) if other.action == read.action => {}
            Some(other) => {
                let evidence = format!("{}\n{}", shown(other), shown(read));
                findings.add(Anomaly::Diverged, evidence);
            }
        }
    }
    findings.finish()
}

fn shown(read: &Operation) -> String {
    let mut text = read.to_string();
    if text.len() > SHOWN_BYTES {
        text.truncate(SHOWN_BYTES);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::testing::{final_read, named};
    use super::*;

    #[test]
    fn nodes_that_differ_are_found() {
        let counters = |value| Action::Counters(vec![value]);
        let read = |register, value| Action::Read { register, value };
        let mut history = vec![
            final_read(1, counters(1)),
            final_read(2, counters(1)),
            final_read(1, read(1, 1)),
            final_read(1, read(2, 2)),
            final_read(2, read(1, 1)),
            final_read(2, read(2, 2)),
        ];
        assert_eq!(named(&check(&history)), []);
        history.push(final_read(3, counters(2)));
        history.push(final_read(3, read(2, 3)));
        assert_eq!(named(&check(&history)), [("diverged", 2)]);
    }
}
