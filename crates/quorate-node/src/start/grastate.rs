//! `grastate.dat` in the data directory, as Galera writes it: operators, operators' scripts and
//! the transfer scripts read it, and whichever provider runs next. It has up to two lines more, comments
//! to Galera: the mark of the group that the database belongs to (see `genesis`), and the domain of the
//! GTIDs in the binary log (see `node::gtid_domain`).
//!
//! Invariants:
//! - the mark is in the file before the database takes in anything of the group, and the uuid is
//!   gone from it before a state transfer begins to replace the database;
//! - the file is replaced whole: a crash leaves the old or the new one.

use crate::start::{parse_uuid, read_note, replace_note, Position, UnusableNote};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

pub const NAME: &str = "grastate.dat";
pub const MARK: &str = "# Quorate group";
const DOMAIN: &str = "# Quorate GTID domain";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grastate {
    pub position: Position,
    pub safe_to_bootstrap: bool,
    /// The group whose mark it bears; 0: none.
    pub group: u128,
    /// The domain id of the server's GTIDs, where it gives replicated transactions their own.
    pub gtid_domain: Option<u32>,
}

impl Grastate {
    /// `None`: there is no such file.
    pub fn read(data_dir: &Path) -> Result<Option<Self>, UnusableNote> {
        let path = data_dir.join(NAME);
        let Some(text) = read_note(&path)? else { return Ok(None) };
        let unusable = || {
            UnusableNote {
            path,
            reason: "it has no line 'uuid:' with a uuid, or no line 'seqno:' with a number".to_owned(),
            advice: "Correct the file, and start the node again. Without the file the node fetches the state from \
                     another one, which replaces this database",
        }
        };
        Self::parse(&text).map(Some).ok_or_else(unusable)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.trim().strip_prefix(':')).map(str::trim)
        };
        let comment = |name| text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
        Some(Self {
            position: Position {
                uuid: parse_uuid(field("uuid")?)?,
                seqno: field("seqno")?.parse().ok()?,
            },
            // Files of old versions do not have it: as Galera, which takes that for yes.
            safe_to_bootstrap: field("safe_to_bootstrap") != Some("0"),
            group: comment(MARK).and_then(|m| u128::from_str_radix(m, 16).ok()).unwrap_or(0),
            gtid_domain: comment(DOMAIN).and_then(|id| id.parse().ok()),
        })
    }

    pub(crate) fn render(&self) -> String {
        let mut text = String::from("# GALERA saved state\nversion: 2.1\n");
        let uuid = quorate_consensus::MemberId(self.position.uuid);
        let _ = writeln!(text, "uuid:    {uuid}");
        let _ = writeln!(text, "seqno:   {}", self.position.seqno);
        let _ = writeln!(text, "safe_to_bootstrap: {}", u8::from(self.safe_to_bootstrap));
        if self.group != 0 {
            let _ = writeln!(text, "{MARK} {:032x}", self.group);
        }
        if let Some(id) = self.gtid_domain {
            let _ = writeln!(text, "{DOMAIN} {id}");
        }
        text
    }

    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        replace_note(&data_dir.join(NAME), &self.render())
    }

    /// What is not there is removed.
    pub fn remove(data_dir: &Path) -> io::Result<()> {
        match fs::remove_file(data_dir.join(NAME)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => fs::File::open(data_dir)?.sync_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_galeras_files_too() {
        for (group, gtid_domain) in
            [(0, None), (1 << 100 | 77, None), (1, Some(0)), (1, Some(u32::MAX))]
        {
            let position = Position { uuid: 42, seqno: i64::MAX };
            let state = Grastate { position, safe_to_bootstrap: true, group, gtid_domain };
            assert_eq!(Grastate::parse(&state.render()), Some(state));
            assert!(state.render().len() < 256, "Galera rewrites longer files");
        }
        let galera = "# GALERA saved state\nversion: 2.1\nuuid:    0000002a-0000-0000-0000-000000000000\nseqno:   -1\nsafe_to_bootstrap: 0\n";
        let read = Grastate::parse(galera).unwrap();
        assert_eq!((read.position.seqno, read.safe_to_bootstrap, read.group), (-1, false, 0));
        assert_eq!(Grastate::parse("nonsense"), None);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_not_taken_for_a_missing_one() {
        let dir = std::env::temp_dir().join(format!("quorate-grastate-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        assert_eq!(Grastate::read(&dir), Ok(None));
        let path = dir.join(NAME);
        for text in ["", "uuid: 0000002a-0000-0000-0000-000000000000\n", "seqno: 3\n"] {
            fs::write(&path, text).unwrap();
            let error = Grastate::read(&dir).unwrap_err().to_string();
            assert!(error.contains("no line 'uuid:'") && error.contains(NAME), "{error}");
        }
        fs::write(&path, [0xff]).unwrap();
        assert!(Grastate::read(&dir).is_err(), "no text");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Grastate::read(&dir).unwrap_err().to_string().contains("Nothing was changed"));
        fs::remove_dir_all(dir).unwrap();
    }
}
