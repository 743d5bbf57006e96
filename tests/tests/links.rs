//! Links between the pages of this repository lead somewhere: the file is there, and so is the heading. A page
//! that code, alerts or packages name (`docs/...`) is there, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What is looked through, beside the pages in the root.
const FOLDERS: [&str; 7] = ["crates", "debian", "docs", "fuzz", "monitoring", "scripts", "tests"];

#[test]
fn links_lead_to_files_and_headings() {
    let found: Vec<String> = pages().iter().flat_map(|page| dead_links(page)).collect();
    assert_eq!(found, Vec::<String>::new());
    assert!(pages().len() > 20, "the pages are not where they were");
}

#[test]
fn pages_that_sources_name_are_there() {
    let mut found = Vec::new();
    for file in files().into_iter().filter(|file| !file.ends_with("tests/tests/links.rs")) {
        // Whatever is no text names no page.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let missing = named_pages(&text).into_iter().filter(|page| !root().join(page).is_file());
        found.extend(missing.map(|page| format!("{}: {page}", shown(&file))));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn dead_links_are_noticed() {
    let text = "# A `b`: c\n## Same\n## Same\n[x](#a-b-c) [y](other.md#z)\n```\n# no [heading](gone.md)\n```\n\
                `[code](gone.md)` [out](https://example.com/#q)\n";
    assert_eq!(links(text), ["#a-b-c", "other.md#z"]);
    let headings: Vec<String> = headings(text).into_iter().collect();
    assert_eq!(headings, ["a-b-c", "same", "same-1"]);
    assert_eq!(
        named_pages("see docs/run/x.md, docs/y.md.gz; docs/ and mydocs"),
        ["docs/run/x.md", "docs/y.md"]
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).expect("a file of the root").display().to_string()
}

fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root()).expect("the root") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            found.push(path);
        }
    }
    FOLDERS.iter().for_each(|folder| gather(&root().join(folder), &mut found));
    found
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => gather(&path, found),
            false => found.push(path),
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let is_page = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "md");
    files().into_iter().filter(is_page).collect()
}

/// Those of a page that lead nowhere, in words.
fn dead_links(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page that can be read");
    let folder = page.parent().expect("a folder");
    let dead = |link: &String| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if path.is_empty() { page.to_owned() } else { plain(&folder.join(path)) };
        if !target.exists() {
            return Some(format!("{}: {link}: no such file", shown(page)));
        }
        let has_anchor = anchor.is_empty()
            || fs::read_to_string(&target).is_ok_and(|text| headings(&text).contains(anchor));
        (!has_anchor).then(|| format!("{}: {link}: no such heading", shown(page)))
    };
    links(&text).iter().filter_map(dead).collect()
}

/// Without `..` behind a name, which the file system would look for in a folder that need not be there.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match (component, plain.components().next_back()) {
            (Component::ParentDir, Some(Component::Normal(_))) => drop(plain.pop()),
            (component, _) => plain.push(component),
        }
    }
    plain
}

/// Lines that are not in a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !is_fence && !in_code
    })
}

/// Where the links of a page lead that stay in the repository.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every other part is code.
        let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in words.split("](").skip(1) {
            let link = rest.split([')', ' ']).next().unwrap_or_default();
            if !link.contains("://") && !link.starts_with("mailto:") {
                found.push(link.to_owned());
            }
        }
    }
    found
}

/// Anchors of a page's headings, as they are made of their words.
fn headings(text: &str) -> BTreeSet<String> {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let words = line.trim_start_matches('#');
        if line.len() == words.len() || !words.starts_with(' ') {
            continue;
        }
        let words = words.trim().to_lowercase().replace(' ', "-");
        let anchor: String =
            words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
        let before = count.entry(anchor.clone()).or_default();
        anchors.insert(match *before {
            0 => anchor,
            before => format!("{anchor}-{before}"),
        });
        *before += 1;
    }
    anchors
}

/// Each `docs/NAME.md` in a text.
fn named_pages(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    let words = text.split(|c| !is_part(c)).filter_map(|word| word.split_once("docs/"));
    // `mydocs/` and `../docs/`: the first is another folder.
    let ours = words.filter(|(before, _)| before.is_empty() || before.ends_with('/'));
    let name = |(_, rest): (&str, &str)| {
        let at = rest.find(".md")?;
        Some(format!("docs/{}.md", &rest[..at]))
    };
    ours.filter_map(name).collect()
}
