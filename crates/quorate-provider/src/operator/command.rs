//! Options that are commands: carried out when they are set on a running node.
//!
//! `SET GLOBAL wsrep_provider_options = 'quorate.switchover=node2'` is how an operator (or the
//! command `quorate`) speaks to a node: whoever may set global variables may command it, and no
//! other port or password is needed.

use super::order;
use crate::connect::options_changed;
use crate::provider::Provider;
use std::time::Duration;

/// Two elections; the group gives up sooner by itself.
const SWITCHOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// For `quorate.switchover`: whichever voter is furthest.
const ANY: &str = "any";

/// `SET GLOBAL wsrep_provider_options`: takes over the values, then carries out the commands
/// until one fails. The error says why.
pub fn change_options(provider: &Provider, text: &str) -> Result<(), String> {
    #[cfg(feature = "sync-points")]
    let text = &quorate_node::sync::take_commands(text);
    let mut options = provider.options.lock();
    let commands = options.set(text, true).map_err(|error| error.to_string())?;
    let settings = options.settings();
    drop(options);
    provider.configure(settings);
    options_changed(provider).map_err(|error| error.to_string())?;
    commands.iter().try_for_each(|(name, value)| command(provider, name, value))
}

fn command(provider: &Provider, name: &str, value: &str) -> Result<(), String> {
    match name {
        "quorate.switchover" => switchover(provider, value),
        "pc.bootstrap" => bootstrap(provider),
        "socket.ssl_reload" => reload_security(provider),
        _ => {
            let answer = order(provider, name, value)?;
            provider.info(&format!("{name} = {value}: {answer}"));
            *provider.counters().answer.lock() = answer;
            Ok(())
        }
    }
}

fn bootstrap(provider: &Provider) -> Result<(), String> {
    let group = provider.controls().ok_or("this node is not connected to its group")?;
    group.bootstrap().map_err(|error| error.to_string())
}

/// A node that is not connected reads them when it connects.
fn reload_security(provider: &Provider) -> Result<(), String> {
    let Some(group) = provider.controls() else { return Ok(()) };
    group.reload_security().map_err(|error| error.to_string())
}

fn switchover(provider: &Provider, to: &str) -> Result<(), String> {
    let group = provider.controls().ok_or("this node is not connected to its group")?;
    let to = (to != ANY).then_some(to);
    let leader = group.switchover(to, SWITCHOVER_TIMEOUT).map_err(|error| error.to_string())?;
    provider.info(&format!("leadership went to {leader}, as commanded"));
    Ok(())
}
