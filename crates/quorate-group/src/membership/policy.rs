//! What a leader decides about its group, as pure functions of what it knows.

use quorate_consensus::{Config, ConfigChange, Level, MemberId, MemberInfo, MemberRole, Status};
use quorate_wire::{PeerIdentity, Wish};

/// Whether a majority is to go on with this member where others may stop, because all disks fill
/// together: it leads, or is among the first after the leader, by id, that make a majority with it.
pub(crate) fn needed(config: &Config, leader: Option<MemberId>, own: MemberId) -> bool {
    let mut majority: Vec<MemberId> = leader.into_iter().collect();
    for id in config.voters() {
        if config.is_quorum(|member| majority.contains(&member)) {
            break;
        }
        majority.push(id);
    }
    majority.contains(&own)
}

/// The next joining member that has caught up, as a full one. It lives: with a vote that nobody
/// casts, the others might be too few, where they were enough before.
pub(crate) fn promotion(
    status: &Status,
    alive: impl Fn(MemberId) -> bool,
    silent_ms_max: u64,
) -> Option<ConfigChange> {
    let caught_up = |id: &MemberId| {
        status.caught_up(*id).is_some_and(|peer| {
            peer.matched >= status.config_index && peer.silent_ms <= silent_ms_max
        })
    };
    let mut joining = status.config.members.iter().filter(|(_, info)| info.joining);
    let (id, info) = joining.find(|(id, _)| alive(**id) && caught_up(id))?;
    Some(put(*id, MemberInfo { joining: false, ..info.clone() }))
}

/// To the next level, once the present process of each member (`known`: up to which level) knows it.
pub(crate) fn raise(
    config: &Config,
    known: impl Fn(MemberId) -> Option<Level>,
) -> Option<ConfigChange> {
    let next = config.level + 1;
    let all = config.members.keys().all(|id| known(*id).is_some_and(|level| level >= next));
    all.then_some(ConfigChange::Level(next))
}

/// Whether those that live can commit after `change`, and one of them may lead: else nothing, not even another change
/// of members, is committed until somebody returns, or ever, if a disk is lost; or nobody takes writes.
pub(crate) fn leaves_enough(
    config: &Config,
    change: &ConfigChange,
    alive: impl Fn(MemberId) -> bool,
) -> bool {
    let mut after = Config { outgoing: Vec::new(), ..config.clone() };
    match change {
        ConfigChange::Update { put, remove } => {
            after.members.extend(put.iter().cloned());
            after.members.retain(|id, _| !remove.contains(id));
        }
        ConfigChange::Expel(id) => {
            after.members.remove(id);
        }
        ConfigChange::Rules(rules) if rules.zones_min > config.rules.zones_min => {
            after.rules = *rules;
        }
        // Who could commit before can still, and a rule that asks for less is the way out for those who cannot.
        ConfigChange::Rules(_) | ConfigChange::Level(_) => return true,
    }
    let has_leader =
        |config: &Config| config.members.iter().any(|(id, info)| info.may_lead() && alive(*id));
    (has_leader(&after) || !has_leader(config)) && after.can_commit(&alive)
}

/// A member that announces another address or name than the configuration has.
pub(crate) fn readdress<'a>(
    config: &Config,
    known: impl Iterator<Item = &'a PeerIdentity>,
) -> Option<(MemberId, ConfigChange)> {
    let mut moved = known.filter_map(|identity| {
        let info = config.members.get(&identity.member)?;
        let now = announced(config.level, info, identity);
        (*info != now).then(|| (identity.member, put(identity.member, now)))
    });
    moved.next()
}

/// The member, or nobody (0), whose processes could pass for this one's. The layer above tells processes apart by the
/// member's id with the incarnation added from bit 32 on, and hears each in the name of its member only: ids that
/// differ in these bits alone would speak for each other. Ids are random, so it is no accident.
pub(crate) fn confusable_with(config: &Config, id: MemberId) -> Option<MemberId> {
    const INCARNATIONS: u128 = (u32::MAX as u128) << 32;
    let others = config.members.keys().copied().filter(|other| *other != id);
    let mut all = others.chain([MemberId(0)]);
    let is_process = |of: u128| of & !INCARNATIONS == 0;
    all.find(|other| {
        is_process(id.0.wrapping_sub(other.0)) || is_process(other.0.wrapping_sub(id.0))
    })
}

/// Why somebody is not admitted, yet: for the sake of this member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotYet {
    /// It has the same address, and lives, or seems to.
    SameAddress(MemberId),
    /// It has the same key, and lives: one node is one member, however often it asks.
    SameKey(MemberId),
    /// It is away, the address is its, and its certificate is for another name: nobody else takes its place, unless
    /// it is removed.
    OtherName(MemberId),
}

/// How to admit `identity`: `None` if the configuration has it as it is. It replaces a member
/// that does not live any more and had its address, its key, or its name (if names tell members apart in
/// this group): the same node, whose disk was lost. A new one is what it wishes to be, but
/// joining; a known one stays what it is.
pub(crate) fn admission(
    config: &Config,
    identity: &PeerIdentity,
    wish: &Wish,
    alive: impl Fn(MemberId) -> bool,
) -> Result<Option<ConfigChange>, NotYet> {
    let id = identity.member;
    let info = match config.members.get(&id) {
        Some(info) => announced(config.level, info, identity),
        None => MemberInfo {
            joining: wish.role != MemberRole::Learner,
            priority: wish.priority,
            key: identity.key.noted_at(config.level),
            zone: wish.zone.clone(),
            ..MemberInfo::new(wish.role, &identity.addr, &identity.name)
        },
    };
    if config.members.get(&id) == Some(&info) {
        return Ok(None);
    }
    let key = identity.key;
    let others = || config.members.iter().filter(|(other, _)| **other != id);
    // A certificate may be that of all nodes.
    let has_key = |other: &MemberInfo| key.is_known() && !key.is_name() && other.key == key;
    let mut living = others().filter(|(other, _)| alive(**other));
    if let Some((holder, held)) = living.find(|(_, held)| held.addr == info.addr || has_key(held)) {
        let why = if has_key(held) { NotYet::SameKey } else { NotYet::SameAddress };
        return Err(why(*holder));
    }
    let namesakes = others().filter(|(_, other)| other.name == info.name).count();
    let has_place = |other: &MemberInfo| {
        other.addr == info.addr || has_key(other) || (namesakes == 1 && other.name == info.name)
    };
    let mut remove = Vec::new();
    for (other, held) in others().filter(|(other, held)| has_place(held) && !alive(**other)) {
        if !held.key.is_name() || held.key.admits(key) {
            remove.push(*other);
        } else if held.addr == info.addr {
            return Err(NotYet::OtherName(*other));
        }
    }
    Ok(Some(ConfigChange::Update { put: vec![(id, info)], remove }))
}

/// Whether the others decide without `own`, which they do only when the change is complete: in the
/// middle of it, its vote is still needed.
pub(crate) fn is_out(config: &Config, own: MemberId) -> bool {
    !config.is_joint() && !config.members.contains_key(&own)
}

/// Whether `own` is the whole group.
pub(crate) fn is_all(config: &Config, own: MemberId) -> bool {
    !config.is_joint() && config.members.len() == 1 && config.is_voter(own)
}

/// How to remove `leaver`: with it go as many dead voters as it takes for the remaining ones to
/// have a majority that lives. Nothing while those that live are no majority with it: they could not
/// commit that, and whoever has it in its log is bound by it. Nor if those that live could not commit without it, in as
/// many zones as the rules ask for: then its return has to be enough.
pub(crate) fn removal(
    config: &Config,
    leaver: MemberId,
    alive: impl Fn(MemberId) -> bool,
) -> Option<ConfigChange> {
    if !config.is_quorum(&alive) {
        return None;
    }
    let mut after = Config { outgoing: Vec::new(), ..config.clone() };
    after.members.remove(&leaver);
    let mut remove = vec![leaver];
    for dead in config.voters().filter(|id| *id != leaver && !alive(*id)) {
        if after.is_quorum(&alive) {
            break;
        }
        after.members.remove(&dead);
        remove.push(dead);
    }
    if !after.can_commit(&alive) {
        return None;
    }
    Some(ConfigChange::Update { put: Vec::new(), remove })
}

/// The voter to expel: gone for long, where those that live are a majority even with it.
pub(crate) fn expulsion(
    config: &Config,
    gone_for_long: impl Fn(MemberId) -> bool,
    alive: impl Fn(MemberId) -> bool,
) -> Option<ConfigChange> {
    if config.rules.paused {
        return None;
    }
    let expelled = config.voters().find(|id| gone_for_long(*id))?;
    let change = ConfigChange::Update { put: Vec::new(), remove: vec![expelled] };
    config.is_quorum(|id| id != expelled && alive(id)).then_some(change)
}

/// A known member with the address and name it has now. The first key, or name, that it shows is its own.
fn announced(level: Level, info: &MemberInfo, identity: &PeerIdentity) -> MemberInfo {
    let key = info.key.after(identity.key.noted_at(level));
    MemberInfo { addr: identity.addr.clone(), name: identity.name.clone(), key, ..info.clone() }
}

fn put(id: MemberId, info: MemberInfo) -> ConfigChange {
    ConfigChange::Update { put: vec![(id, info)], remove: Vec::new() }
}

#[cfg(test)]
mod tests;
