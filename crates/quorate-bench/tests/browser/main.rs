//! A report with cells of every test, opened in Chromium: it asks for nothing, no text is over another,
//! and nothing is wider than the window, the paper or the chart.
//!
//! With `SCREENSHOTS` in the environment, pictures are left beside the report, in `target/tmp/report`.

mod invented;

use quorate_bench::record::Results;
use quorate_bench::report;
use quorate_report::browser::Browser;
use std::path::Path;

#[test]
fn a_report_of_every_test_can_be_read_everywhere() {
    can_be_read_everywhere(&invented::results(), "report", 20);
}

/// As it is drawn now; with the names, settings and failures that real systems have.
#[test]
fn the_report_of_a_whole_run_can_be_read_everywhere() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks");
    can_be_read_everywhere(&Results::read(&run).unwrap(), "benchmarks", 10);
}

fn can_be_read_everywhere(results: &Results, name: &str, charts_min: u64) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    report::write(results, &out).unwrap();
    let page = out.join("report.html");
    let mut browser = Browser::start().unwrap();
    let wrong = browser.look_everywhere(&page, charts_min).unwrap();
    assert!(browser.print(&out.join("report.pdf")).unwrap() > 3);
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}
