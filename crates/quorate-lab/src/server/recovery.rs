//! The position that a node's own data has: `mariadbd --wsrep-recover`.
//!
//! The provider is loaded before InnoDB, so it can only learn the position from the command line
//! (`--wsrep_start_position`); without it a node that crashed would need a state transfer.

use super::{Account, Node};
use anyhow::{bail, Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

const MARK: &str = "WSREP: Recovered position:";
const UNDEFINED: &str = "00000000-0000-0000-0000-000000000000";

/// Recovers InnoDB and returns its position as `uuid:seqno`; `None` if it was never part of a
/// group, or crashed before its first position was flushed. The server must not be running.
pub fn recovered_position(
    node: &Node,
    account: &Account,
    mariadbd: &Path,
) -> Result<Option<String>> {
    discard_empty_log(&node.data().join("tc.log"))?;
    let mut command = Command::new(mariadbd);
    command
        .arg(format!("--defaults-file={}", node.config().display()))
        // It serves nobody; the port may be another's, on the host where this runs.
        .args(["--wsrep-recover", "--disable-log-error", "--skip-networking"])
        .arg(format!("--pid-file={}", node.dir.join("recover.pid").display()));
    if account.switch {
        command.arg(format!("--user={}", account.name));
    }
    let output = command.output().with_context(|| format!("running {}", mariadbd.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    match find_position(&text) {
        Some(position) if position.starts_with(UNDEFINED) => Ok(None),
        Some(position) => Ok(Some(position.to_owned())),
        None => {
            let data = node.data();
            bail!(
                "{}: the position in {data} cannot be recovered: the server does not start on its own \
                 data. If that is damaged, and another node of the group runs, nothing is lost: move \
                 the content of {data} away and start this node again, it fetches the state from the \
                 others. mariadbd --wsrep-recover says:\n{}",
                node.name,
                errors(&text),
                data = data.display()
            )
        }
    }
}

/// What Galera's book says to do on the node that a dead cluster is to begin with again.
pub fn allow_bootstrap(node: &Node) -> Result<()> {
    let path = node.data().join("grastate.dat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let allowed = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
    fs::write(&path, allowed).with_context(|| format!("writing {}", path.display()))
}

/// What the server writes over the head of its log of two-phase commits when it closes and deletes
/// it.
const CLOSED: [u8; 4] = [b'A', 0x23, 0x05, 0x74];

/// The server makes its log of two-phase commits, full of zeros, and then writes its head; in the
/// end it spoils the head, and deletes the file. If the power fails in between, or before the
/// deletion is on the disk, no later start accepts the file. It has nothing to say, so nothing is
/// lost with it; a server makes a new one at each start.
fn discard_empty_log(path: &Path) -> Result<()> {
    let content = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.with_context(|| format!("reading {}", path.display()))?,
    };
    if content.starts_with(&CLOSED) || content.iter().all(|byte| *byte == 0) {
        fs::remove_file(path).with_context(|| format!("deleting {}", path.display()))?;
    }
    Ok(())
}

fn find_position(text: &str) -> Option<&str> {
    text.lines().rev().find_map(|line| line.split_once(MARK)?.1.split_whitespace().next())
}

fn errors(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("[ERROR]")).collect();
    if lines.is_empty() {
        text.to_owned()
    } else {
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_commits_without_its_head_is_discarded_and_no_other() {
        let path = std::env::temp_dir().join(format!("quorate-tc-log-{}", std::process::id()));
        discard_empty_log(&path).unwrap();
        for empty in [&[0; 24][..], &[b'A', 0x23, 0x05, 0x74, 2, 0]] {
            fs::write(&path, empty).unwrap();
            discard_empty_log(&path).unwrap();
            assert!(!path.exists());
        }
        fs::write(&path, [0xfe, 0x23, 0x05, 0x74, 0]).unwrap();
        discard_empty_log(&path).unwrap();
        assert!(path.exists());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_last_position_counts() {
        let text = "x\n2026-01-01 [Note] WSREP: Recovered position: a:1\n\
                    2026-01-01 [Note] WSREP: Recovered position: \
                    6b1f5e9c-c0ae-11f0-9d5b-3e2bbd2b2d1f:4711,0-1-5\ny";
        assert_eq!(find_position(text), Some("6b1f5e9c-c0ae-11f0-9d5b-3e2bbd2b2d1f:4711,0-1-5"));
        assert_eq!(find_position("nothing"), None);
    }
}
