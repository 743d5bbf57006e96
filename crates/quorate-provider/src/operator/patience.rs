//! How long an order keeps the server.
//!
//! While an option is set, the server holds the lock of its global variables: meanwhile nobody can log in, and the
//! server takes no view. An order may have to wait for other nodes much longer than that is bearable.
//!
//! Invariant: a session waits for its order so long at most, and then hears that it goes on. What comes of it is told to
//! the session later, as if it had waited.

use super::Session;
use crate::provider::Provider;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

/// Carries out `order`, which gives up after `limit`, on a thread of its own. `text` is what was ordered.
pub fn within_patience(
    provider: &Provider,
    session: &Session,
    (text, limit): (String, Duration),
    order: impl FnOnce() -> Result<String, String> + Send + 'static,
) -> Result<String, String> {
    let (sender, result) = mpsc::sync_channel(1);
    let is_late = Arc::new(AtomicBool::new(false));
    let (answers, connection) = (provider.answers.clone(), session.connection);
    let (late, ordered) = (is_late.clone(), text.clone());
    let carry_out = move || {
        let result = order();
        let named = |said: &String| match late.load(Ordering::Acquire) {
            true => format!("{ordered}: {said}"),
            false => said.clone(),
        };
        match &result {
            Ok(answer) => answers.lock().answered(connection, named(answer)),
            Err(refusal) => answers.lock().refused(connection, named(refusal)),
        }
        // Nobody may wait for it any more.
        let _awaited = sender.send(result);
    };
    if let Err(error) = provider.helper("order", carry_out) {
        return Err(format!("no thread for this order ({error}): nothing was changed. Try again"));
    }
    match result.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            is_late.store(true, Ordering::Release);
            Err(format!(
                "{text} was not done within {PATIENCE:?}, and goes on for up to {limit:?}. This statement ends now, because \
                 no client can log in while it waits. What comes of the order will be in wsrep_quorate_last_answer or \
                 wsrep_quorate_last_refusal of this session, and in `quorate history`"
            ))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(format!("{text} ended with a bug of this node: see the error log"))
        }
    }
}
