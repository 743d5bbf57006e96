//! Membership changes, as entries of the log.
//!
//! Invariants:
//! - A configuration is in force from the moment it is appended, and out of force when truncated.
//! - One change at a time: the next is refused until the last one is committed, out of its joint
//!   phase, and an entry of the leader's own term is committed (otherwise two leaders could decide
//!   by majorities that do not overlap).
//! - Configurations that follow each other differ by one vote, or are bridged by a joint one. (One
//!   vote: if a majority under T votes and one under T + 1 had nobody in common, they would hold
//!   T/2 + 1 and (T + 1)/2 + 1 votes, rounded down, which are T + 2 together.)
//! - A voter without which nothing could be decided loses that only through a joint configuration,
//!   which cannot be committed without it either. So it knows, before anything is committed without
//!   it, that this may be: [`super::alone`] rests on that. (One of two is such a voter: so a second
//!   vote of the other one, a third voter and a removal go through a joint phase there.)

use super::{Consensus, Role};
use crate::config::{Config, ConfigChange, MemberInfo, Rules, PRIORITY_MAX};
use crate::effects::Effects;
use crate::event::StepError;
use crate::level::Level;
use crate::types::{EntryKind, MemberId, Proposal};
use std::collections::{BTreeMap, BTreeSet};

/// Longest address or name, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 1024;
/// Members of a group, learners included.
const MEMBERS_MAX: usize = 256;

impl Consensus {
    pub(super) fn change_membership(
        &mut self,
        change: ConfigChange,
        fx: &mut Effects,
    ) -> Result<(), StepError> {
        self.check_leads_on()?;
        let config = match change {
            // Voters and majorities stay what they are, so there is nothing to wait for. Nor must
            // there be: where zones are lost for good, only another rule lets anything commit.
            ConfigChange::Rules(rules) => ruled(self.config(), rules),
            ConfigChange::Update { put, remove } => {
                self.check_no_change_pends()?;
                updated(self.config(), put, remove)
            }
            ConfigChange::Expel(id) => {
                self.check_no_change_pends()?;
                expelled(self.config(), id)
            }
            ConfigChange::Level(level) => {
                self.check_no_change_pends()?;
                raised(self.config(), level, self.options.level)
            }
        };
        let config = config.map_err(StepError::BadChange)?;
        self.append_config(config, fx);
        Ok(())
    }

    /// Everybody that the configuration in force takes for its decisions or its log, with what the
    /// latest one says of them: of an outgoing voter that is no member any more, the one before. `None`
    /// if the log does not go back to that.
    pub fn everybody(&self) -> impl Iterator<Item = (MemberId, Option<&MemberInfo>)> {
        self.config().everybody().map(|id| (id, self.configs.latest(id)))
    }

    /// What the configuration in force says of a member, or else the latest one before it that has it and that the
    /// log goes back to.
    pub fn last_known(&self, id: MemberId) -> Option<&MemberInfo> {
        self.configs.latest(id)
    }

    /// The leader's latest configuration was committed: go on to what it calls for.
    pub(super) fn on_config_committed(&mut self, fx: &mut Effects) {
        if self.commit < self.configs.index() {
            return;
        }
        if self.config().is_joint() {
            let left = Config { outgoing: Vec::new(), ..self.config().clone() };
            self.append_config(left, fx);
        } else if !self.config().is_incoming_voter(self.options.id) {
            self.abdicate(fx);
        }
    }

    /// Stops sending to removed members that know of their removal, or had time to learn of it.
    pub(super) fn dismiss_departed(&mut self) {
        let (config_index, commit, now_ms) = (self.configs.index(), self.commit, self.now_ms);
        let patience_ms = self.options.election_timeout_ms;
        let Some(leadership) = self.leadership() else {
            return;
        };
        leadership.peers.retain(|_, peer| {
            peer.departing_since_ms.is_none_or(|since_ms| {
                let knows = peer.matched.min(peer.commit_sent) >= config_index;
                let late = commit >= config_index && now_ms >= since_ms.saturating_add(patience_ms);
                !(knows || late)
            })
        });
    }

    pub(super) fn append_config(&mut self, config: Config, fx: &mut Effects) {
        let data = config.encode();
        self.configs.push(self.log.last().index + 1, config.clone());
        self.match_peers_to(&config);
        fx.config = Some(config);
        self.append_own([Proposal::new(EntryKind::Config, data)], fx);
    }

    fn match_peers_to(&mut self, config: &Config) {
        let (own, now_ms, next) = (self.options.id, self.now_ms, self.log.last().index + 1);
        let Self { role: Role::Leader(leadership), configs, .. } = self else {
            return;
        };
        let members: BTreeSet<MemberId> = config.everybody().filter(|id| *id != own).collect();
        for peer in leadership.peers.values_mut() {
            let departed = !members.contains(&peer.id);
            let since_ms = peer.departing_since_ms.unwrap_or(now_ms);
            peer.departing_since_ms = departed.then_some(since_ms);
        }
        for id in members {
            leadership.peers.entry(id).or_insert_with(|| configs.progress(id, next));
        }
    }

    fn check_no_change_pends(&self) -> Result<(), StepError> {
        let Role::Leader(leadership) = &self.role else {
            return Ok(());
        };
        let index = self.configs.index().max(leadership.noop);
        match self.commit < index || self.config().is_joint() {
            true => Err(StepError::ChangePending { index }),
            false => Ok(()),
        }
    }
}

/// The configuration after a change of members, joint if more than one vote comes or goes, or if
/// somebody is not needed any more that was needed for each decision.
fn updated(
    config: &Config,
    put: Vec<(MemberId, MemberInfo)>,
    remove: Vec<MemberId>,
) -> Result<Config, String> {
    let mut next = Config {
        members: config.members.clone(),
        rules: config.rules,
        level: config.level,
        lost: config.lost.clone(),
        ..Config::default()
    };
    let mut touched = BTreeSet::new();
    for (id, info) in put {
        check_info(id, &info)?;
        if config.lost.binary_search(&id).is_ok() {
            return Err(format!(
                "member {id} was removed from the group for good, by an operator's order (member remove) or when a quorum \
                 was forced. It can come back as a new member, filled from the others: stop the node, empty its log \
                 directory (if a quorum was forced: its data directory, too), and start it"
            ));
        }
        if !touched.insert(id) {
            return Err(format!("member {id} is put twice"));
        }
        next.members.insert(id, info);
    }
    for id in remove {
        if !touched.insert(id) {
            return Err(format!("member {id} is removed and named a second time"));
        }
        if next.members.remove(&id).is_none() {
            return Err(format!("{id} cannot be removed: it is not a member"));
        }
    }
    if next.members == config.members {
        return Err("the membership is already as asked for".into());
    }
    check_governable(&next)?;
    if next.members.len() > MEMBERS_MAX {
        return Err(format!("a group has at most {MEMBERS_MAX} members"));
    }
    let dispensable = |id| config.is_needed(id) && !next.is_needed(id);
    if votes_moved(config, &next) > 1 || config.voters().any(dispensable) {
        next.outgoing = config.votes().collect();
    }
    Ok(next)
}

/// Without a member, which is never one again.
fn expelled(config: &Config, id: MemberId) -> Result<Config, String> {
    let mut next = updated(config, Vec::new(), vec![id])?;
    next.lost.push(id);
    next.lost.sort_unstable();
    Ok(next)
}

/// How many votes come, go, or change hands.
fn votes_moved(before: &Config, after: &Config) -> usize {
    let mut held: BTreeMap<MemberId, isize> = BTreeMap::new();
    before.votes().for_each(|id| *held.entry(id).or_default() -= 1);
    after.votes().for_each(|id| *held.entry(id).or_default() += 1);
    held.values().map(|moved| moved.unsigned_abs()).sum()
}

/// The same members under other rules.
fn ruled(config: &Config, rules: Rules) -> Result<Config, String> {
    if rules == config.rules {
        return Err("the rules are already as asked for".into());
    }
    let next = Config { rules, audit: String::new(), ..config.clone() };
    check_governable(&next)?;
    Ok(next)
}

/// The same members at the next level. That each knows it is what the driver has seen.
fn raised(config: &Config, level: Level, known: Level) -> Result<Config, String> {
    if level != config.level + 1 || level > known {
        let now = config.level;
        return Err(format!(
            "the group works at level {now} and this member knows levels up to {known}: it cannot go \
             to {level}"
        ));
    }
    Ok(Config { level, audit: String::new(), ..config.clone() })
}

/// Whether somebody may lead, and something can be committed.
pub(super) fn check_governable(config: &Config) -> Result<(), String> {
    if config.votes().next().is_none() {
        return Err("no voter would be left".into());
    }
    if !config.members.values().any(MemberInfo::may_lead) {
        return Err("nobody would be left that may lead: only loggers, or priority 0".into());
    }
    let (zones, needed) = (config.zones().len(), usize::from(config.rules.zones_min));
    if zones < needed {
        return Err(format!(
            "voters would stand in {zones} zones, where the commit rule asks for {needed}"
        ));
    }
    Ok(())
}

fn check_info(id: MemberId, info: &MemberInfo) -> Result<(), String> {
    if [&info.addr, &info.name, &info.zone].iter().any(|text| text.len() > TEXT_BYTES_MAX) {
        let what = "address, name and zone";
        return Err(format!("{what} of {id} may have {TEXT_BYTES_MAX} bytes at most"));
    }
    if info.priority > PRIORITY_MAX {
        return Err(format!("the priority of {id} may be {PRIORITY_MAX} at most"));
    }
    Ok(())
}
