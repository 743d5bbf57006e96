use super::*;
use crate::record::{Cell, Invocation, Place, Settings, Setup};
use crate::system::PEERS;
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
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| line.ends_with("1,000")).expect("Galera's figure");
    assert!(lines[at].contains("1,500") && lines[at + 1].ends_with("1.50×"), "{text}");
    for part in
        ["failed", "Quorate is ahead at 1 of 1 points", "Failed cells: 1, of them of Quorate: 0"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// With the longest names and places there are; prose is as long as it is.
#[test]
fn ten_systems_fit_into_the_tables_of_the_terminal_in_whole_words() {
    let others = ["galera-relaxed", "standalone", "standalone-relaxed"];
    let names: Vec<&str> = PEERS.into_iter().chain(others).collect();
    assert_eq!(names.len(), 10);
    let cells = names.iter().map(|name| cell(name, 256, 4000.0)).collect();
    let mut results = Results { cells, ..Results::default() };
    results.cells.iter_mut().for_each(|cell| cell.place.network = "three-regions".into());
    let text = terminal(&results);
    let rows: Vec<&str> = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= usize::from(terminal::WIDTH)), "{text}");
    for word in ["three-regions,", "gr-eventual", "standalone", "relaxed", "4,000"] {
        assert!(
            rows.iter().any(|row| row.split_whitespace().any(|part| part == word)),
            "{word} in {text}"
        );
    }
}

/// Three rounds of Quorate and of a peer that fails in the last.
fn rounds() -> Results {
    let in_round = |cell: Cell, round: u32, cost: f64| {
        let cost = ("cpu_us_per_trx".to_owned(), cost);
        let figures = cell.figures.clone().into_iter().chain([cost]).collect();
        Cell { round, figures, ..cell }
    };
    let ours = [1400.0, 1500.0, 1600.0].into_iter().zip(1..);
    let mut cells: Vec<Cell> =
        ours.map(|(tps, round)| in_round(cell("quorate", 1, tps), round, 90.0)).collect();
    cells.push(in_round(cell("galera", 1, 1000.0), 1, 100.0));
    cells.push(in_round(cell("galera", 1, 1200.0), 2, 120.0));
    let failed = Some("no server".to_owned());
    cells.push(Cell { round: 3, failed, ..cell("galera", 1, 0.0) });
    Results { cells, ..results() }
}

#[test]
fn spreads_costs_and_missing_rounds_are_told() {
    let results = rounds();
    let text = terminal(&results);
    for part in ["1,500", "1,100", "1.32×", "2/3"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("Goals of the project: 1 of 1 met"), "{text}");
    let told = Told::new(&results);
    let summary = files::markdown(&told);
    for part in [
        "| Galera, <flush> | 110 [100–120] 2/3 |",
        "1,500 [1,400–1,600]",
        "1,100 [1,000–1,200] (1.32×) 2/3",
    ] {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    assert!(summary.contains("| met |") && !summary.contains("One round"), "{summary}");
    let page = told.page().html();
    let open = page.split("<details>").next().unwrap();
    assert!(open.contains("What a transaction costs") && open.contains("100–120"));
    assert!(open.contains("2/3 rounds"));

    let json: serde_json::Value = serde_json::from_slice(&json::json(&told).unwrap()).unwrap();
    let ratios = json["ratios"].as_array().unwrap();
    let ratio = ratios.iter().find(|ratio| ratio["figure"] == "tps").unwrap();
    assert_eq!((&ratio["peer"], &ratio["network"]), (&"galera".into(), &"lan".into()));
    assert_eq!((&ratio["low"], &ratio["high"]), (&1.25.into(), &1.4.into()));
    assert_eq!(ratio["rounds"], 2);
    let published = json["published"].as_array().unwrap();
    assert!(published.iter().any(|row| row["system"] == "dn" && row["value"] == 1121.07));
    assert_eq!(json["goals"][0]["met"], true);
}

#[test]
fn each_test_has_rounds_of_its_own() {
    let mut results = rounds();
    let mut once = cell("quorate", 64, 900.0);
    once.place.test = "jitter".into();
    results.cells.push(once);
    let told = Told::new(&results);
    let summary = files::markdown(&told);
    assert!(!summary.contains("1/3") && summary.contains("2/3"), "{summary}");
    assert!(!told.page().html().contains("1/3"));
}

#[test]
fn a_single_round_and_what_differs_from_published_are_told() {
    let mut results = results();
    let settings = Settings { differs: Some("a tenth of the rows".into()), ..Settings::default() };
    results.run.settings.insert("oltp".into(), settings);
    results.run.invocations = ["first", "second"]
        .map(|command| Invocation { command: command.into(), ..Invocation::default() })
        .into();
    let told = Told::new(&results);
    let (summary, page) = (files::markdown(&told), told.page().html());
    for text in [&summary, &page] {
        for part in ["One round: no spread", "a tenth of the rows", "first", "second"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn networks_have_charts_of_their_own_where_parts_are_shown() {
    let at = |network: &str| {
        let mut cell = cell("quorate", 1, 1.0);
        (cell.place.test, cell.place.network) = ("latency".into(), network.into());
        cell.figures = BTreeMap::from([("commit_us".to_owned(), 500.0)]);
        cell
    };
    let results = Results { cells: vec![at("lan"), at("two-regions")], ..results() };
    let page = Told::new(&results).page().html();
    for network in ["lan", "two-regions"] {
        assert!(page.contains(&format!("{network}: a commit, and where its time goes")));
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
    let picture = read("throughput.svg");
    assert!(picture.contains("Quorate") && picture.contains("4,000"), "{picture}");
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
