//! Runs every story in `tests/scenarios/`. The language is described in `tests/scenarios/README.md`.

use crate::story;
use std::path::Path;

#[test]
fn every_scenario_ends_as_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 15, "{} scenarios in {}", paths.len(), folder.display());
    let failures: Vec<String> = paths.iter().filter_map(|path| story::play(path).err()).collect();
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n\n"));
}
