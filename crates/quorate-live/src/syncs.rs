//! Between the log, which is opened first, and the member that wants to hear of its syncs.

use crate::live::Live;
use parking_lot::{Condvar, Mutex};
use quorate_consensus::LogPosition;
use quorate_wal::{OnSync, WalError};
use std::sync::{Arc, Weak};

#[derive(Default)]
pub(crate) struct Syncs {
    state: Mutex<State>,
    synced: Condvar,
}

#[derive(Default)]
struct State {
    live: Option<Weak<Live>>,
    done: LogPosition,
    failed: Option<Arc<WalError>>,
}

impl Syncs {
    pub fn receiver(self: &Arc<Self>) -> OnSync {
        let syncs = self.clone();
        Box::new(move |synced| {
            let mut state = syncs.state.lock();
            if let Some(live) = &state.live {
                let live = live.upgrade();
                drop(state);
                if let Some(live) = live {
                    live.on_sync(synced);
                }
                return;
            }
            match synced {
                Ok(position) => state.done = position,
                Err(error) => state.failed = Some(error),
            }
            syncs.synced.notify_all();
        })
    }

    /// Before there is a member: waits for the log to be on disk as far as `position`.
    pub fn wait(&self, position: LogPosition) -> Result<(), Arc<WalError>> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.done == position {
                return Ok(());
            }
            self.synced.wait(&mut state);
        }
    }

    pub fn connect(&self, live: &Arc<Live>) {
        let mut state = self.state.lock();
        state.live = Some(Arc::downgrade(live));
        let failed = state.failed.take();
        drop(state);
        if let Some(error) = failed {
            live.on_sync(Err(error));
        }
    }
}
