//! One of two goes on alone, as `pc.ignore_sb` and `pc.bootstrap` let a live member do.
//!
//! The rule is that of quorate-group (`alone/` there): the process of the other one is gone, and
//! the present process of this one is in a committed view. The oracle of the group needs no word
//! about it: whoever leads has all that was committed, alone or not.

use super::{Event, Phase, World};
use crate::coverage::Mark;
use quorate_consensus::{Event as CoreEvent, MemberId};

impl World {
    pub(super) fn schedule_alone(&mut self) {
        if self.scenario.alone {
            self.look_again();
        }
    }

    /// Whoever may goes on without the other one.
    pub(super) fn go_on_alone(&mut self) {
        if self.phase != Phase::Faults {
            return;
        }
        self.look_again();
        for m in 0..self.slots() {
            let Some(gone) = self.left_behind_by(m) else { continue };
            if self.tells() {
                self.note(format!("m{m} wants to go on without {gone:?}, whose process is gone"));
            }
            self.ask(m, CoreEvent::ContinueAlone(gone), Mark::Alone);
        }
    }

    fn look_again(&mut self) {
        let election = self.scenario.election_us();
        let delay = self.rng.range(election / 20, election / 2);
        self.schedule.after(delay, Event::Alone);
    }

    /// The other of two members, if `m` may leave it behind now.
    fn left_behind_by(&self, m: usize) -> Option<MemberId> {
        let member = &self.members[m];
        if !member.runs() || member.disk.failed || self.without_majority || !self.has_right(m) {
            return None;
        }
        let mut others = member.config.members.keys().filter(|id| **id != member.id);
        let (other, none) = (*others.next()?, others.next().is_none());
        let is_gone = self.slot(other).is_some_and(|slot| !self.members[slot].is_up());
        (none && is_gone && member.config.members.contains_key(&member.id)).then_some(other)
    }

    /// A view with `m` in it, that was made in the present life of its process.
    fn has_right(&self, m: usize) -> bool {
        let member = &self.members[m];
        let made = self.views_made.iter().find(|(position, _)| *position == member.view_at);
        member.machine.view.members.contains(&member.id)
            && made.is_some_and(|(_, at)| *at > member.since)
    }
}
