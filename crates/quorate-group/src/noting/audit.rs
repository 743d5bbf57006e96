//! Orders of operators, from when they are handed in until they are answered.

use crate::note::{OrderNote, OrderTaken};
use crate::order::{Answer, Done};
use crate::output::Output;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Audit {
    /// Not answered yet, by the ids that they were handed in with.
    open: BTreeMap<u64, OrderTaken>,
}

impl Audit {
    pub fn begin(&mut self, id: u64, taken: OrderTaken) {
        self.open.insert(id, taken);
    }

    /// Those that are answered in what goes out.
    pub fn ended(&mut self, out: &Output) -> Vec<OrderNote> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let ended = out.answers.iter().filter_map(|(id, answer)| {
            let taken = self.open.remove(id)?;
            Some(OrderNote::new(taken, outcome(answer)))
        });
        ended.collect()
    }
}

fn outcome(answer: &Answer) -> Result<String, String> {
    let names = |names: &[String]| names.join(", ");
    match answer {
        Ok(Done::Nothing) => Ok("done".into()),
        Ok(Done::ReadPoint(index)) => Ok(format!("everything up to log index {index}")),
        Ok(Done::Leader(name)) => Ok(format!("{name} leads")),
        Ok(Done::Forced(plan)) => {
            Ok(format!("kept {}; gave up {}", names(&plan.kept), names(&plan.lost)))
        }
        Err(error) => Err(error.to_string()),
    }
}
