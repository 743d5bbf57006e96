//! Options that are commands: carried out when they are set on a running node.
//!
//! `SET GLOBAL wsrep_provider_options = 'quorate.switchover=node2'` is how an operator (or the
//! command `quorate`) speaks to a node: whoever may set global variables may command it, and no
//! other port or password is needed.

use super::{order, Session};
use crate::connect::options_changed;
use crate::provider::Provider;
use std::time::Duration;

/// Two elections; the group gives up sooner by itself.
const SWITCHOVER_TIMEOUT: Duration = Duration::from_secs(10);
const ISOLATE: &str = "gmcast.isolate";
/// For `quorate.switchover`: whichever voter is furthest.
const ANY: &str = "any";

/// `SET GLOBAL wsrep_provider_options`: takes over the values, then carries out the commands
/// until one fails. The error says why, and so does the session's status variable.
pub fn change_options(provider: &Provider, text: &str, session: &Session) -> Result<(), String> {
    change(provider, text, session).inspect_err(|reason| {
        provider.answers.lock().refused(session.connection, reason.clone());
    })
}

fn change(provider: &Provider, text: &str, session: &Session) -> Result<(), String> {
    #[cfg(feature = "sync-points")]
    let text = &quorate_node::sync::take_commands(text);
    let mut options = provider.options.lock();
    let isolation = options.integer(ISOLATE);
    let commands = options.set(text, true).map_err(|error| error.to_string())?;
    let settings = options.settings();
    let isolates = (options.integer(ISOLATE) != isolation).then(|| options.integer(ISOLATE) != 0);
    drop(options);
    provider.configure(settings);
    if let (Some(isolated), Some(group)) = (isolates, provider.controls()) {
        let operator = group.operator(session.author());
        operator.isolate(isolated).map_err(|error| error.to_string())?;
    }
    options_changed(provider).map_err(|error| error.to_string())?;
    commands.iter().try_for_each(|(name, value)| {
        let answer = command(provider, name, value, session)?;
        provider.answers.lock().answered(session.connection, answer);
        Ok(())
    })
}

/// What it is answered with.
fn command(
    provider: &Provider,
    name: &str,
    value: &str,
    session: &Session,
) -> Result<String, String> {
    match name {
        "quorate.switchover" => switchover(provider, value, session),
        "pc.bootstrap" => bootstrap(provider, session),
        "socket.ssl_reload" => reload_security(provider).map(|()| "read".to_owned()),
        _ => order(provider, name, value, session),
    }
}

fn bootstrap(provider: &Provider, session: &Session) -> Result<String, String> {
    let group = provider.controls().ok_or("this node is not connected to its group")?;
    let gone_on = group.operator(session.author()).bootstrap();
    gone_on
        .map(|()| "this node belongs to a majority".to_owned())
        .map_err(|error| error.to_string())
}

/// A node that is not connected reads them when it connects.
fn reload_security(provider: &Provider) -> Result<(), String> {
    let Some(group) = provider.controls() else { return Ok(()) };
    group.reload_security().map_err(|error| error.to_string())
}

fn switchover(provider: &Provider, to: &str, session: &Session) -> Result<String, String> {
    let group = provider.controls().ok_or("this node is not connected to its group")?;
    let to = (to != ANY).then_some(to);
    let leader = group.operator(session.author()).switchover(to, SWITCHOVER_TIMEOUT);
    leader.map(|leader| format!("{leader} leads")).map_err(|error| error.to_string())
}
