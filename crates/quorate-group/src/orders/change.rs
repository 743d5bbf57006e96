//! What an operator orders of the membership. The leader carries it out, and says when it is done.
//!
//! Invariant: the members that are there when a change begins can commit after it. A living voter that
//! went while another was down, or had lost its disk, would leave a group that waits for that one, or
//! for ever.

use super::target::{find, not_leading};
use super::Context;
use crate::error::OrderError;
use crate::membership::{is_there, leaves_enough};
use crate::order::{Alteration, Answer, Done};
use crate::output::LogLevel;
use quorate_consensus::level::{Level, PAUSE, STANDINGS};
use quorate_consensus::{
    Config, ConfigChange, Event, Index, MemberId, MemberInfo, MemberRole, Rules, StepError, Term,
};
use std::time::Duration;

pub(super) struct Change {
    wanted: Wanted,
    /// The term in which the core took it last, and the entry that it made of it.
    asked: Option<(Term, Index)>,
    /// Too few were connected for it at the last look.
    too_few: bool,
}

enum Wanted {
    Alteration {
        name: String,
        alteration: Alteration,
    },
    /// Asked again after it went, the name is not known any more.
    Removal {
        name: String,
        gone: Option<MemberId>,
    },
    Rules(Rules),
}

impl Change {
    pub fn alter(name: String, alteration: Alteration) -> Self {
        Self { wanted: Wanted::Alteration { name, alteration }, asked: None, too_few: false }
    }

    pub fn remove(name: String) -> Self {
        Self { wanted: Wanted::Removal { name, gone: None }, asked: None, too_few: false }
    }

    pub fn rules(rules: Rules) -> Self {
        Self { wanted: Wanted::Rules(rules), asked: None, too_few: false }
    }

    /// Asks the core for whatever is to be done, until that is nothing, and the membership is
    /// committed. What has been asked for may cost this member the leadership (its own vote, say):
    /// then it is done once this member sees it committed, and lost if another leads without it.
    ///
    /// What this leader has made an entry of it does not make again: if that is not in force any more,
    /// another operator's order came after it, and two that differ would take turns for ever.
    pub fn look(&mut self, context: &mut Context<'_>) -> Option<Answer> {
        match self.proceed(context) {
            Ok(true) => Some(Ok(Done::Nothing)),
            Ok(false) if context.is_late() => {
                let waited: Duration = context.patience();
                let reason = match self.too_few {
                    true => format!(
                        "the members that are connected could commit nothing after it (they would be no majority, \
                         or stand in fewer zones than the rules ask for, or none of them might lead), and that did \
                         not change within {waited:?}. Nothing was changed; bring back those missing first"
                    ),
                    false => format!(
                        "the change was not committed within {waited:?}, and may still be. Look at `quorate member \
                         list` and `quorate history` before you order it again. No data is affected"
                    ),
                };
                Some(Err(OrderError::Membership { node: context.node(), reason }))
            }
            Ok(false) => None,
            Err(reason) => Some(Err(OrderError::Membership { node: context.node(), reason })),
        }
    }

    /// True when it is done; an error is why it cannot be.
    fn proceed(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let status = context.driver.status();
        let own = context.driver.id;
        let leads = status.leader == Some(own);
        self.too_few = false;
        if !leads && self.asked.is_none() {
            return Err(not_leading(&status.config, status.leader));
        }
        let settled = status.commit >= status.config_index && !status.config.is_joint();
        match self.wanted.next(&status.config)? {
            None => return Ok(settled),
            Some(_) if !leads && status.leader.is_some() => {
                return Err(not_leading(&status.config, status.leader));
            }
            Some(change) if leads => {
                if let Some((_, made)) = self.asked.filter(|(term, _)| *term == status.term) {
                    return Ok(status.commit >= made && !status.config.is_joint());
                }
                let there = |id| is_there(context.driver, &status, id);
                let decided_by =
                    |by: &dyn Fn(MemberId) -> bool| leaves_enough(&status.config, &change, by);
                // What nobody could decide after, whoever is there, the core refuses at once.
                if !decided_by(&there) && decided_by(&|_| true) {
                    self.too_few = true;
                    return Ok(false);
                }
                let line = format!(
                    "an operator changes the membership: {}",
                    change.in_words(&status.config)
                );
                match context.driver.step(Event::ChangeMembership(change), context.out) {
                    Ok(()) => {
                        self.asked = Some((status.term, context.driver.status().config_index));
                        context.out.log(LogLevel::Info, line);
                    }
                    Err(StepError::BadChange(reason)) => return Err(reason),
                    // Another change, or a transfer, is under way.
                    Err(_) => {}
                }
            }
            // It is on its way, or nobody leads at the moment.
            Some(_) => {}
        }
        Ok(false)
    }
}

impl Wanted {
    /// What is still to be done; an error is why it cannot be.
    fn next(&mut self, config: &Config) -> Result<Option<ConfigChange>, String> {
        match self {
            Wanted::Alteration { name, alteration } => alter(config, name, alteration),
            Wanted::Removal { name, gone } => {
                let id = match *gone {
                    Some(id) if !config.members.contains_key(&id) => return Ok(None),
                    _ => find(config, name)?.0,
                };
                *gone = Some(id);
                Ok(Some(ConfigChange::Expel(id)))
            }
            Wanted::Rules(rules) if rules.paused && config.level < PAUSE => {
                Err(too_early("a group can be paused", PAUSE, config.level))
            }
            Wanted::Rules(rules) if rules.after && config.level < STANDINGS => {
                Err(too_early("commits can wait until they are applied", STANDINGS, config.level))
            }
            Wanted::Rules(rules) => {
                Ok((config.rules != *rules).then_some(ConfigChange::Rules(*rules)))
            }
        }
    }
}

fn too_early(what: &str, from: Level, level: Level) -> String {
    format!(
        "{what} from feature level {from} on, and this group is at {level}: some member runs an older release"
    )
}

fn alter(
    config: &Config,
    name: &str,
    alteration: &Alteration,
) -> Result<Option<ConfigChange>, String> {
    let (id, info) = find(config, name)?;
    let is_logger = |role| role == MemberRole::Logger;
    if alteration.role.is_some_and(|role| is_logger(role) != is_logger(info.role)) {
        let what = if is_logger(info.role) { "logger" } else { "server" };
        return Err(format!(
            "{name} is a {what}: a logger has no database and never becomes a server, nor a \
             server a logger; remove it, and start the other in its place"
        ));
    }
    let altered = altered(info, alteration);
    let change = ConfigChange::Update { put: vec![(id, altered.clone())], remove: Vec::new() };
    Ok((*info != altered).then_some(change))
}

fn altered(info: &MemberInfo, alteration: &Alteration) -> MemberInfo {
    let role = alteration.role.unwrap_or(info.role);
    // Whoever had no vote has to catch up first.
    let joining = role != MemberRole::Learner && !info.is_voter();
    MemberInfo {
        role,
        joining,
        priority: alteration.priority.unwrap_or(info.priority),
        zone: alteration.zone.clone().unwrap_or_else(|| info.zone.clone()),
        ..info.clone()
    }
}
