//! Bank transfers: the total is the same in every read, and at the end each account has what the
//! acknowledged transfers left it, give or take those of unknown outcome.

use super::{finals, Anomaly, Finding, Findings};
use crate::history::{Action, Operation, Outcome};

/// Every account begins with `opening`.
pub fn check(history: &[Operation], opening: i64) -> Vec<Finding> {
    let mut findings = Findings::default();
    for operation in history.iter().filter(|operation| operation.outcome == Outcome::Ok) {
        let Action::Balances(balances) = &operation.action else { continue };
        let (total, expected) = (balances.iter().sum::<i64>(), opening * balances.len() as i64);
        if total != expected {
            let evidence = format!("the total is {total}, not {expected}: {operation}");
            findings.add(Anomaly::Unbalanced, evidence);
        }
    }
    for read in finals(history) {
        let Action::Balances(balances) = &read.action else { continue };
        for (account, balance) in balances.iter().enumerate() {
            let (least, most) = bounds(history, account as u32, opening);
            if *balance < least || *balance > most {
                let evidence = format!(
                    "node {}: account {account} has {balance}; the transfers leave it with {least} \
                     to {most}",
                    read.node
                );
                findings.add(Anomaly::LostUpdate, evidence);
            }
        }
    }
    findings.finish()
}

/// What an account may have at the end.
fn bounds(history: &[Operation], account: u32, opening: i64) -> (i64, i64) {
    let (mut least, mut most) = (opening, opening);
    for operation in history {
        let Action::Transfer { from, to, amount } = operation.action else { continue };
        let change = match () {
            () if from == to => 0,
            () if from == account => -amount,
            () if to == account => amount,
            () => 0,
        };
        match operation.outcome {
            Outcome::Ok => {
                least += change;
                most += change;
            }
            Outcome::Fail => {}
            Outcome::Unknown => {
                least += change.min(0);
                most += change.max(0);
            }
        }
    }
    (least, most)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{final_read, named, sequence};
    use super::*;
    use proptest::prelude::*;

    fn transfer(from: u32, to: u32, amount: i64) -> Action {
        Action::Transfer { from, to, amount }
    }

    fn found(during: &[i64], end: &[i64]) -> Vec<(&'static str, usize)> {
        let mut history = sequence(vec![
            (Outcome::Ok, transfer(0, 1, 5)),
            (Outcome::Fail, transfer(1, 2, 50)),
            (Outcome::Unknown, transfer(2, 0, 7)),
            (Outcome::Ok, Action::Balances(during.to_vec())),
        ]);
        history.push(final_read(1, Action::Balances(end.to_vec())));
        named(&check(&history, 10))
    }

    #[test]
    fn totals_and_what_transfers_leave() {
        assert_eq!(found(&[10, 10, 10], &[5, 15, 10]), []);
        assert_eq!(found(&[5, 15, 10], &[12, 15, 3]), []);
        assert_eq!(found(&[5, 10, 10], &[5, 15, 10]), [("unbalanced", 1)]);
        // The acknowledged transfer is gone, though the total is right.
        assert_eq!(found(&[10, 10, 10], &[10, 10, 10]), [("lost update", 1)]);
        // The refused one happened.
        assert_eq!(found(&[10, 10, 10], &[5, -35, 60]), [("lost update", 2)]);
    }

    proptest! {
        #[test]
        fn serial_execution_passes_and_a_lost_transfer_does_not(
            transfers in prop::collection::vec((0..4u32, 0..4u32, 1..9i64), 1..30),
            lost in any::<prop::sample::Index>(),
        ) {
            let lost = lost.index(transfers.len());
            let mut whole = vec![100i64; 4];
            let mut without = whole.clone();
            let mut actions = Vec::new();
            for (number, (from, to, amount)) in transfers.iter().enumerate() {
                actions.push((Outcome::Ok, transfer(*from, *to, *amount)));
                whole[*from as usize] -= amount;
                whole[*to as usize] += amount;
                if number != lost {
                    without[*from as usize] -= amount;
                    without[*to as usize] += amount;
                }
                actions.push((Outcome::Ok, Action::Balances(whole.clone())));
            }
            let history = sequence(actions);
            let with = |balances: Vec<i64>| {
                let mut history = history.clone();
                history.push(final_read(1, Action::Balances(balances)));
                named(&check(&history, 100))
            };
            prop_assert_eq!(with(whole.clone()), []);
            if without != whole {
                prop_assert_eq!(with(without), [("lost update", 2)]);
            }
        }
    }
}
