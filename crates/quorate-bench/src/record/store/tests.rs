use super::*;
use crate::record::{Machine, Setup};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("quorate-record-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn run() -> Run {
    let machine = Machine { processor: "one".into(), processors: 2, ..Machine::default() };
    Run { command: "quorate bench oltp".into(), machine, ..Run::default() }
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
    let write = |out: &Path, run: &Run, cells: &[Cell]| {
        let mut store = Store::open(out, run).unwrap();
        cells.iter().for_each(|cell| store.append(cell).unwrap());
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
    let refused = Results::merge(&[one.clone(), other.clone()]).unwrap_err().to_string();
    assert!(refused.contains("different machines"), "{refused}");
    assert!(Results::merge(&[]).is_err());
    for out in [one, two, other] {
        fs::remove_dir_all(out).unwrap();
    }
}
