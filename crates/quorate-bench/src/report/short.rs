//! The table that stands for a whole run on other pages: throughput of writes, near and far.

use super::Told;
use crate::record::{clients_words, figure, Place};
use crate::system::VARIANTS;

const LOAD: &str = "write_only";
const FIGURE: &str = "tps";
const COLUMNS: [(&str, u32); 5] =
    [("lan", 1), ("lan", 16), ("lan", 64), ("two-regions", 1), ("two-regions", 64)];

/// In Markdown; empty if no system has all of it.
pub(super) fn table(told: &Told) -> String {
    let titles = COLUMNS.map(|(network, clients)| format!("{network}, {}", clients_words(clients)));
    let systems = told.systems("oltp").into_iter();
    let usual = systems.filter(|system| !VARIANTS.contains(&system.as_str()));
    let rows: Vec<String> = usual.filter_map(|system| row(told, &system)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rule = "---:|".repeat(COLUMNS.len());
    format!("| | {} |\n|---|{rule}\n{}", titles.join(" | "), rows.concat())
}

/// Medians of the rounds.
fn row(told: &Told, system: &str) -> Option<String> {
    let figure = figure::named(FIGURE)?;
    let median = |(network, clients): (&str, u32)| {
        let place = Place {
            test: "oltp".into(),
            network: network.into(),
            members: 3,
            load: LOAD.into(),
            clients,
        };
        Some(figure.show(told.summary.figure(&place, system, FIGURE)?.median))
    };
    let medians: Vec<String> = COLUMNS.into_iter().map(median).collect::<Option<_>>()?;
    Some(format!("| {} | {} |\n", told.title(system), medians.join(" | ")))
}
