//! What a leader changes of its own accord: full members out of joining ones that caught up, new
//! addresses of known members, votes that were asked for, expulsion of those gone for long, the next
//! feature level.

use super::policy;
use super::votes::VoteWishes;
use crate::driver::Driver;
use crate::note::EventKind;
use crate::output::{LogLevel, Output};
use quorate_consensus::{ConfigChange, Event, MemberId, Status};

/// Where this member leads: the next change, if one is due.
pub(crate) fn keep_up(
    driver: &mut Driver,
    votes: &mut VoteWishes,
    status: &Status,
    out: &mut Output,
) {
    if status.config.is_joint() || status.commit < status.config_index {
        return;
    }
    let level = |id| match driver.peers.get(id) {
        _ if id == driver.id => Some(driver.options.level),
        Some(peer) if peer.is_connected() => Some(peer.identity.as_ref()?.levels.1),
        _ => None,
    };
    let both_ways = |id| driver.peers.get(id).is_some_and(|peer| peer.is_connected_both_ways());
    let change = policy::promotion(status, both_ways, driver.options.election_timeout_ms)
        .or_else(|| expulsion(driver, status))
        .or_else(|| policy::raise(&status.config, level));
    if let Some(change) = change {
        propose(driver, change, out);
    } else if let Some((id, change)) = announced(driver, votes, status) {
        if propose(driver, change, out) {
            driver.note_change(id, true);
        }
    }
}

/// What a member says of itself. Who says something else each time keeps nobody waiting.
fn announced(
    driver: &Driver,
    votes: &mut VoteWishes,
    status: &Status,
) -> Option<(MemberId, ConfigChange)> {
    let own = driver.identity();
    let connected = driver.peers.iter().filter(|(_, peer)| peer.is_connected());
    let identities = connected.filter_map(|(_, peer)| peer.identity.as_ref()).chain([&own]);
    let identities = identities.filter(|identity| driver.may_change(identity.member));
    policy::readdress(&status.config, identities)
        .or_else(|| votes.change(&status.config, |id| is_there(driver, status, id)))
}

/// False: not now.
pub(super) fn propose(driver: &mut Driver, change: ConfigChange, out: &mut Output) -> bool {
    let words = change.in_words(&driver.config);
    let line = format!("membership: {words}");
    match driver.step(Event::ChangeMembership(change), out) {
        Ok(()) => {
            out.log(LogLevel::Info, line);
            driver.saw(EventKind::Membership, words, Some(driver.last()));
            true
        }
        Err(refusal) => {
            out.log(LogLevel::Debug, format!("{line}: {refusal}"));
            false
        }
    }
}

/// Only what this leader saw itself counts: it waits for `expel_ms` after its election.
fn expulsion(driver: &Driver, status: &Status) -> Option<ConfigChange> {
    let patience_ms = driver.options.expel_ms?;
    let silent_ms =
        |id: MemberId| status.peer(id).map_or(0, |peer| peer.silent_ms).min(driver.led_ms());
    let gone_for_long = |id| id != driver.id && silent_ms(id) >= patience_ms;
    let alive = |id| {
        is_there(driver, status, id)
            && (id == driver.id || silent_ms(id) < driver.options.suspect_ms)
    };
    policy::expulsion(&status.config, gone_for_long, alive)
}

/// Whether `id` counts where those that are there must be able to decide after a change. A connection is
/// not enough: whoever just came back, and whose disk was lost meanwhile, is refused a moment later.
pub(crate) fn is_there(driver: &Driver, status: &Status, id: MemberId) -> bool {
    id == driver.id || (driver.peers.is_connected(id) && status.is_proved(id))
}
