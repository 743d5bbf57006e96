//! What happened to a group, as a member shows it.

use quorate_consensus::Index;
use quorate_group::{Note, Notes};
use serde::{Deserialize, Serialize};

/// An event, or an order with what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Happening {
    /// Its place in the log: what is noted later has a higher one.
    pub index: Index,
    /// RFC 3339, in UTC, by the clock of `node`.
    pub time: String,
    /// `leader`, `membership`, `view`, `transfer`, `withdrawal`, or `order`.
    pub kind: String,
    /// The node that noted it.
    pub node: String,
    /// In words.
    pub what: String,
    /// Of an order: who gave it, from where, whether it was carried out, and what it was answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderGiven>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderGiven {
    pub by: String,
    pub from: String,
    pub done: bool,
    pub outcome: String,
}

/// The oldest first.
pub(crate) fn history(notes: &Notes) -> Vec<Happening> {
    notes.all().into_iter().map(|(index, note)| happening(*index, note)).collect()
}

fn happening(index: Index, note: &Note) -> Happening {
    match note {
        Note::Event(event) => Happening {
            index,
            time: note.time(),
            kind: event.kind.word().to_owned(),
            node: event.node.clone(),
            what: event.what.clone(),
            order: None,
        },
        Note::Order(order) => {
            let taken = &order.taken;
            let (author, what) = (&taken.mandate.author, taken.what.clone());
            let (by, from) = (author.name.clone(), author.from.clone());
            let given = OrderGiven { by, from, done: order.done, outcome: order.outcome.clone() };
            Happening {
                index,
                time: note.time(),
                kind: "order".to_owned(),
                node: taken.node.clone(),
                what,
                order: Some(given),
            }
        }
    }
}
