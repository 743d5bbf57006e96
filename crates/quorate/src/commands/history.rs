//! `quorate history`: what happened to a group, as its log has it.

use super::say;
use crate::args::{History, HistoryKind};
use crate::failure::OK;
use crate::remote::Remote;
use crate::view::table::table;
use anyhow::Result;
use clap::ValueEnum;
use quorate_live::port::{Happening, OrderGiven};
use serde_json::{json, Value};

pub fn history(group: &Remote, args: &History) -> Result<u8> {
    let (node, all) = group.history()?;
    let shown = chosen(all, &args.kind, args.last);
    say(args.json, document(&node, &shown), || match shown.is_empty() {
        true => format!("{node} knows of nothing that happened\n"),
        false => lines(&shown),
    })?;
    Ok(OK)
}

/// See docs/run/json.md.
fn document(node: &str, shown: &[Happening]) -> Value {
    json!({ "node": node, "history": shown })
}

/// Of these kinds (none: of all), the last ones.
fn chosen(all: Vec<Happening>, kinds: &[HistoryKind], last: Option<usize>) -> Vec<Happening> {
    let words: Vec<String> = kinds
        .iter()
        .filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()))
        .collect();
    let mut shown: Vec<Happening> =
        all.into_iter().filter(|each| words.is_empty() || words.contains(&each.kind)).collect();
    let surplus = last.map_or(0, |last| shown.len().saturating_sub(last));
    shown.drain(..surplus);
    shown
}

fn lines(shown: &[Happening]) -> String {
    let mut rows = vec![["INDEX", "TIME", "KIND", "NODE", "WHAT"].map(String::from)];
    rows.extend(shown.iter().map(|each| {
        let what = match &each.order {
            None => each.what.clone(),
            Some(OrderGiven { by, from, done, outcome }) => {
                let done = if *done { "" } else { "refused: " };
                format!("{} (by {by} from {from}): {done}{outcome}", each.what)
            }
        };
        [each.index.to_string(), each.time.clone(), each.kind.clone(), each.node.clone(), what]
    }));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    fn happening(index: u64, kind: &str) -> Happening {
        let (kind, node) = (kind.to_owned(), "node1".to_owned());
        let time = "2026-11-25T20:00:00.000Z".to_owned();
        Happening { index, time, kind, node, what: "why".into(), order: None }
    }

    #[test]
    fn kinds_and_the_number_are_chosen() {
        let all = || ["leader", "view", "order", "view"].into_iter().zip(1..);
        let indexes = |kinds: &[HistoryKind], last| -> Vec<u64> {
            let all = all().map(|(kind, index)| happening(index, kind)).collect();
            chosen(all, kinds, last).iter().map(|each| each.index).collect()
        };
        assert_eq!(indexes(&[], None), [1, 2, 3, 4]);
        assert_eq!(indexes(&[], Some(1)), [4]);
        assert_eq!(indexes(&[HistoryKind::View, HistoryKind::Leader], None), [1, 2, 4]);
        assert_eq!(indexes(&[HistoryKind::Order], Some(9)), [3]);
    }

    #[test]
    fn an_order_is_shown_with_who_gave_it_and_what_came_of_it() {
        let mut order = happening(12, "order");
        let (by, from) = ("ann".to_owned(), "10.0.0.9".to_owned());
        order.order = Some(OrderGiven { by, from, done: false, outcome: "not now".into() });
        names_fields_of(&document("node1", std::slice::from_ref(&order)));
        assert_eq!(
            lines(&[happening(7, "leader"), order]),
            "INDEX  TIME                      KIND    NODE   WHAT\n\
             7      2026-11-25T20:00:00.000Z  leader  node1  why\n\
             12     2026-11-25T20:00:00.000Z  order   node1  why (by ann from 10.0.0.9): refused: not now\n"
        );
    }
}
