//! A logger, as a process of its own.

use quorate_cli::server::ProcessId;
use rustix::process::Signal;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// It says each ten seconds why it has not joined: a signal is not to wait for that.
const PATIENCE: Duration = Duration::from_secs(8);

#[test]
fn one_that_has_not_joined_ends_when_it_is_told_to() {
    let folder = std::env::temp_dir().join(format!("quorate-unjoined-{}", std::process::id()));
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.unwrap().to_string();
    let mut logger = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["logger", "--name", "log1", "--cluster-name", "c", "--address", &address])
        .args(["--listen", &address, "--join", "127.0.0.1:1", "--log-dir"])
        .arg(&folder)
        .spawn()
        .unwrap();
    let process = ProcessId::of(logger.id()).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let mut listens = false;
    while !listens && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
        listens = TcpStream::connect(&address).is_ok();
    }
    process.signal(Signal::TERM).unwrap();
    let ended = process.wait_gone(PATIENCE).unwrap();
    // Nothing is left of it, whatever it did.
    process.signal(Signal::KILL).unwrap();
    let status = logger.wait().unwrap();
    let _left = fs::remove_dir_all(folder);
    assert!(listens, "it has not begun to listen: {status}");
    assert!(ended, "it has not ended within {PATIENCE:?}");
    assert_eq!(status.code(), Some(0));
}
