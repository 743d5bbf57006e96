//! InnoDB alone, under load, on a disk that gets full and loses its power: it must come back with
//! everything that was acknowledged, on the lab's disk and on ext4 alike. With an even seed its log is
//! not flushed at each commit, as in a group: then only that it comes back is asked of it.
//!
//! It is asked only what it can do. MariaDB 10.11.19 does not come back, on a sound disk, from two things:
//!
//! * A power cut in the midst of the first page of a table's file: recovery asks the page for the file's
//!   size before it has taken the page's copy from the doublewrite buffer, and gives the table up.
//!   Nothing on a loop device can cut a page that is written directly; the lab's disk can.
//!   `REAL_DISK_TORN=1` lets it.
//! * A power cut soon after `ALTER TABLE ... FORCE`, on ext4: recovery refuses to rename the new file,
//!   because the old one's name, which nobody synced, is there again. `REAL_DISK_DDL=1` adds DDL.

use crate::place::Place;
use anyhow::{bail, ensure, Context, Result};
use mysql::prelude::Queryable;
use quorate_lab::leftovers::Folder;
use quorate_lab::process::ProcessId;
use quorate_lab::server::{self, sql, Account};
use rustix::process::Signal;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
const WRITERS: usize = 4;
const START_LIMIT: Duration = Duration::from_secs(60);
/// Longer than until the power is cut.
const LONG: Duration = Duration::from_secs(3);
const CLIENT_LIMIT: Duration = Duration::from_secs(20);
/// Of the server's log, when a table is damaged.
const LOG_LINES: usize = 100;
/// Of a thousand statements: those that only change rows, and all.
/// Of as many statements the first [`ROWS`] only change rows.
const ALL: u32 = 1000;
const ROWS: u32 = 960;

/// Makes one on `place` and takes it through `rounds` of load, full disks and power cuts.
pub fn comes_back(place: &dyn Place, rounds: u64, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut server = Server::make(place, seed % 2 == 1)?;
    server.start()?;
    server.make_tables()?;
    let mut acknowledged = [0; WRITERS];
    for round in 0..rounds {
        let story = STORIES[random.usize(0..STORIES.len())];
        let mut phase = |server: &Server| {
            work(server, MS * random.u32(200..1200), &mut acknowledged, seed ^ round << 32);
        };
        phase(&server);
        if story != Story::NeverFull {
            place.fill()?;
            phase(&server);
        }
        if matches!(story, Story::FullForAWhile | Story::KilledWhileFull) {
            if story == Story::KilledWhileFull {
                server.kill()?;
            }
            place.make_room()?;
            if !server.runs()? {
                server
                    .start()
                    .with_context(|| format!("round {round}, {story:?}, after the kill"))?;
            }
            phase(&server);
        }
        thread::scope(|scope| {
            let working = scope.spawn(|| work(&server, LONG, &mut acknowledged, seed ^ round));
            thread::sleep(MS * 300);
            let cut = server.cut_power();
            working.join().expect("a writer panicked");
            cut
        })?;
        server.kill()?;
        place.power_on(
            asked("REAL_DISK_TORN").then_some(seed.wrapping_mul(1000).wrapping_add(round)),
        )?;
        let told = || format!("round {round}, {story:?}, after the power cut");
        server.start().with_context(told)?;
        server.check(&acknowledged).with_context(told)?;
        println!("round {round}: {story:?}, acknowledged {acknowledged:?}");
    }
    Ok(())
}

fn asked(variable: &str) -> bool {
    crate::number(variable).is_some_and(|number| number > 0)
}

/// What happens before the power is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Story {
    NeverFull,
    FullToTheEnd,
    FullForAWhile,
    /// Killed, and started again with room.
    KilledWhileFull,
}

const STORIES: [Story; 4] =
    [Story::NeverFull, Story::FullToTheEnd, Story::FullForAWhile, Story::KilledWhileFull];

struct Server<'a> {
    place: &'a dyn Place,
    account: Account,
    /// Its log, at each commit.
    flushes: bool,
    child: Option<Child>,
    /// What is acknowledged from now on comes too late to count.
    cut: AtomicBool,
    /// For its socket, error log and temporary files, which no fault of the disk is to touch.
    folder: Folder,
}

impl<'a> Server<'a> {
    fn make(place: &'a dyn Place, flushes: bool) -> Result<Server<'a>> {
        let account = Account::choose()?;
        let folder = Folder::new()?;
        account.own(folder.path(), 0o700)?;
        account.own(place.path(), 0o700)?;
        let server =
            Server { place, account, flushes, child: None, cut: AtomicBool::new(false), folder };
        let install =
            server::find_program("mariadb-install-db").context("no mariadb-install-db")?;
        let output = Command::new(install)
            .args(["--no-defaults", "--skip-test-db", &server.datadir()])
            .args(["--auth-root-authentication-method=socket"])
            .args(server.account.switch.then(|| format!("--user={}", server.account.name)))
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(server)
    }

    fn datadir(&self) -> String {
        format!("--datadir={}", self.place.path().join("data").display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("mariadb.sock")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("error.log")
    }

    fn start(&mut self) -> Result<()> {
        let begin = server::error_log::length(&self.log());
        let file = |option: &str, name: &str| {
            format!("--{option}={}", self.folder.path().join(name).display())
        };
        let child = Command::new(server::find_mariadbd()?)
            .args(["--no-defaults", &self.datadir(), "--skip-networking", "--skip-name-resolve"])
            .args([file("socket", "mariadb.sock"), file("pid-file", "mariadbd.pid")])
            .args([file("log-error", "error.log"), file("tmpdir", "")])
            // Small, so that pages are written and checkpoints made all the time.
            .args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"])
            .args(["--innodb-max-dirty-pages-pct=5", "--innodb-io-capacity=2000"])
            .arg(format!("--innodb-flush-log-at-trx-commit={}", u8::from(self.flushes)))
            .args(self.account.switch.then(|| format!("--user={}", self.account.name)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.folder.path().join("stderr"))?)
            .spawn()
            .context("starting mariadbd")?;
        self.child = Some(child);
        self.cut.store(false, Ordering::SeqCst);
        let end = Instant::now() + START_LIMIT;
        while self.connect().is_err() {
            if !self.runs()? || Instant::now() > end {
                let errors = server::error_log::errors_since(&self.log(), begin);
                bail!("the server does not start:\n{}", errors.join("\n"));
            }
            thread::sleep(MS * 20);
        }
        Ok(())
    }

    fn runs(&mut self) -> Result<bool> {
        Ok(match &mut self.child {
            Some(child) => child.try_wait()?.is_none(),
            None => false,
        })
    }

    /// The power goes, and the server with it.
    fn cut_power(&self) -> Result<()> {
        self.cut.store(true, Ordering::SeqCst);
        self.place.cut_power()?;
        let Some(child) = &self.child else { return Ok(()) };
        // One that ended by itself is not collected yet: its number is nobody else's.
        ProcessId::of(child.id())?.signal(Signal::KILL).map(drop)
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn connect(&self) -> mysql::Result<mysql::Conn> {
        sql::connect(&self.socket(), "root", CLIENT_LIMIT)
    }

    fn make_tables(&self) -> Result<()> {
        let mut connection = self.connect()?;
        connection.query_drop("CREATE DATABASE t")?;
        for writer in 0..WRITERS {
            connection.query_drop(format!("CREATE TABLE t.ledger{writer} (id INT PRIMARY KEY)"))?;
            connection.query_drop(format!(
                "CREATE TABLE t.rows{writer} (id INT PRIMARY KEY, k INT, pad VARCHAR(300), \
                 large LONGBLOB, KEY (k))"
            ))?;
        }
        Ok(())
    }

    /// All tables are whole, and have what was acknowledged. What the server only warns of, versions of
    /// rows that nobody has purged yet, is no damage.
    fn check(&self, acknowledged: &[u64; WRITERS]) -> Result<()> {
        let mut connection = self.connect()?;
        let tables: Vec<String> = connection.query("SHOW TABLES FROM t")?;
        for table in tables {
            let says: Vec<Says> = connection.query(format!("CHECK TABLE t.{table} EXTENDED"))?;
            // The server syncs no directory: what says that there is a table may outlive it.
            let outlives = |line: &Says| line.3.contains("doesn't exist in engine");
            if table.starts_with("extra") && says.iter().any(outlives) {
                continue;
            }
            ensure!(
                says.iter().all(|line| line.3 == "OK" || line.2 == "Warning"),
                "{says:?}; the server's log ends in:\n{}",
                server::error_log::tail(&self.log(), LOG_LINES).join("\n")
            );
        }
        for (writer, upto) in acknowledged.iter().enumerate().filter(|_| self.flushes) {
            let found: Option<u64> = connection
                .query_first(format!("SELECT COUNT(*) FROM t.ledger{writer} WHERE id <= {upto}"))?;
            ensure!(found == Some(*upto), "writer {writer}: {found:?} of {upto} are there");
        }
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{error:#}");
        }
    }
}

/// Table, operation, kind, text.
type Says = (String, String, String, String);

/// Writers work for this long. What they get no answer for counts as not acknowledged.
fn work(server: &Server, time: Duration, acknowledged: &mut [u64; WRITERS], seed: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (writer, upto) in acknowledged.iter_mut().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let Ok(mut connection) = server.connect() else { return };
                let mut random = fastrand::Rng::with_seed(seed ^ (writer as u64) << 56);
                while !stop.load(Ordering::Relaxed) {
                    let mut next = *upto;
                    match step(&mut connection, &mut random, writer, &mut next) {
                        Err(mysql::Error::MySqlError(_)) => thread::sleep(MS),
                        Err(_) => return,
                        Ok(()) if server.cut.load(Ordering::SeqCst) => return,
                        Ok(()) => *upto = next,
                    }
                }
            });
        }
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
}

/// One statement: a number for the ledger, or anything that makes InnoDB write pages, extend files,
/// make them and delete them.
fn step(
    connection: &mut mysql::Conn,
    random: &mut fastrand::Rng,
    writer: usize,
    upto: &mut u64,
) -> mysql::Result<()> {
    let (id, k) = (random.u32(0..3000), random.u32(0..1000));
    let (rows, extra) = (format!("t.rows{writer}"), format!("t.extra{writer}"));
    let statement = match random.u32(0..if asked("REAL_DISK_DDL") { ALL } else { ROWS }) {
        0..400 => {
            // The next one, or again one of unknown outcome.
            *upto += 1;
            format!("INSERT IGNORE INTO t.ledger{writer} VALUES ({upto})")
        }
        400..650 => {
            let (pad, large) = (k % 300, if k < 100 { k * 1000 } else { 0 });
            format!(
                "REPLACE INTO {rows} VALUES ({id}, {k}, REPEAT('x', {pad}), REPEAT('y', {large}))"
            )
        }
        650..800 => format!("UPDATE {rows} SET k = {k} WHERE id BETWEEN {id} AND {}", id + 50),
        800..900 => format!("DELETE FROM {rows} WHERE id BETWEEN {id} AND {}", id + 100),
        900..ROWS => format!(
            "INSERT IGNORE INTO {rows} SELECT seq, seq % 1000, REPEAT('z', 200), NULL \
             FROM seq_{id}_to_{}",
            id + 500
        ),
        ROWS..975 => format!("CREATE TABLE IF NOT EXISTS {extra} LIKE {rows}"),
        975..985 => format!("INSERT IGNORE INTO {extra} SELECT * FROM {rows}"),
        985..990 => format!("DROP TABLE IF EXISTS {extra}"),
        990..995 => format!("TRUNCATE TABLE {rows}"),
        _ => format!("ALTER TABLE {rows} FORCE"),
    };
    connection.query_drop(statement)
}
