//! Single-primary mode, held against who led when.
//!
//! Goes by who wrote, not by what the write set says: the term that it carries is what is tested.

use super::{Oracle, Rule};
use quorate_certify::Outcome;
use quorate_consensus::Index;

impl Oracle {
    /// Operation `op` got its verdict at `index`, where the members go by a `single` primary or not;
    /// told once for each index, in order, after its [`verdict`](Oracle::verdict). True if it is the
    /// primary's and passed.
    pub fn primacy(&mut self, op: u32, index: Index, outcome: Outcome, single: bool) -> bool {
        let (Some(fate), Some(term)) = (self.ops.get(op as usize), self.committed_term(index))
        else {
            return false;
        };
        let (writer, wrote_in) = fate.written;
        let leader = self.leader_of(term);
        let write = format_args!("operation {op} of {writer:?} in term {wrote_in}");
        let leads = leader == Some(writer) && wrote_in == term;
        match outcome {
            Outcome::Ok if single && !leads => {
                self.fail(Rule::OnlyThePrimaryWrites, || {
                    format!("{write} passes at {index}, in term {term} of {leader:?}")
                });
            }
            Outcome::NotPrimary if leads || !single => {
                self.fail(Rule::OnlyThePrimaryWrites, || {
                    format!("{write} fails at {index}, in term {term}; a single primary: {single}")
                });
            }
            _ => {}
        }
        if !single || outcome != Outcome::Ok {
            return false;
        }
        let before = self.primary.replace((writer, wrote_in));
        let later = before.filter(|(_, term)| *term > wrote_in);
        self.fail_for(later, Rule::OnlyThePrimaryWrites, |(other, later)| {
            format!("{write} passes at {index}, after one of {other:?} in term {later}")
        });
        true
    }
}
