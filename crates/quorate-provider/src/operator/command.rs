//! Options that are commands: carried out when they are set on a running node.
//!
//! `SET GLOBAL wsrep_provider_options = 'quorate.switchover=node2'` is how an operator (or the
//! command `quorate`) speaks to a node: whoever may set global variables may command it, and no
//! other port or password is needed.

use super::patience::within_patience;
use super::{order, Refusal, Session, TIMEOUT};
use crate::connect::options_changed;
use crate::options::Spec;
use crate::provider::Provider;
use quorate_live::{Author, Group};
use std::time::Duration;

/// Two elections; the group gives up sooner by itself.
const SWITCHOVER_TIMEOUT: Duration = Duration::from_secs(10);
const SWITCHOVER: &str = "quorate.switchover";
const NOT_CONNECTED: &str = "this node is not connected to its group";
const ISOLATE: &str = "gmcast.isolate";
/// For `quorate.switchover`: whichever voter is furthest.
const ANY: &str = "any";

/// `SET GLOBAL wsrep_provider_options`: takes over the values, then carries out the commands
/// until one fails. Gives back what the session is to be warned of. The error says why, and so does the session's
/// status variable.
pub fn change_options(
    provider: &Provider,
    text: &str,
    session: &Session,
) -> Result<Vec<String>, String> {
    change(provider, text, session).map_err(|refusal| match refusal {
        Refusal::New(reason) => {
            provider.answers.lock().refused(session.connection, reason.clone());
            reason
        }
        Refusal::Told(reason) => reason,
    })
}

fn change(provider: &Provider, text: &str, session: &Session) -> Result<Vec<String>, Refusal> {
    #[cfg(feature = "sync-points")]
    let text = &quorate_node::sync::take_commands(text);
    let group = provider.controls();
    let mut options = provider.options.lock();
    let isolation = options.integer(ISOLATE);
    let idle = options.without_effect(text);
    let mut next = options.clone();
    let commands = next.set(text, true)?;
    if let Some(group) = group {
        // What the group refuses must not stay in the options: the next start would go by it.
        group.check_operators(&next.operators()?).map_err(|error| error.to_string())?;
    }
    *options = next;
    let settings = options.settings();
    let isolates = (options.integer(ISOLATE) != isolation).then(|| options.integer(ISOLATE) != 0);
    drop(options);
    provider.configure(settings);
    if let (Some(isolated), Some(group)) = (isolates, provider.controls()) {
        let operator = group.operator(session.author());
        operator.isolate(isolated)?;
    }
    options_changed(provider)?;
    if !commands.is_empty() {
        provider.answers.lock().ordered(session.connection);
    }
    commands.iter().try_for_each(|(name, value)| {
        let answer = command(provider, name, value, session)?;
        provider.answers.lock().answered(session.connection, answer);
        Ok::<_, Refusal>(())
    })?;
    let in_vain = |spec: &Spec| format!("{} has no effect with Quorate. {}", spec.name, spec.doc);
    Ok(idle.into_iter().map(in_vain).collect())
}

/// What it is answered with.
fn command(
    provider: &Provider,
    name: &str,
    value: &str,
    session: &Session,
) -> Result<String, Refusal> {
    if name == "socket.ssl_reload" {
        reload_security(provider)?;
        return Ok("read".to_owned());
    }
    let group = provider.controls().ok_or(NOT_CONNECTED)?;
    let link = provider.link().ok_or(NOT_CONNECTED)?;
    let (name, value, author) = (name.to_owned(), value.to_owned(), session.author());
    let ordered = format!("{name}={value}");
    let limit = if name == SWITCHOVER { SWITCHOVER_TIMEOUT } else { TIMEOUT };
    within_patience(provider, session, (ordered, limit), move || match name.as_str() {
        SWITCHOVER => switchover(&group, &value, author),
        "pc.bootstrap" => bootstrap(&group, author),
        _ => order(&link, &group, &name, &value, author),
    })
}

fn bootstrap(group: &Group, author: Author) -> Result<String, String> {
    let gone_on = group.operator(author).bootstrap();
    gone_on
        .map(|()| "this node belongs to a majority".to_owned())
        .map_err(|error| error.to_string())
}

/// A node that is not connected reads them when it connects.
fn reload_security(provider: &Provider) -> Result<(), String> {
    let Some(group) = provider.controls() else { return Ok(()) };
    group.reload_security().map_err(|error| error.to_string())
}

fn switchover(group: &Group, to: &str, author: Author) -> Result<String, String> {
    let to = (to != ANY).then_some(to);
    let leader = group.operator(author).switchover(to, SWITCHOVER_TIMEOUT);
    leader.map(|leader| format!("{leader} leads")).map_err(|error| error.to_string())
}
