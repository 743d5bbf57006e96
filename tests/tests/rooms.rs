//! The rooms of a crate (its top-level modules) stand on each other in one order, without circles: each
//! knows only those below it, so that it can be read, and replaced, with nothing but those in mind. What a
//! room imports is read from its sources. So that no call upward hides behind a type that all know, a type
//! has its methods in its own room. And no file is longer than what one reads at a sitting.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate, and its rooms from the lowest on; rooms of one line do not know each other. A crate that is not in
/// order yet is not here.
const CRATES: &[(&str, &[&str])] = &[
    (
        "quorate-group",
        &[
            "author depth error options paced redial view",
            "note order rejected",
            "snapshot",
            "output input",
            "forward start status",
            "feed lineage happened",
            "driver opening",
            "alone noting membership read standing watch",
            "orders",
            "member",
        ],
    ),
    (
        "quorate-live",
        &[
            "error host private_file process spawn",
            "net",
            "at_rest",
            "options port query",
            "core",
            "feeding",
            "live",
            "threads syncs",
            "open operator",
            "group",
            "fuzzing guest tests",
        ],
    ),
    (
        "quorate-node",
        &[
            "backlog blocking fnv",
            "flow",
            "settings",
            "counters lag order sync",
            "delivered fate",
            "group host start",
            "link",
            "local",
            "catch_up gtid_domain proposals records rehearsal views whole_data",
            "withdraw",
            "pause primary votes",
            "exit transfer",
            "applier sequencer session",
            "node",
            "fuzzing",
        ],
    ),
    (
        "quorate-provider",
        &["abi answers options", "provider", "connect", "operator", "ffi fuzzing"],
    ),
];

/// A crate, and a word that it does not know: what this means is kept out of it.
const UNKNOWN: &[(&str, &str)] = &[("quorate-node", "wsrep")];

const LINES_MAX: usize = 450;

#[test]
fn a_room_knows_only_those_below_it() {
    for (package, layers) in CRATES {
        assert_eq!(violations(package, layers), Vec::<String>::new());
    }
}

#[test]
fn an_import_of_a_higher_room_is_noticed() {
    let (package, layers) = CRATES[0];
    let upside_down: Vec<&str> = layers.iter().rev().copied().collect();
    let found = violations(package, &upside_down);
    assert!(found.iter().any(|line| line.contains("driver imports forward")), "{found:#?}");
    let forgotten = violations(package, &layers[1..]);
    assert!(forgotten.iter().any(|line| line.contains("view stands nowhere")), "{forgotten:#?}");
}

#[test]
fn a_type_has_its_methods_in_its_own_room() {
    for (package, _) in CRATES {
        for (part, files) in parts(&source_folder(package)) {
            let read = |file| fs::read_to_string(file).expect("a source that can be read");
            let text: String = files.iter().map(read).collect();
            let elsewhere = given_methods(&text);
            assert_eq!(elsewhere, Vec::<&str>::new(), "{package}: types of other rooms in {part}");
        }
    }
}

#[test]
fn methods_of_a_type_of_another_room_are_noticed() {
    let room = "struct Own<T>(T);\nimpl<T> Own<T> {}\nimpl Shown for Node {}\n// impl Doc {}\n";
    assert_eq!(given_methods(room), Vec::<&str>::new());
    let hidden = format!("{room}impl<'a> crate::node::Node<'a> {{}}\n    impl Vote {{\n");
    assert_eq!(given_methods(&hidden), ["Node", "Vote"]);
}

#[test]
fn a_crate_does_not_know_what_is_kept_out_of_it() {
    for (package, word) in UNKNOWN {
        for file in parts(&source_folder(package)).into_values().flatten() {
            let text = fs::read_to_string(&file).expect("a source that can be read");
            let line = text.lines().position(|line| line.to_lowercase().contains(word));
            assert_eq!(line, None, "{}: a line with '{word}'", file.display());
        }
    }
}

#[test]
fn a_file_is_read_at_a_sitting() {
    let long = longer_than(LINES_MAX);
    assert!(long.is_empty(), "over {LINES_MAX} lines: {long:#?}");
    let itself = "tests/tests/rooms.rs".to_owned();
    assert!(longer_than(50).contains(&itself), "a longer file is noticed");
}

/// The Rust files of this repository that are longer, as seen from its root.
fn longer_than(lines_max: usize) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["crates", "tests"] {
        files(&root.join(folder), &mut found);
    }
    found.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
    let is_long = |file: &PathBuf| {
        fs::read_to_string(file).expect("a source that can be read").lines().count() > lines_max
    };
    let inside =
        |file: PathBuf| file.strip_prefix(&root).expect("a file of the root").display().to_string();
    found.into_iter().filter(is_long).map(inside).collect()
}

fn source_folder(package: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(package).join("src")
}

/// What breaks the order of `layers`, in words.
fn violations(package: &str, layers: &[&str]) -> Vec<String> {
    let sources = source_folder(package);
    let mut level = BTreeMap::new();
    for (height, parts) in layers.iter().enumerate() {
        level.extend(parts.split_whitespace().map(|part| (part.to_owned(), height)));
    }
    let mut found = Vec::new();
    for (part, files) in parts(&sources) {
        let Some(own) = level.get(&part) else {
            found.push(format!("{package}: {part} stands nowhere in the order"));
            continue;
        };
        for file in files {
            for import in imports(&fs::read_to_string(&file).expect("a source that can be read")) {
                let below = import == part || level.get(&import).is_some_and(|other| other < own);
                if !below {
                    let file = file.display();
                    found
                        .push(format!("{package}: {part} imports {import}, not below it ({file})"));
                }
            }
        }
    }
    found
}

/// Types that a room's `text` gives methods of their own (`impl X`, not `impl Trait for X`) though it does
/// not declare them.
fn given_methods(text: &str) -> Vec<&str> {
    let code = || text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let declared = |name: &str| {
        ["struct ", "enum ", "union ", "trait "].iter().any(|kind| {
            code().filter_map(|line| line.split_once(kind)).any(|(_, after)| {
                after.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_name))
            })
        })
    };
    code().filter_map(type_with_methods).filter(|name| !declared(name)).collect()
}

/// X, if the line begins an `impl X`.
fn type_with_methods(line: &str) -> Option<&str> {
    let head = line.strip_prefix("impl")?;
    let head = if head.starts_with('<') { after_generics(head) } else { head };
    let path = head.strip_prefix(' ')?.split(['<', ' ', '{']).next()?;
    let name = path.rsplit("::").next()?;
    (!head.contains(" for ")).then_some(name)
}

/// What follows the closing bracket that belongs to the first one.
fn after_generics(head: &str) -> &str {
    let mut depth = 0;
    let end = head.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '<') - i32::from(*c == '>');
        depth == 0
    });
    end.map_or("", |(at, _)| &head[at + 1..])
}

/// The modules of the crate's root, with their files.
fn parts(sources: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut parts = BTreeMap::new();
    for entry in fs::read_dir(sources).expect("a crate with sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name != "lib" {
            files(&path, parts.entry(name).or_insert_with(Vec::new));
        }
    }
    parts
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            files(&entry.expect("an entry").path(), found);
        }
    } else {
        found.push(path.to_owned());
    }
}

/// What stands behind `crate::`, outside of comments.
fn imports(source: &str) -> Vec<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut names: Vec<String> = code
        .flat_map(|line| line.split("crate::").skip(1).map(str::to_owned).collect::<Vec<_>>())
        .map(|rest| {
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '{').collect()
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
