use super::*;
use crate::record::{Cell, Place, Setup};
use std::collections::BTreeMap;

/// Of the first round.
pub(super) fn cell(system: &str, clients: u32, tps: f64) -> Cell {
    let place = Place {
        test: "oltp".into(),
        network: "lan".into(),
        members: 3,
        load: "write_only".into(),
        clients,
    };
    let figures = BTreeMap::from([("tps".to_owned(), tps)]);
    Cell { place, system: system.into(), round: 1, figures, ..Cell::default() }
}

fn results() -> Results {
    let setup = |name: &str, title: &str| Setup {
        name: name.into(),
        title: title.into(),
        ..Setup::default()
    };
    let mut results = Results::default();
    results.run.systems = vec![setup("quorate", "Quorate"), setup("galera", "Galera, <flush>")];
    let failed = Cell { failed: Some("no server, \"why\"".into()), ..cell("galera", 64, 0.0) };
    results.cells = vec![
        cell("quorate", 1, 1500.0),
        cell("galera", 1, 1000.0),
        cell("quorate", 64, 4000.0),
        failed,
    ];
    results
}

#[test]
fn the_terminal_shows_figures_ratios_and_failures() {
    let text = terminal(&results());
    for part in [
        "1,500",
        "1,000 (1.50×)",
        "failed",
        "ahead at 1 of 1 points",
        "Failed cells: 1, of them of Quorate: 0",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn all_files_have_all_cells() {
    let out = std::env::temp_dir().join(format!("quorate-report-{}", std::process::id()));
    write(&results(), &out).unwrap();
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let table = read("cells.csv");
    assert_eq!(table.lines().count(), 5);
    assert!(table.contains("\"no server, \"\"why\"\"\""), "{table}");
    let json: serde_json::Value = serde_json::from_str(&read("results.json")).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    assert_eq!(json["medians"].as_array().unwrap().len(), 3);
    assert_eq!(json["tests"][0]["quorate"][0]["ahead"], 1);
    assert!(read("summary.md").contains("| lan, write_only, 1 client | 1,500 | 1,000 (1.50×) |"));
    let page = read("report.html");
    assert!(page.contains("Galera, &lt;flush&gt;") && !page.contains("<flush>"));
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_run_without_a_cell_is_told_as_such() {
    let results = Results::default();
    assert!(terminal(&results).contains("Nothing to compare"));
    assert!(Told::new(&results).page().html().contains("Nothing to compare"));
}
