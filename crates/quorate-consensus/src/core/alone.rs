//! One of two voters goes on alone: the other one's process is gone.
//!
//! Two voters decide together, so without the other nothing is decided any more, though nothing is
//! lost either. [`Event::ContinueAlone`] makes the other one a former member, without its consent.
//!
//! Why nothing acknowledged can be lost, and the two cannot diverge. In every configuration of this
//! member's log that may be in force (from the last committed one on) this member is needed for each
//! decision: it is one of two voters, of whom it has no fewer votes, or the only one. So it is in
//! every later one that only the other member has in its log: a change which ends that is joint
//! ([`super::membership`]), and the next change waits until the last is committed. Hence
//! - whatever was committed is in this member's log, for it took its acknowledgement;
//! - the other member can commit nothing without this one, now or later, whatever it has in its own
//!   log; it can be elected only by this member's vote, which goes to logs that are not behind, and
//!   this one gains an entry of a new term right here;
//! - if this member crashes before the new configuration is on disk, the old one is in force, and
//!   needs this member's log as before.
//!
//! What it takes on trust, and the driver has to know (see there): that the other one does not do
//! the same. So only a process that is known to be gone, or to have forsworn it, is left behind.
//! Any third member refuses it, also a learner: what the driver knows is the end of one process. So
//! does a commit rule of zones, which one member cannot meet.
//!
//! A member that forswore it may still run, and lead: a question there is not answered by what is
//! decided here. Rounds are not answered any more, but with `lease_reads` the last answer is a
//! promise to elect nobody else for an election timeout, and going on alone is an election.

use super::Consensus;
use crate::config::Config;
use crate::effects::Effects;
use crate::event::StepError;
use crate::message::TERM_MAX;
use crate::types::{HardState, MemberId};

impl Consensus {
    pub(super) fn continue_alone(
        &mut self,
        gone: MemberId,
        fx: &mut Effects,
    ) -> Result<(), StepError> {
        let own = self.options.id;
        let refuse = |why: &str| Err(StepError::BadChange(why.into()));
        if self.retired || self.hard.term >= TERM_MAX {
            return refuse("this member is out of service");
        }
        let needs_this_one = |config: &Config| {
            let both = config.members.keys().all(|id| *id == own || *id == gone);
            let full = config.members.values().all(|info| info.may_lead());
            let zones = config.rules.zones_min <= 1;
            let needed = config.is_voter(own) && config.is_needed(own);
            both && full && needed && zones && !config.is_joint()
        };
        if !self.configs.possible(self.commit).all(needs_this_one) {
            return refuse("only one of two full members, with no other member and no rule of zones, can go on alone");
        }
        let Some(info) = self.config().members.get(&own).cloned() else {
            return refuse("this member is none of the group");
        };
        if self.config().members.len() == 1 {
            return refuse("this member is alone already");
        }
        if self.options.lease_reads && !self.is_leader() && self.lease_refuses_votes() {
            return refuse("the other one may still answer reads by its lease");
        }
        let term = self.hard.term + 1;
        self.become_follower(term, None, fx);
        self.hard = HardState { term, voted_for: Some(own) };
        self.become_leader(None, fx);
        let mut alone = self.config().clone();
        alone.members = [(own, info)].into();
        alone.audit = format!("{own} went on alone: {gone} was gone");
        self.append_config(alone, fx);
        Ok(())
    }
}
