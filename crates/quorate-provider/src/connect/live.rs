//! Options that take effect while the server runs: what has to be told to whom.

use super::ConnectError;
use crate::provider::Provider;
use quorate_live::Group;
use std::time::Duration;

/// How long setting `pc.weight` waits until the group has taken it over.
const VOTES_PATIENCE: Duration = Duration::from_secs(2);
/// `gmcast.isolate`: as usual. 1 cuts the node off, as a broken network does.
const CONNECTED: i64 = 0;
/// Cut off, and the connection to the group is given up: only a restart brings the node back.
const GIVEN_UP: i64 = 2;

/// Options were set: what depends on them follows.
pub fn options_changed(provider: &Provider) -> Result<(), ConnectError> {
    let (Some(link), Some(group)) = (provider.link(), provider.controls()) else { return Ok(()) };
    tell_group(provider, &group)?;
    let votes = provider.options.lock().integer("pc.weight");
    group.want_votes(votes as u8, VOTES_PATIENCE);
    if provider.options.lock().integer("gmcast.isolate") == GIVEN_UP && !link.closing() {
        provider.info("gmcast.isolate=2: this node gives its connection to the group up; restart it to return");
        provider.give_up_connection();
    }
    Ok(())
}

/// Hands the group what it has to know of the options.
pub fn tell_group(provider: &Provider, group: &Group) -> Result<(), ConnectError> {
    let options = provider.options.lock();
    group.want_votes(options.integer("pc.weight") as u8, Duration::ZERO);
    group.allow_alone(options.flag("pc.ignore_sb"));
    group.set_suspect_timeout(options.period("evs.suspect_timeout"));
    group.isolate(options.integer("gmcast.isolate") != CONNECTED);
    let operators = options.operators()?;
    drop(options);
    Ok(group.set_operators(operators)?)
}
