//! Which isolated actions (DDL) this database has executed lately.
//!
//! InnoDB makes a DDL durable at once, but not the position that says so. After a crash the log
//! may therefore offer a DDL that was executed. Most then fail with "already exists", and no harm
//! is done; some would succeed twice (adding an index without a name, swapping two names). So an
//! action is noted, durably, before it runs and after it has run, in a file *in the data
//! directory*: it travels, and is wiped, together with the data it speaks of.
//!
//! A note that an action began carries a fingerprint of the tables it names (their definition
//! files). If a crash leaves it at that, the tables tell: unchanged means that the action did not
//! happen, or that the server's own recovery has undone it.
//!
//! Invariant: above the recovered position, an action noted as done was executed on this very
//! data; one noted as begun was executed if and only if its tables differ from the fingerprint.

use crate::blocking::Mutex;
use crate::fnv::Fnv;
use crate::start::{read_note, replace_note, UnusableNote};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A streaming transaction: its process, and its number there.
pub type Stream = (u128, u64);

const NAME: &str = "quorate_isolated.dat";
/// Past this the file is begun anew, with the last of its notes.
const BYTES_MAX: usize = 64 << 10;
/// So many bytes of them: some hundred statements. A position is behind an executed DDL by what InnoDB writes within a
/// second at most.
const KEPT_BYTES: usize = BYTES_MAX / 2;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Note {
    Begun(u64),
    Done,
    /// It may end these streaming transactions: see `link/severed.rs`.
    Severs(Vec<Stream>),
}

pub struct IsolatedNotes {
    data_dir: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    file: Option<File>,
    bytes: usize,
    /// The file is of this data: its notes are needed until their DDL is behind the position.
    keeps: bool,
    /// The last lines of this run, by seqno.
    recent: VecDeque<(i64, String)>,
    recent_bytes: usize,
    former: HashMap<i64, Note>,
    /// The action that runs now, and the streaming transactions that it is noted to end.
    running: Option<(i64, BTreeSet<Stream>)>,
}

impl IsolatedNotes {
    pub fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_path_buf(), inner: Mutex::new(Inner::default()) }
    }

    fn path(&self) -> PathBuf {
        self.data_dir.join(NAME)
    }

    /// Reads the notes of the former run of this data, which stands at `position`; `None`: the
    /// data is about to be replaced, there is nothing to know of it. Gives back, by seqno, the streaming
    /// transactions that actions may have ended.
    pub fn open(
        &self,
        history: u128,
        position: Option<i64>,
    ) -> Result<BTreeMap<i64, BTreeSet<Stream>>, UnusableNote> {
        let mut severed: BTreeMap<i64, BTreeSet<Stream>> = BTreeMap::new();
        let mut inner = self.inner.lock();
        *inner = Inner::default();
        let Some(position) = position else { return Ok(severed) };
        inner.keeps = true;
        let text = read_note(&self.path())?.unwrap_or_default();
        for (seqno, note) in parse(&text, history).filter(|(seqno, _)| *seqno > position) {
            match note {
                Note::Severs(streams) => severed.entry(seqno).or_default().extend(streams),
                note => _ = inner.former.insert(seqno, note),
            }
        }
        Ok(severed)
    }

    /// The last action of the former run above the position: whatever became of it is in the data.
    pub fn last_noted(&self) -> Option<i64> {
        self.inner.lock().former.keys().max().copied()
    }

    /// Whether the action of this seqno, on these tables, was executed before the restart.
    pub fn was_executed(&self, seqno: i64, tables: &[(String, String)]) -> bool {
        match self.inner.lock().former.get(&seqno) {
            None => false,
            Some(Note::Begun(before)) => self.fingerprint(tables) != *before,
            Some(Note::Done | Note::Severs(_)) => true,
        }
    }

    /// Whether the action of this seqno had come to its end before the restart, with an error or without.
    pub fn is_done(&self, seqno: i64) -> bool {
        matches!(self.inner.lock().former.get(&seqno), Some(Note::Done))
    }

    /// Notes, durably, that the action is about to run.
    pub fn begun(&self, history: u128, seqno: i64, tables: &[(String, String)]) -> io::Result<()> {
        let fingerprint = self.fingerprint(tables);
        let mut inner = self.inner.lock();
        inner.running = Some((seqno, BTreeSet::new()));
        self.write(&mut inner, seqno, format!("{history:032x} {seqno} begun {fingerprint:016x}\n"))
    }

    /// Notes, durably, that the action that runs, if any, may end the streaming transactions that `met`
    /// tells of it; before it does. With the seqno, if that fails.
    pub fn severs(
        &self,
        history: u128,
        met: impl FnOnce(i64) -> BTreeSet<Stream>,
    ) -> Result<(), (i64, io::Error)> {
        let mut inner = self.inner.lock();
        let Some((seqno, noted)) = &mut inner.running else { return Ok(()) };
        let seqno = *seqno;
        let fresh = &met(seqno) - noted;
        if fresh.is_empty() {
            return Ok(());
        }
        let words: String =
            fresh.iter().map(|(origin, trx)| format!(" {origin:032x}:{trx:x}")).collect();
        noted.extend(fresh);
        // Whoever asks for the same meanwhile waits until it is on disk.
        self.write(&mut inner, seqno, format!("{history:032x} {seqno} severs{words}\n"))
            .map_err(|error| (seqno, error))
    }

    /// Notes, durably, that the action has run.
    pub fn done(&self, history: u128, seqno: i64) -> io::Result<()> {
        let mut inner = self.inner.lock();
        inner.running = None;
        self.write(&mut inner, seqno, format!("{history:032x} {seqno} done\n"))
    }

    fn write(&self, inner: &mut Inner, seqno: i64, line: String) -> io::Result<()> {
        let path = self.path();
        if inner.file.is_some() && inner.bytes + line.len() > BYTES_MAX {
            inner.remember(seqno, line);
            let text: String = inner.recent.iter().map(|(_, line)| line.as_str()).collect();
            replace_note(&path, &text)?;
            (inner.file, inner.bytes) = (None, text.len());
            inner.file = Some(OpenOptions::new().append(true).open(path)?);
            return Ok(());
        }
        if inner.file.is_none() {
            let keep = inner.keeps || !inner.recent.is_empty();
            let mut options = OpenOptions::new();
            options.create(true).write(!keep).append(keep).truncate(!keep);
            let mut file = options.open(path)?;
            if keep {
                // Its last line may be torn.
                file.write_all(b"\n")?;
            }
            inner.file = Some(file);
        }
        if let Some(file) = &mut inner.file {
            file.write_all(line.as_bytes())?;
            file.sync_data()?;
        }
        inner.bytes += line.len();
        inner.remember(seqno, line);
        Ok(())
    }

    /// Which definition files the tables have: renamed, rewritten and removed ones all differ.
    fn fingerprint(&self, tables: &[(String, String)]) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = Fnv::default();
        for (database, table) in tables {
            let name = format!("{}.frm", file_name(table));
            let path = self.data_dir.join(file_name(database)).join(name);
            let facts =
                fs::metadata(path).ok().map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec()));
            facts.hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Inner {
    /// All lines of this action are kept.
    fn remember(&mut self, seqno: i64, line: String) {
        self.recent_bytes += line.len();
        self.recent.push_back((seqno, line));
        while self.recent_bytes > KEPT_BYTES {
            if self.recent.front().is_none_or(|(other, _)| *other >= seqno) {
                return;
            }
            self.recent_bytes -= self.recent.pop_front().map_or(0, |(_, old)| old.len());
        }
    }
}

/// The server's name of a file for a database or table: other than letters, digits and
/// underscores become `@` and four hex digits.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars()
        .map(|c| if plain(c) { c.to_string() } else { format!("@{:04x}", c as u32) })
        .collect()
}

/// Notes for `history`, in order; a torn last line is none.
pub(crate) fn parse(text: &str, history: u128) -> impl Iterator<Item = (i64, Note)> + '_ {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(move |line| {
        let mut words = line.split(' ');
        let same = u128::from_str_radix(words.next()?, 16).ok()? == history;
        let seqno = words.next()?.parse().ok()?;
        let note = match words.next()? {
            "begun" => Note::Begun(u64::from_str_radix(words.next()?, 16).ok()?),
            "done" => Note::Done,
            "severs" => Note::Severs(words.by_ref().map(stream).collect::<Option<_>>()?),
            _ => return None,
        };
        if words.next().is_some() {
            return None;
        }
        same.then_some((seqno, note))
    })
}

fn stream(word: &str) -> Option<Stream> {
    let (origin, trx) = word.split_once(':')?;
    Some((u128::from_str_radix(origin, 16).ok()?, u64::from_str_radix(trx, 16).ok()?))
}

/// An isolated action as it travels: the server's bytes, then the names of the tables concerned.
/// Keys are hashed on the way, and the notes need names.
pub mod action {
    use bytes::Bytes;

    /// What follows the server's bytes.
    pub fn trailer(tables: &[(String, String)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (database, table) in tables {
            out.extend_from_slice(database.as_bytes());
            out.push(0);
            out.extend_from_slice(table.as_bytes());
            out.push(0);
        }
        let len = out.len() as u32;
        out.extend_from_slice(&len.to_le_bytes());
        out
    }

    /// The server's bytes and the tables; `None` if this is no such thing.
    pub fn split(payload: &Bytes) -> Option<(Bytes, Vec<(String, String)>)> {
        let names_end = payload.len().checked_sub(4)?;
        let len = u32::from_le_bytes(payload[names_end..].try_into().ok()?) as usize;
        let names_start = names_end.checked_sub(len)?;
        let names = std::str::from_utf8(&payload[names_start..names_end]).ok()?;
        let mut words = names.split_terminator('\0');
        let mut tables = Vec::new();
        while let Some(database) = words.next() {
            tables.push((database.to_string(), words.next()?.to_string()));
        }
        Some((payload.slice(..names_start), tables))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn temp_dir(name: &str) -> PathBuf {
        let dir =
            std::env::temp_dir().join(format!("quorate-isolated-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("db")).unwrap();
        dir
    }

    fn reopened(dir: &Path, history: u128, position: Option<i64>) -> IsolatedNotes {
        let notes = IsolatedNotes::new(dir);
        notes.open(history, position).unwrap();
        notes
    }

    #[test]
    fn what_was_executed_is_known_after_a_crash_but_only_above_the_position() {
        let dir = temp_dir("crash");
        let notes = reopened(&dir, 7, Some(0));
        notes.done(7, 5).unwrap();
        notes.done(7, 9).unwrap();

        let after = reopened(&dir, 7, Some(5));
        assert!(!after.was_executed(5, &[]), "at or below the position: never asked");
        assert!(after.was_executed(9, &[]));
        after.done(7, 12).unwrap();
        let again = reopened(&dir, 7, Some(8));
        assert!(again.was_executed(9, &[]) && again.was_executed(12, &[]), "a second crash");
        assert!(!reopened(&dir, 8, Some(0)).was_executed(9, &[]), "another history");
        assert!(!reopened(&dir, 7, None).was_executed(9, &[]), "other data");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_begun_action_was_executed_if_its_tables_changed() {
        let dir = temp_dir("begun");
        let (a, b) = (dir.join("db/a.frm"), dir.join("db/b@002d1.frm"));
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        let tables = [("db".to_string(), "a".to_string()), ("db".to_string(), "b-1".to_string())];
        reopened(&dir, 7, Some(0)).begun(7, 3, &tables).unwrap();
        assert!(!reopened(&dir, 7, Some(2)).was_executed(3, &tables));
        let x = dir.join("db/x.frm");
        fs::rename(&a, &x).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(&x, &b).unwrap();
        assert!(reopened(&dir, 7, Some(2)).was_executed(3, &tables));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_may_have_been_ended_is_told_above_the_position() {
        let dir = temp_dir("severs");
        let notes = reopened(&dir, 7, Some(0));
        let met = |streams: &[Stream]| streams.iter().copied().collect::<BTreeSet<_>>();
        for seqno in [3, 5, 6] {
            notes.begun(7, seqno, &[]).unwrap();
            if seqno != 5 {
                notes.severs(7, |asked| met(&[(8, asked as u64)])).unwrap();
                notes.severs(7, |_| met(&[(8, seqno as u64), (9, 1)])).unwrap();
                notes.severs(7, |_| met(&[(9, 1)])).unwrap();
            }
            notes.done(7, seqno).unwrap();
        }
        notes.severs(7, |_| met(&[(8, 9)])).unwrap();
        let again = IsolatedNotes::new(&dir);
        let at = |seqno: i64| (seqno, met(&[(8, seqno as u64), (9, 1)]));
        assert_eq!(
            again.open(7, Some(2)).unwrap(),
            BTreeMap::from([at(3), at(6)]),
            "none when nothing runs"
        );
        assert!(again.was_executed(3, &[]) && again.was_executed(5, &[]));
        assert_eq!(again.open(7, Some(3)).unwrap(), BTreeMap::from([at(6)]));
        assert!(again.open(8, Some(0)).unwrap().is_empty(), "another history");
        assert!(again.open(7, None).unwrap().is_empty(), "other data");
        let text = fs::read_to_string(dir.join(NAME)).unwrap();
        assert_eq!(text.matches("severs").count(), 4, "each is noted once");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_is_begun_anew_still_has_the_last_notes() {
        let dir = temp_dir("anew");
        let notes = reopened(&dir, 7, Some(0));
        let (mut bytes, mut shrunk) = (0, 0);
        for seqno in 1..=1000 {
            notes.begun(7, seqno, &[]).unwrap();
            let after = IsolatedNotes::new(&dir);
            after.open(7, Some(seqno - 4)).unwrap();
            for earlier in (seqno - 3).max(1)..seqno {
                assert!(after.was_executed(earlier, &[]), "{earlier} when {seqno} runs");
            }
            assert_eq!(after.last_noted(), Some(seqno));
            notes.done(7, seqno).unwrap();
            let now = fs::metadata(notes.path()).unwrap().len();
            shrunk += u32::from(now < bytes);
            bytes = now;
        }
        assert!(shrunk > 0 && bytes < 80 << 10, "{shrunk}, {bytes}");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_torn_line_is_no_note() {
        let text = format!("{:032x} 3 done\n{:032x} 4 done", 10, 10);
        assert_eq!(parse(&text, 10).collect::<Vec<_>>(), [(3, Note::Done)]);
    }

    #[test]
    fn an_action_and_its_tables_travel_together() {
        let tables = vec![("db".to_string(), "t".to_string()), ("db".to_string(), String::new())];
        let payload = Bytes::from([b"drop".to_vec(), action::trailer(&tables)].concat());
        assert_eq!(action::split(&payload), Some((Bytes::from_static(b"drop"), tables)));
        for cut in 0..payload.len() {
            let _ = action::split(&payload.slice(..cut));
        }
    }
}
