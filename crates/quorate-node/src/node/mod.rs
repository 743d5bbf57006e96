//! A node: its parts, wired together, and what its host may call (`calls`). How a connection to a group begins
//! and ends is in `connection`, what the group tells outside of its log in `observer`.

mod calls;
mod commit_watch;
mod connection;
mod observer;

pub use crate::local::{LocalState, NodeConfig};
pub use observer::NodeObserver;

use crate::applier::{self, Appliers};
use crate::blocking::Mutex;
use crate::catch_up::CatchUp;
use crate::exit::Exit;
use crate::host::Host;
use crate::local::Local;
use crate::pause::Pause;
use crate::primary::Primary;
use crate::proposals::Proposals;
use crate::records::Records;
use crate::sequencer;
use crate::session::{self, Sessions};
use crate::settings::Settings;
use crate::start::Position;
use crate::transfer::{self, Signals, Transfer};
use crate::votes::{Polls, Votes};
use crate::withdraw::{self, Helpers, Withdrawal};
use std::sync::Arc;

pub struct Node {
    local: Arc<Local>,
    records: Arc<Records>,
    withdrawal: Arc<Withdrawal>,
    helpers: Arc<Helpers>,
    proposals: Arc<Proposals>,
    catch_up: Arc<CatchUp>,
    pause: Arc<Pause>,
    primary: Arc<Primary>,
    votes: Arc<Votes>,
    transfer: Arc<Transfer>,
    exit: Arc<Exit>,
    sessions: Sessions,
    appliers: Appliers,
    /// What the server recovered at its start (`NodeConfig::start`), until a connection has begun
    /// from it. A later one begins where the former ended, as `grastate.dat` says.
    recovered: Mutex<Option<Position>>,
}

impl Node {
    pub fn new(host: Box<dyn Host>, config: NodeConfig, settings: Settings) -> Self {
        let recovered = Mutex::new(config.start);
        let local = Arc::new(Local::new(host, config, settings));
        let records = Arc::new(Records::new(local.clone()));
        let polls = Arc::new(Polls::new());
        let signals = Arc::new(Signals::new());
        let withdrawal = Arc::new(Withdrawal::new(
            local.clone(),
            records.clone(),
            vec![signals.clone(), polls.clone()],
        ));
        let helpers = Arc::new(Helpers::new(withdrawal.clone()));
        let proposals = Arc::new(Proposals::new(local.clone()));
        let catch_up = Arc::new(CatchUp::new(local.clone()));
        let pause = Arc::new(Pause::new(local.clone(), withdrawal.clone()));
        let primary = Arc::new(Primary::new(local.clone(), helpers.clone()));
        let votes = Arc::new(Votes::new(
            local.clone(),
            records.clone(),
            withdrawal.clone(),
            proposals.clone(),
            polls,
        ));
        let transfer = Arc::new(Transfer::new(transfer::Parts {
            local: local.clone(),
            records: records.clone(),
            withdrawal: withdrawal.clone(),
            proposals: proposals.clone(),
            catch_up: catch_up.clone(),
            primary: primary.clone(),
            signals,
        }));
        let exit = Arc::new(Exit::new(
            local.clone(),
            withdrawal.clone(),
            helpers.clone(),
            primary.clone(),
        ));
        let sessions = Sessions::new(session::Parts {
            local: local.clone(),
            records: records.clone(),
            withdrawal: withdrawal.clone(),
            proposals: proposals.clone(),
            primary: primary.clone(),
            pause: pause.clone(),
            votes: votes.clone(),
            catch_up: catch_up.clone(),
        });
        let appliers = Appliers::new(applier::Parts {
            local: local.clone(),
            records: records.clone(),
            withdrawal: withdrawal.clone(),
            catch_up: catch_up.clone(),
            votes: votes.clone(),
            transfer: transfer.clone(),
        });
        Self {
            local,
            records,
            withdrawal,
            helpers,
            proposals,
            catch_up,
            pause,
            primary,
            votes,
            transfer,
            exit,
            sessions,
            appliers,
            recovered,
        }
    }

    /// Those that a sequencer of this node tells what the log says.
    fn sequencer_parts(&self) -> sequencer::Parts {
        sequencer::Parts {
            local: self.local.clone(),
            withdrawal: self.withdrawal.clone(),
            proposals: self.proposals.clone(),
            votes: self.votes.clone(),
            transfer: self.transfer.clone(),
        }
    }
}

/// Runs `call`; a panic becomes `otherwise`, and withdraws the node, where there is one.
pub fn guard<T>(node: Option<&Node>, otherwise: T, call: impl FnOnce() -> T) -> T {
    withdraw::guard(node.map(|node| &*node.withdrawal), otherwise, call)
}

#[cfg(test)]
mod tests;
