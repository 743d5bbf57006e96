//! How long an order keeps the server.
//!
//! While an option is set, the server holds the lock of its global variables: meanwhile nobody can log in, and the
//! server takes no view. An order may have to wait for other nodes much longer than that is bearable.
//!
//! Invariants: a session waits for its order so long at most, and then hears that it goes on. What comes of it is told
//! to the session after that, and stays.

use super::{Refusal, Session};
use crate::answers::Answers;
use crate::provider::Provider;
use quorate_node::blocking::Mutex;
use std::sync::mpsc::{sync_channel, RecvTimeoutError, TryRecvError};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);
const GOES_ON: &str = "and goes on for up to";

type Outcome = Result<String, String>;

/// Carries out `order`, which gives up after `limit`, on a thread of its own. `text` is what was ordered.
pub fn within_patience(
    provider: &Provider,
    session: &Session,
    (text, limit): (String, Duration),
    order: impl FnOnce() -> Outcome + Send + 'static,
) -> Result<String, Refusal> {
    let (sender, outcome) = sync_channel(1);
    // Taken by whoever carries it out: this thread, if there is no other for it.
    let order = Arc::new(Mutex::new(Some(order)));
    let has_left = Arc::new(Mutex::new(false));
    let (ordered, left, name) = (order.clone(), has_left.clone(), text.clone());
    let (answers, connection) = (provider.answers.clone(), session.connection);
    let carry_out = move || {
        let Some(order) = ordered.lock().take() else { return };
        let outcome = order();
        let has_left = left.lock();
        match *has_left {
            true => tell_late(&mut answers.lock(), connection, &name, outcome),
            // The session holds the other end until it has left.
            false => drop(sender.send(outcome)),
        }
    };
    if let Err(error) = provider.helper("order", carry_out) {
        provider.warn(&format!(
            "No thread for the order {text} ({error}): nobody can log in to this server until it is done"
        ));
        let order = order.lock().take();
        return order
            .map_or_else(|| Err("it was not carried out".into()), |order| order())
            .map_err(Refusal::New);
    }
    match outcome.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome.map_err(Refusal::New),
        Err(RecvTimeoutError::Disconnected) => Err(Refusal::New(bug(&text))),
        Err(RecvTimeoutError::Timeout) => {
            let mut has_left = has_left.lock();
            match outcome.try_recv() {
                Ok(outcome) => return outcome.map_err(Refusal::New),
                Err(TryRecvError::Disconnected) => return Err(Refusal::New(bug(&text))),
                Err(TryRecvError::Empty) => {}
            }
            *has_left = true;
            let goes_on = format!(
                "{text} was not done within {PATIENCE:?}, {GOES_ON} {limit:?}. This statement ends now, because \
                 no client can log in while it waits, and nothing behind this order is carried out. What comes of the \
                 order will be in wsrep_quorate_last_answer or wsrep_quorate_last_refusal of this session, and in \
                 `quorate history`: give no other order until it is"
            );
            provider.answers.lock().refused(session.connection, goes_on.clone());
            Err(Refusal::Told(goes_on))
        }
    }
}

fn bug(text: &str) -> String {
    format!("{text} ended with a bug of this node: see the error log")
}

fn tell_late(answers: &mut Answers, connection: Option<u64>, name: &str, outcome: Outcome) {
    match outcome {
        Ok(answer) => {
            answers.answered(connection, format!("{name}: {answer}"));
            // It says that the order goes on, unless another one was refused since.
            answers.take_back(connection, |refusal| refusal.contains(GOES_ON));
        }
        Err(refusal) => answers.refused(connection, format!("{name}: {refusal}")),
    }
}
