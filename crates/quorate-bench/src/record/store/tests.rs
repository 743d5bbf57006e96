use super::*;
use crate::record::{Invocation, Setup};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("quorate-record-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn run() -> Run {
    let machine = Machine { processor: "one".into(), processors: 2, ..Machine::default() };
    Run { settings: BTreeMap::from([("oltp".to_owned(), settings(10))]), machine, ..Run::default() }
}

fn settings(seconds: u64) -> Settings {
    Settings { grid: "default".into(), seconds, tables: "4x50000".into(), ..Settings::default() }
}

fn write(out: &Path, run: &Run, cells: &[Cell]) {
    let mut store = Store::open(out, run).unwrap();
    cells.iter().for_each(|cell| store.append(cell).unwrap());
}

fn cell(system: &str, clients: u32, tps: f64) -> Cell {
    let place = Place { test: "oltp".into(), clients, ..Place::default() };
    let figures = BTreeMap::from([("tps".to_owned(), tps)]);
    Cell { place, system: system.into(), round: 1, figures, ..Cell::default() }
}

#[test]
fn what_was_written_is_read_and_a_torn_line_is_cut_off() {
    let out = folder("torn");
    let mut store = Store::open(&out, &run()).unwrap();
    store.append(&cell("quorate", 1, 10.0)).unwrap();
    store.append(&cell("galera", 1, 9.0)).unwrap();
    drop(store);
    let path = out.join(CELLS);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();

    let results = Results::read(&out).unwrap();
    assert_eq!(results.cells, [cell("quorate", 1, 10.0)], "one that was not flushed is none");
    assert_eq!(results.warnings.len(), 1);

    let mut store = Store::open(&out, &run()).unwrap();
    store.append(&cell("galera", 4, 8.0)).unwrap();
    let results = Results::read(&out).unwrap();
    assert_eq!(results.cells, [cell("galera", 4, 8.0), cell("quorate", 1, 10.0)].sorted());
    assert!(results.warnings.is_empty());
    assert_eq!(results.run, run());
    fs::remove_dir_all(out).unwrap();
}

trait Sorted {
    fn sorted(self) -> Vec<Cell>;
}

impl<const N: usize> Sorted for [Cell; N] {
    fn sorted(self) -> Vec<Cell> {
        let mut cells = self.to_vec();
        cells.sort_by_key(Cell::key);
        cells
    }
}

#[test]
fn a_failed_cell_is_not_done_and_a_later_one_takes_its_place() {
    let out = folder("again");
    let mut store = Store::open(&out, &run()).unwrap();
    let failed = Cell { failed: Some("no server".into()), ..cell("quorate", 1, 0.0) };
    store.append(&failed).unwrap();
    assert!(Results::read(&out).unwrap().done().is_empty());
    store.append(&cell("quorate", 1, 10.0)).unwrap();
    let results = Results::read(&out).unwrap();
    assert_eq!(results.cells, [cell("quorate", 1, 10.0)]);
    assert_eq!(results.done(), BTreeSet::from([cell("quorate", 1, 0.0).key()]));
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn what_is_no_number_is_not_written() {
    let out = folder("nan");
    let mut store = Store::open(&out, &run()).unwrap();
    store.append(&cell("quorate", 1, f64::NAN)).unwrap_err();
    let curves = BTreeMap::from([("tps".to_owned(), vec![(1.0, f64::NAN)])]);
    store.append(&Cell { curves, ..cell("quorate", 1, 1.0) }).unwrap_err();
    assert!(Results::read(&out).unwrap().cells.is_empty());
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn damage_before_the_last_line_is_an_error() {
    let out = folder("damaged");
    let mut store = Store::open(&out, &run()).unwrap();
    store.append(&cell("quorate", 1, 10.0)).unwrap();
    let path = out.join(CELLS);
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{\n{whole}")).unwrap();
    assert!(Results::read(&out).is_err());
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn folders_of_one_machine_are_merged_and_others_are_refused() {
    let (one, two, other) = (folder("one"), folder("two"), folder("other"));
    let with = |name: &str| {
        let systems = vec![Setup { name: name.into(), ..Setup::default() }];
        Run { systems, ..run() }
    };
    write(&one, &with("quorate"), &[cell("quorate", 1, 10.0), cell("quorate", 4, 20.0)]);
    write(&two, &with("galera"), &[cell("quorate", 4, 21.0), cell("galera", 4, 9.0)]);
    let machine = Machine { processor: "another".into(), ..run().machine };
    write(&other, &Run { machine, ..run() }, &[]);

    let all = Results::merge(&[one.clone(), two.clone()]).unwrap();
    let expected =
        [cell("quorate", 1, 10.0), cell("quorate", 4, 21.0), cell("galera", 4, 9.0)].sorted();
    assert_eq!(all.cells, expected);
    let names: Vec<&str> = all.run.systems.iter().map(|setup| setup.name.as_str()).collect();
    assert_eq!(names, ["quorate", "galera"]);
    let refused = format!("{:#}", Results::merge(&[one.clone(), other.clone()]).unwrap_err());
    assert!(refused.contains("different machines"), "{refused}");
    assert!(Results::merge(&[]).is_err());
    for out in [one, two, other] {
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn what_was_measured_otherwise_is_neither_merged_nor_gone_on_with() {
    let (one, two, three) = (folder("ten"), folder("three"), folder("rpo"));
    let with = |test: &str, seconds| Run {
        settings: BTreeMap::from([(test.to_owned(), settings(seconds))]),
        ..run()
    };
    let rpo = Place { test: "rpo".into(), ..Place::default() };
    write(&one, &with("oltp", 10), &[cell("quorate", 1, 10.0)]);
    write(&two, &with("oltp", 3), &[cell("galera", 1, 10.0)]);
    write(&three, &with("rpo", 3), &[Cell { place: rpo, ..cell("quorate", 1, 1.0) }]);

    let refused = format!("{:#}", Results::merge(&[one.clone(), two.clone()]).unwrap_err());
    assert!(refused.contains("oltp") && refused.contains(r#"seconds "10" / "3""#), "{refused}");
    let all = Results::merge(&[one.clone(), three.clone()]).unwrap();
    assert_eq!((all.run.settings["oltp"].seconds, all.run.settings["rpo"].seconds), (10, 3));

    let kept = Results::read(&one).unwrap();
    kept.check(&run().machine, &with("oltp", 10).settings).unwrap();
    kept.check(&run().machine, &with("rpo", 3).settings).unwrap();
    kept.check(&run().machine, &with("oltp", 3).settings).unwrap_err();
    let rebuilt = Settings { build: "another".into(), ..settings(10) };
    kept.check(&run().machine, &BTreeMap::from([("oltp".to_owned(), rebuilt)])).unwrap_err();
    for out in [one, two, three] {
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn a_failure_elsewhere_takes_no_figures_away_and_all_invocations_are_told() {
    let (one, two) = (folder("good"), folder("failed"));
    let with = |command: &str| {
        let invocation = Invocation { command: command.into(), ..Invocation::default() };
        Run { invocations: vec![invocation], ..run() }
    };
    let failed =
        |clients| Cell { failed: Some("no server".into()), ..cell("quorate", clients, 0.0) };
    write(&one, &with("first"), &[cell("quorate", 1, 10.0), failed(4)]);
    write(&two, &with("second"), &[failed(1), cell("quorate", 4, 20.0)]);
    let all = Results::merge(&[one.clone(), two.clone()]).unwrap();
    assert_eq!(all.cells, [cell("quorate", 1, 10.0), cell("quorate", 4, 20.0)]);
    let commands: Vec<&str> = all.run.invocations.iter().map(|it| it.command.as_str()).collect();
    assert_eq!(commands, ["first", "second"]);
    // But it is told.
    assert_eq!(all.warnings.len(), 2, "{:?}", all.warnings);
    assert!(all.warnings[0].contains("no server"), "{:?}", all.warnings);
    for out in [one, two] {
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn merged_results_can_be_saved_and_read_again() {
    let (one, two, both) = (folder("first"), folder("second"), folder("both"));
    write(&one, &run(), &[cell("quorate", 1, 10.0), cell("quorate", 4, 20.0)]);
    write(&two, &run(), &[cell("galera", 1, 9.0)]);
    let all = Results::merge(&[one.clone(), two.clone()]).unwrap();
    all.save(&both).unwrap();
    // What was there is replaced.
    all.save(&both).unwrap();
    let again = Results::read(&both).unwrap();
    assert_eq!((again.run, again.cells), (all.run, all.cells));
    for out in [one, two, both] {
        fs::remove_dir_all(out).unwrap();
    }
}

/// Builds that did not ask for it have not run with other options.
#[test]
fn what_servers_told_is_taken_from_the_folder_that_has_it() {
    let (older, newer, other) = (folder("silent"), folder("told"), folder("differs"));
    let with = |told: &[(&str, &str)], options: &[(&str, &str)]| {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let setup = Setup {
            name: "quorate".into(),
            told: owned(told),
            options: owned(options),
            ..Setup::default()
        };
        Run { systems: vec![setup], ..run() }
    };
    let told = [("innodb_buffer_pool_size", "134217728")];
    write(&older, &with(&[], &[]), &[cell("quorate", 1, 10.0)]);
    write(&newer, &with(&told, &[]), &[cell("quorate", 4, 20.0)]);
    write(&other, &with(&[], &[("a", "b")]), &[cell("quorate", 16, 30.0)]);
    for folders in [[&older, &newer], [&newer, &older]] {
        let all = Results::merge(&folders.map(Clone::clone)).unwrap();
        assert_eq!((all.run.systems[0].told.len(), all.run.notes.len()), (1, 0), "{:?}", all.run);
    }
    let all = Results::merge(&[newer.clone(), other.clone()]).unwrap();
    assert!(all.run.notes[0].contains("other options"), "{:?}", all.run.notes);
    for out in [older, newer, other] {
        fs::remove_dir_all(out).unwrap();
    }
}
