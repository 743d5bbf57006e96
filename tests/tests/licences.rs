//! What libquorate.so links must be free to live in a GPLv2 server: each crate needs a licence arm
//! that is known to be compatible. Apache-2.0 alone is not.

use std::collections::BTreeMap;
use std::process::Command;

const SHARED_OBJECT: &str = "quorate-provider";
const COMPATIBLE: [&str; 9] =
    ["MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "Zlib", "Unlicense", "CC0-1.0"];

#[test]
fn the_shared_object_links_compatible_licences_only() {
    let linked = linked_packages();
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

/// Name and licence of every crate in the shared object, as it is built: normal dependencies with
/// the features in use, without procedural macros, which only run in the compiler.
fn linked_packages() -> BTreeMap<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", SHARED_OBJECT, "-e", "normal,no-proc-macro"])
        .args(["--prefix", "none", "--format", "{p}|{l}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("cargo prints text");
    lines
        .lines()
        .map(|line| line.strip_suffix(" (*)").unwrap_or(line))
        .filter_map(|line| line.split_once('|'))
        .map(|(package, licence)| (package.to_owned(), licence.to_owned()))
        .collect()
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
