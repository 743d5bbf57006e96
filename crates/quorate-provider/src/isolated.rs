//! Which isolated actions (DDL) this database has executed lately.
//!
//! InnoDB makes a DDL durable at once, but not the position that says so. After a crash the log
//! may therefore offer a DDL that was executed. Most then fail with "already exists", and no harm
//! is done; some would succeed twice (adding an index without a name, swapping two names). So each
//! executed action is noted, durably, in a file *in the data directory*: it travels, and is
//! wiped, together with the data it speaks of.
//!
//! Invariant: a noted seqno above the recovered position was executed on this very data.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

const NAME: &str = "quorate_isolated.dat";
/// Past this the file is begun anew: positions are never that far behind an executed DDL.
const BYTES_MAX: u64 = 64 << 10;

pub struct IsolatedNotes {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    file: Option<File>,
    bytes: u64,
    executed: HashSet<i64>,
}

impl IsolatedNotes {
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(NAME), inner: Mutex::new(Inner::default()) }
    }

    /// Reads the notes of the former run of this data, which stands at `position`; `None`: the
    /// data is about to be replaced, there is nothing to know of it.
    pub fn begin(&self, history: u128, position: Option<i64>) {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        let mut inner = self.inner.lock();
        *inner = Inner::default();
        if let Some(position) = position {
            inner.executed = parse(&text, history).filter(|s| *s > position).collect();
        }
    }

    /// Whether the action of this seqno was executed before the restart.
    pub fn was_executed(&self, seqno: i64) -> bool {
        let inner = self.inner.lock();
        !inner.executed.is_empty() && inner.executed.contains(&seqno)
    }

    /// Notes, durably, that the action of this seqno was executed.
    pub fn executed(&self, history: u128, seqno: i64) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let line = format!("{history:032x} {seqno}\n");
        let full = inner.bytes + line.len() as u64 > BYTES_MAX;
        if inner.file.is_none() || full {
            let begun = inner.file.is_none();
            let mut options = OpenOptions::new();
            options.create(true).write(true);
            // The notes of the former run are needed until its last DDL is behind the position.
            if begun && !inner.executed.is_empty() {
                options.append(true);
            } else {
                options.truncate(true);
            }
            inner.file = Some(options.open(&self.path)?);
            inner.bytes = 0;
        }
        inner.bytes += line.len() as u64;
        match &mut inner.file {
            Some(file) => {
                file.write_all(line.as_bytes())?;
                file.sync_data()
            }
            None => Ok(()),
        }
    }
}

/// Seqnos noted for `history`; a torn last line is none.
fn parse(text: &str, history: u128) -> impl Iterator<Item = i64> + '_ {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(move |line| {
        let (uuid, seqno) = line.split_once(' ')?;
        let same = u128::from_str_radix(uuid, 16).ok()? == history;
        seqno.parse().ok().filter(|_| same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temp_dir(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("quorate-isolated-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn what_was_executed_is_known_after_a_crash_but_only_above_the_position() {
        let dir = temp_dir("crash");
        let notes = IsolatedNotes::new(&dir);
        notes.begin(7, Some(0));
        notes.executed(7, 5).unwrap();
        notes.executed(7, 9).unwrap();

        let after = IsolatedNotes::new(&dir);
        after.begin(7, Some(5));
        assert!(!after.was_executed(5), "at or below the position: never asked");
        assert!(after.was_executed(9));
        after.executed(7, 12).unwrap();
        let again = IsolatedNotes::new(&dir);
        again.begin(7, Some(8));
        assert!(again.was_executed(9) && again.was_executed(12), "a second crash forgets nothing");
        again.begin(8, Some(0));
        assert!(!again.was_executed(9), "another history");
        again.begin(7, None);
        assert!(!again.was_executed(9), "other data");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_torn_line_is_no_note() {
        let seqnos: Vec<i64> =
            parse("0000000000000000000000000000000a 3\n0000000000000000000000000000000a 1", 10)
                .collect();
        assert_eq!(seqnos, [3]);
    }
}
