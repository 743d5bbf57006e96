//! The joiner's script, and the server that opens what it brings.

use super::Parcel;
use crate::baton::installed;
use crate::calls::Node;
use crate::engine::Copy;
use crate::group::HISTORY;
use crate::oracle::Mark;
use crate::server::Server;
use simulated_node::blocking::now;
use std::sync::Arc;
use std::time::Duration;

/// How long a script waits for anything to come, and one that is set to wait for less.
const PATIENCE: Duration = Duration::from_secs(100);
const LITTLE_PATIENCE: Duration = Duration::from_millis(300);
/// Codes of failures, as a server passes them on.
const BROKEN: i32 = -32;
const TIMED_OUT: i32 = -110;
const CANCELLED: i32 = -125;

impl Server {
    /// Starts the script that listens; the request is where.
    pub fn begin_reception(self: &Arc<Self>) -> Result<Vec<u8>, ()> {
        let node = self.node().ok_or(())?;
        self.wire.listen(self.number, self.process);
        let server = self.clone();
        let name = format!("n{}.joiner", self.number);
        self.start_thread(&name, move || server.receive(&node));
        Ok(format!("model\0{}\0", self.number).into_bytes())
    }

    fn receive(&self, node: &Node) {
        let received = self.receive_copy();
        self.wire.hang_up(self.number, self.process);
        match received {
            Ok(copy) => self.open_copy(node, copy),
            Err(code) => {
                self.say(|| format!("the script that receives ends: {code}"));
                node.state_received(0, -1, code);
            }
        }
    }

    fn receive_copy(&self) -> Result<Copy, i32> {
        let mut begun = false;
        let impatient = installed().random(|rng| rng.chance(100));
        let patience = if impatient { LITTLE_PATIENCE } else { PATIENCE };
        loop {
            let deadline = now() + patience;
            let stops = || self.is_shutting_down();
            match self.wire.receive(self.number, deadline, stops) {
                Some(Parcel::Part(whole)) => {
                    if !std::mem::replace(&mut begun, true) {
                        self.wipe().map_err(|error| self.oracle.fail(error.to_string())).ok();
                    }
                    self.disk.lock().take_part(&whole);
                }
                Some(Parcel::Whole(copy)) => return Ok(copy),
                Some(Parcel::Broken) => {
                    self.oracle.mark(Mark::StreamBreaks);
                    return Err(BROKEN);
                }
                None if self.is_shutting_down() => return Err(CANCELLED),
                None => {
                    self.oracle.mark(Mark::JoinerTimesOut);
                    return Err(TIMED_OUT);
                }
            }
        }
    }

    /// Everything in the data directory goes, but what scripts know to belong to the provider.
    fn wipe(&self) -> std::io::Result<()> {
        self.disk.lock().begin_copy();
        for entry in std::fs::read_dir(&self.data_dir)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_kept = name.starts_with("grastate") || name == "db";
            if !is_kept && installed().random(|rng| rng.chance(500)) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn open_copy(&self, node: &Node, copy: Copy) {
        let position = copy.position;
        self.say(|| format!("a copy of {position} has arrived"));
        if let Err(error) = self.engine.install(copy) {
            return self.oracle.fail(error.to_string());
        }
        self.recover_streams();
        self.streams.recovered_view(self.engine.members());
        self.corrupt.lock().clear();
        // A script may bring what is another group's.
        let history = if installed().random(|rng| rng.chance(10)) { HISTORY + 1 } else { HISTORY };
        if node.state_received(history, position, 0) {
            self.disk.lock().synced();
            self.oracle.mark(Mark::StateReceived);
        } else {
            self.oracle.mark(Mark::StateRefused);
            self.exits("the provider refuses the state");
        }
    }
}
