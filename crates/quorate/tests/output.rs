//! What becomes of an answer that nobody reads.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

#[test]
fn nobody_has_to_read_all_that_is_said() {
    let (ours, its) = UnixStream::pair().unwrap();
    drop(ours);
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["chaos", "--list"])
        .stdout(Stdio::from(OwnedFd::from(its)))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(141), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
