//! `grastate.dat` in the data directory, as Galera writes it: operators, operators' scripts and
//! the transfer scripts read it. Quorate itself needs it only for the position after a clean stop.

use crate::link::Link;
use crate::node::{Node, Position};
use quorate_group::View;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

const NAME: &str = "grastate.dat";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grastate {
    pub position: Position,
    pub safe_to_bootstrap: bool,
}

impl Grastate {
    pub fn read(data_dir: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data_dir.join(NAME)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.trim().strip_prefix(':')).map(str::trim)
        };
        let uuid = field("uuid")?.replace('-', "");
        Some(Self {
            position: Position {
                uuid: u128::from_str_radix(&uuid, 16).ok()?,
                seqno: field("seqno")?.parse().ok()?,
            },
            safe_to_bootstrap: field("safe_to_bootstrap") == Some("1"),
        })
    }

    fn render(&self) -> String {
        let mut text = String::from("# GALERA saved state\nversion: 2.1\n");
        let uuid = quorate_consensus::MemberId(self.position.uuid);
        let _ = writeln!(text, "uuid:    {uuid}");
        let _ = writeln!(text, "seqno:   {}", self.position.seqno);
        let _ = writeln!(text, "safe_to_bootstrap: {}", u8::from(self.safe_to_bootstrap));
        text
    }

    fn write(&self, data_dir: &Path) -> std::io::Result<()> {
        let mut file = fs::File::create(data_dir.join(NAME))?;
        file.write_all(self.render().as_bytes())?;
        file.sync_data()
    }
}

impl Node {
    /// While running the position is unknown to the file (-1).
    pub fn record_view(&self, link: &Link, view: &View) {
        self.save(link, -1, view.members.len() == 1);
    }

    pub fn record_closed(&self, link: &Link, seqno: i64) {
        let safe = Grastate::read(&self.config.data_dir).is_some_and(|g| g.safe_to_bootstrap);
        self.save(link, seqno, safe);
    }

    /// The data is not what its position says: the next start has to fetch the state.
    pub fn record_unusable(&self) {
        let position = Position { uuid: 0, seqno: -1 };
        self.write_grastate(Grastate { position, safe_to_bootstrap: false });
    }

    fn save(&self, link: &Link, seqno: i64, safe_to_bootstrap: bool) {
        let position = Position { uuid: link.history, seqno };
        self.write_grastate(Grastate { position, safe_to_bootstrap });
    }

    fn write_grastate(&self, state: Grastate) {
        if let Err(e) = state.write(&self.config.data_dir) {
            self.warn(&format!(
                "{}: {e}; only tools that read this file are affected",
                self.config.data_dir.join(NAME).display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_galeras_files_too() {
        let state = Grastate { position: Position { uuid: 42, seqno: 7 }, safe_to_bootstrap: true };
        assert_eq!(Grastate::parse(&state.render()), Some(state));
        let galera = "# GALERA saved state\nversion: 2.1\nuuid:    0000002a-0000-0000-0000-000000000000\nseqno:   -1\nsafe_to_bootstrap: 0\n";
        let read = Grastate::parse(galera).unwrap();
        assert_eq!((read.position.seqno, read.safe_to_bootstrap), (-1, false));
        assert_eq!(Grastate::parse("nonsense"), None);
    }
}
