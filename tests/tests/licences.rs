//! What libquorate.so links must be free to live in a GPLv2 server: each crate needs a licence arm
//! that is known to be compatible. Apache-2.0 alone is not.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const SHARED_OBJECT: &str = "quorate-provider";
const COMPATIBLE: [&str; 9] =
    ["MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "Zlib", "Unlicense", "CC0-1.0"];

#[test]
fn the_shared_object_links_compatible_licences_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");

    let linked = linked_packages(&metadata);
    assert!(linked.len() > 3, "the dependency tree was not found: {linked:?}");
    let bad: Vec<String> = linked
        .iter()
        .filter(|(_, licence)| !is_compatible(licence))
        .map(|(name, licence)| format!("{name}: {licence}"))
        .collect();
    assert!(bad.is_empty(), "{SHARED_OBJECT} links crates without a compatible licence: {bad:#?}");
}

#[test]
fn expressions_are_judged_by_their_arms() {
    for good in [
        "MIT",
        "MIT OR Apache-2.0",
        "Apache-2.0/MIT",
        "(MIT OR Apache-2.0) AND BSD-3-Clause",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    ] {
        assert!(is_compatible(good), "{good}");
    }
    for bad in [
        "Apache-2.0",
        "Apache-2.0 AND ISC",
        "MIT AND Apache-2.0",
        "(MIT OR ISC) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0",
        "",
    ] {
        assert!(!is_compatible(bad), "{bad}");
    }
}

/// Name and licence of every crate in the shared object: normal dependencies, without
/// procedural macros, which only run in the compiler.
fn linked_packages(metadata: &Value) -> BTreeMap<String, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|n| (text(&n["id"]), n)).collect();

    let root = packages.iter().find(|(_, package)| package["name"] == SHARED_OBJECT);
    let mut open: Vec<String> = root.map(|(id, _)| id.clone()).into_iter().collect();
    let mut seen = BTreeSet::new();
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        let package = &packages[&id];
        let is_macro = list(&package["targets"])
            .iter()
            .any(|target| list(&target["kind"]).contains(&Value::from("proc-macro")));
        if is_macro || !seen.insert(id.clone()) {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        found.insert(name, text(&package["license"]));
        let normal = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|k| k["kind"].is_null());
        let needed = list(&nodes[&id]["deps"]);
        open.extend(needed.iter().filter(|dep| normal(dep)).map(|dep| text(&dep["pkg"])));
    }
    found
}

/// Judges an SPDX expression: OR needs one compatible arm, AND all of them.
fn is_compatible(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_arm(&mut rest) && rest.is_empty()
}

fn any_arm(words: &mut &[&str]) -> bool {
    let mut good = all_parts(words);
    while take(words, "OR") {
        good |= all_parts(words);
    }
    good
}

fn all_parts(words: &mut &[&str]) -> bool {
    let mut good = one(words);
    while take(words, "AND") {
        good &= one(words);
    }
    good
}

fn one(words: &mut &[&str]) -> bool {
    if take(words, "(") {
        let good = any_arm(words);
        return take(words, ")") && good;
    }
    let Some((licence, rest)) = words.split_first() else { return false };
    *words = rest;
    if take(words, "WITH") {
        // Exceptions only add permissions, but none of the accepted licences needs one.
        *words = words.get(1..).unwrap_or_default();
    }
    COMPATIBLE.contains(licence)
}

fn take(words: &mut &[&str], wanted: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == wanted => {
            *words = rest;
            true
        }
        _ => false,
    }
}
