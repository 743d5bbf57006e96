//! The donor's script.
//!
//! One kind stops the server while it reads (rsync). The other reads while the server works
//! (mariabackup): the tables' definitions first, then the rows at the end, as of one position. It holds
//! the server's backup lock, which keeps out whoever wants to stop the server, but no applier.

use super::Parcel;
use crate::baton::{installed, Process};
use crate::calls::Node;
use crate::engine::Copy;
use crate::oracle::Mark;
use crate::plant::Plant;
use crate::server::Server;
use std::sync::Arc;
use std::time::Duration;

/// How long a script tries to reach the joiner.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// Why a script ends, as its exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    Script = -5,
    Broken = -32,
    Nobody = -110,
    Cancelled = -125,
}

impl Server {
    /// Starts the script, or fails to; the request is the joiner's address.
    pub fn begin_donation(self: &Arc<Self>, request: &[u8]) -> Result<(), ()> {
        let node = self.node().ok_or(())?;
        let address = address(request).ok_or(())?;
        if installed().random(|rng| rng.chance(40)) {
            self.oracle.mark(Mark::ScriptFailsToStart);
            return Err(());
        }
        self.oracle.mark(Mark::Donates);
        let server = self.clone();
        let name = format!("n{}.donor", self.number);
        self.start_thread(&name, move || {
            let outcome = server.donate(&node, address);
            server.say(|| format!("the script for n{address} ends: {outcome:?}"));
            server.oracle.mark(match outcome {
                Ok(()) => Mark::Donated,
                Err(Failure::Script) => Mark::ScriptFails,
                Err(Failure::Broken) => Mark::StreamBreaks,
                Err(Failure::Nobody) => Mark::ScriptFindsNobody,
                Err(Failure::Cancelled) => Mark::TransferCancelled,
            });
            node.state_sent(outcome.map_or_else(|failure| failure as i32, |()| 0));
        });
        Ok(())
    }

    fn donate(&self, node: &Node, address: usize) -> Result<(), Failure> {
        let to =
            self.wire.connect(address, self.process, CONNECT_PATIENCE).ok_or(Failure::Nobody)?;
        if self.wire.count_senders() > 1 {
            self.oracle.mark(Mark::TwoJoiners);
        }
        let stands_still = installed().random(|rng| rng.chance(500));
        let copy = match stands_still {
            true => self.copy_standing(node, address, to),
            false => self.copy_flowing(address, to),
        };
        let sent = copy.and_then(|copy| self.send(address, to, Parcel::Whole(copy)));
        if sent == Err(Failure::Script) {
            // The joiner's end sees the connection end. If it is gone, nobody does.
            let _seen = self.wire.send(address, (self.process, to), Parcel::Broken);
        }
        sent
    }

    fn copy_standing(&self, node: &Node, address: usize, to: Process) -> Result<Copy, Failure> {
        self.oracle.mark(Mark::DonorStill);
        let _lock = self.backup.lock();
        node.desync();
        let at = node.pause();
        if at < 0 {
            self.must_be_withdrawn("a donor cannot pause");
            node.resync();
            return Err(Failure::Script);
        }
        let schema = self.engine.copy_schema();
        let copy = self.engine.copy_rows(schema);
        let sent = self.take_time(address, to, &copy);
        node.resume();
        node.resync();
        sent.map(|()| copy)
    }

    fn copy_flowing(&self, address: usize, to: Process) -> Result<Copy, Failure> {
        self.oracle.mark(Mark::DonorFlowing);
        let _lock = self.backup.lock();
        let schema = self.engine.copy_schema();
        let part = self.engine.copy_rows(schema.clone());
        self.take_time(address, to, &part)?;
        let whole = self.engine.copy_rows(schema);
        Ok(match self.plant {
            Some(Plant::CopyTakenEarly) => Copy { rows: part.rows, ..whole },
            _ => whole,
        })
    }

    /// Sends one part after the other.
    fn take_time(&self, address: usize, to: Process, whole: &Copy) -> Result<(), Failure> {
        let parts = installed().random(|rng| rng.range(1, 4));
        let longest = installed().random(|rng| [5, 60, 600][rng.index(3)]);
        for _ in 0..parts {
            let time = installed().random(|rng| rng.millis(1, longest));
            installed().sleep(time);
            if self.is_shutting_down() {
                return Err(Failure::Cancelled);
            }
            if installed().random(|rng| rng.chance(15)) {
                return Err(Failure::Script);
            }
            self.send(address, to, Parcel::Part(whole.clone()))?;
        }
        Ok(())
    }

    fn send(&self, address: usize, to: Process, parcel: Parcel) -> Result<(), Failure> {
        let sent = self.wire.send(address, (self.process, to), parcel);
        sent.then_some(()).ok_or(Failure::Broken)
    }
}

/// `method NUL address NUL`.
fn address(request: &[u8]) -> Option<usize> {
    let mut words = request.split(|byte| *byte == 0);
    let (_method, address) = (words.next()?, words.next()?);
    std::str::from_utf8(address).ok()?.parse().ok()
}
