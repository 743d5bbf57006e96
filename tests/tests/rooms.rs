//! The rooms of a crate (its top-level modules) have an order, so that each can be read, and replaced,
//! with nothing but those below it in mind: none imports one above it, so no circle can form.

use anyhow::{ensure, Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crate, and its rooms, the lowest first. A crate that is not in order yet is not here.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "quorate-node",
        &[
            "blocking",
            "sync",
            "fnv",
            "settings",
            "order",
            "fate",
            "host",
            "group",
            "start",
            "link",
            "node",
            "session",
            "applier",
            "sequencer",
            "connection",
        ],
    ),
    ("quorate-provider", &["abi", "options", "provider", "connect", "operator", "ffi"]),
];

/// A crate, and a word that it must not know: what this means is kept out of it.
const UNKNOWN: &[(&str, &str)] = &[("quorate-node", "wsrep")];

#[test]
fn a_room_imports_only_rooms_below_it() -> Result<()> {
    for (name, rooms) in ROOMS {
        let files = sources(&source_folder(name))?;
        let found: BTreeSet<&str> = files.iter().map(|(room, ..)| room.as_str()).collect();
        let listed: BTreeSet<&str> = rooms.iter().copied().collect();
        ensure!(found == listed, "{name} has the rooms {found:?}, in the table are {listed:?}");
        let place = |room: &str| rooms.iter().position(|other| *other == room);
        for (room, path, text) in &files {
            for (line, import) in imports(text) {
                let above = place(import).context("no room")? > place(room).context("no room")?;
                ensure!(!above, "{}:{line}: '{room}' imports '{import}', above it", path.display());
            }
        }
    }
    Ok(())
}

#[test]
fn a_crate_does_not_know_what_is_kept_out_of_it() -> Result<()> {
    for (name, word) in UNKNOWN {
        for (_, path, text) in sources(&source_folder(name))? {
            let line = text.lines().position(|line| line.to_lowercase().contains(word));
            ensure!(line.is_none(), "{}:{}: '{word}'", path.display(), line.unwrap_or(0) + 1);
        }
    }
    Ok(())
}

fn source_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src")
}

/// Each source file with its room; the crate's root belongs to none.
fn sources(src: &Path) -> Result<Vec<(String, PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![src.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(src)?.with_extension("");
            let room = inside.iter().next().and_then(|room| room.to_str()).context("no name")?;
            if room != "lib" && path.extension().is_some_and(|extension| extension == "rs") {
                found.push((room.to_owned(), path.clone(), fs::read_to_string(&path)?));
            }
        }
    }
    Ok(found)
}

/// Rooms that the text names (`crate::room`), in `use` lines and elsewhere but in comments, each with
/// the number of its line.
fn imports(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(number, line)| {
        let code = line.split("//").next().unwrap_or_default();
        code.split("crate::").skip(1).filter_map(move |rest| {
            let end =
                rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
            Some((number + 1, &rest[..end])).filter(|(_, room)| !room.is_empty())
        })
    })
}

#[test]
fn imports_are_found() {
    let text = "//! See crate::above.\nuse crate::order::{Halted};\nlet x = crate::fnv::hash(crate::sync::y); // crate::z";
    let found: Vec<_> = imports(text).collect();
    assert_eq!(found, [(2, "order"), (3, "fnv"), (3, "sync")]);
}
