//! A run in short, for the terminal: the compared figure of each test, and the verdict last, where eyes are.

use super::chapter::Chapter;
use super::goals;
use super::grid::{Entry, Grid};
use super::standing::times;
use super::verdict::Overall;
use super::Told;
use comfy_table::{
    presets, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width,
};
use std::fmt::Write;

/// Rows of a test.
const ROWS_SHOWN: usize = 16;

/// Characters of a line: ten systems have room.
pub(super) const WIDTH: u16 = 110;
/// Of the first column, at least: the longest word of a place (`three-regions,`), and a space.
const PLACE_WIDTH: u16 = 15;

pub(super) fn text(told: &Told) -> String {
    let overall = Overall::of(told);
    let mut text = String::new();
    // Writing to a string cannot fail.
    for chapter in told.chapters() {
        let _ = writeln!(text, "{}: {}", chapter.test, caption(chapter));
        let _ = writeln!(text, "{}", told.stage(chapter));
        let (table, left_out) = table(told, chapter);
        let _ = writeln!(text, "{}", table.trim_fmt());
        if left_out > 0 {
            let _ = writeln!(text, "and {left_out} more in the report");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}\n{}", overall.headline(), overall.remarks());
    text.extend(goals::line(told));
    text
}

fn caption(chapter: &Chapter) -> String {
    match chapter.main() {
        Some(figure) => format!(
            "{}; below it how many times as good Quorate is; rounds of all if some failed",
            figure.title_with_unit()
        ),
        None => "What became of it".to_owned(),
    }
}

/// And how many rows it has no room for. Systems by their names: titles would make it too wide.
fn table(told: &Told, chapter: &Chapter) -> (Table, usize) {
    let grid = Grid::new(chapter, chapter.main(), &told.summary, &told.order);
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    let name =
        |system: &String| Cell::new(system).set_delimiter('-').set_alignment(CellAlignment::Right);
    table.set_header([Cell::new("")].into_iter().chain(grid.systems.iter().map(name)));
    let shown = grid.rows.iter().take(ROWS_SHOWN);
    for (place, entries) in shown {
        let cell = |entry: &Entry| {
            Cell::new(words(told, chapter, entry)).set_alignment(CellAlignment::Right)
        };
        table.add_row([Cell::new(place.words())].into_iter().chain(entries.iter().map(cell)));
    }
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 1));
    });
    if let Some(places) = table.column_mut(0) {
        places.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(PLACE_WIDTH)));
    }
    (table, grid.rows.len().saturating_sub(ROWS_SHOWN))
}

/// One below the other.
fn words(told: &Told, chapter: &Chapter, entry: &Entry) -> String {
    let mut lines = vec![entry.words(chapter.main())];
    lines.extend(entry.side().map(|(_, ratio)| times(ratio)));
    if let Entry::Figure(spread, _) = entry {
        lines.extend(told.of_rounds(chapter, spread));
    }
    lines.join("\n")
}
