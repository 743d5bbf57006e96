//! The programs that are neither servers nor ours: what drives them, and what transfers their data.

use super::tpcc;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// What each that is installed says of its version.
pub fn tools() -> BTreeMap<String, String> {
    let named = |name: &str| (name.to_owned(), Some(PathBuf::from(name)), "--version");
    let tools = [
        named("sysbench"),
        ("go-tpc".to_owned(), tpcc::find().ok(), "version"),
        named("mariadb-backup"),
        named("rsync"),
    ];
    let said = |(name, path, option): (String, Option<PathBuf>, &str)| {
        let output = Command::new(path?).arg(option).output().ok()?;
        // Which of the two it says it on depends on the program.
        let texts =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let version = texts.iter().find_map(|text| version(text));
        Some((name, version.unwrap_or_else(|| "of an unknown version".to_owned())))
    };
    tools.into_iter().filter_map(said).collect()
}

/// The first word with numbers in it: `1.0.20` of `sysbench 1.0.20`.
fn version(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let number = word.trim_start_matches('v');
        number.starts_with(|first: char| first.is_ascii_digit()) && number.contains('.')
    };
    text.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let backup =
            "mariadb-backup based on MariaDB server 10.11.19-MariaDB debian-linux-gnu (x86_64)";
        assert_eq!(version(backup).as_deref(), Some("10.11.19-MariaDB"));
        let tpc = "Git Commit Hash: none\nUTC Build Time: unknown\nRelease version: v1.0.12\n";
        assert_eq!(version(tpc).as_deref(), Some("v1.0.12"));
        assert_eq!(version("rsync  version 3.2.7  protocol version 31").as_deref(), Some("3.2.7"));
        assert_eq!(version("unknown"), None);
    }
}
