//! A model of a client's session in the server: what `wsrep-lib` does between a statement and the
//! provider, state by state.

mod client;
mod schema;
mod streaming;
mod transaction;

pub use self::client::Client;

use self::transaction::Transaction;
use crate::baton::installed;
use crate::server::Server;
use std::sync::Arc;
use std::time::Duration;

/// `wsrep::transaction::state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Executing,
    Certifying,
    Preparing,
    Committing,
    OrderedCommit,
    Committed,
    CertFailed,
    MustAbort,
    MustReplay,
    Replaying,
    Aborted,
}

/// What a client is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Committed,
    /// It rolled back what it had begun.
    RolledBack,
    /// Error 1213: it failed for good.
    Deadlock,
    /// An error that does not say whether it was committed.
    Unknown,
}

/// One connection: transactions until the server stops.
pub fn run(server: &Arc<Server>, number: u64) {
    let mut count = 0;
    while !server.stopping() {
        let think = installed().random(|rng| rng.millis(0, server.load.think_ms));
        installed().sleep(think);
        let Some(node) = server.node().filter(|_| server.is_ready()) else {
            installed().sleep(Duration::from_millis(20));
            continue;
        };
        // Who may write all the same is refused by the node.
        if server.is_read_only() && installed().random(|rng| rng.chance(800)) {
            continue;
        }
        count += 1;
        let tag = server.tag(number, count);
        match installed().random(|rng| rng.index(20)) {
            0 => server.causal_read(&node),
            2 if installed().random(|rng| rng.chance(300)) => {
                schema::change_schema(server, &node, number, tag)
            }
            1 if number == 0 => server.pause_for_a_while(&node),
            _ => Transaction::new(server, &node, number, tag).run(),
        }
    }
}
