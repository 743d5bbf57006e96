//! The project's first page shows the figures of the run that the repository has.

use quorate_bench::record::Results;
use quorate_bench::report;
use std::fs;
use std::path::Path;

#[test]
fn the_readme_has_the_table_of_the_run_in_the_documents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = report::short(&Results::read(&root.join("docs/benchmarks")).unwrap());
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (table, readme) = (table.trim_end(), readme.as_str());
    assert!(table.lines().count() > 4 && readme.contains(table), "README.md lacks:\n{table}");
}
