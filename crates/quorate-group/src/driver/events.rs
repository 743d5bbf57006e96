//! What happens to the group, for its history.

use super::Driver;
use crate::happened::Event;
use crate::note::EventKind;
use quorate_consensus::{LogPosition, MemberId, Message, MessageBody, Term};
use std::time::Duration;

impl Driver {
    /// Something happened; or will have, once the entry that it stands on is committed.
    pub fn saw(&mut self, kind: EventKind, what: String, stands_on: Option<LogPosition>) {
        let at_ms = self.unix_ms();
        self.happened.push(Event { kind, what, at_ms, stands_on });
    }

    /// What has happened since the last look.
    pub fn take_happened(&mut self) -> Vec<Event> {
        if self.happened.is_empty() {
            return Vec::new();
        }
        let (commit, consensus) = (self.commit, &self.consensus);
        // A log that was replaced by a leader's snapshot may begin after it: whether it was committed is not known
        // then, and what is not known is not noted.
        self.happened.take(|on| match consensus.has(on) {
            false => Some(false),
            true => (on.index <= commit).then_some(true),
        })
    }

    pub fn set_clock(&mut self, unix_ms: u64) {
        self.clock = (self.now_ms, unix_ms);
    }

    fn unix_ms(&self) -> u64 {
        let (now_ms, unix_ms) = self.clock;
        unix_ms.saturating_add(self.now_ms.saturating_sub(now_ms))
    }

    /// The leader may want this member to lead.
    pub fn note_handover(&mut self, message: &Message) {
        if message.body == MessageBody::TimeoutNow && self.leadership.leader == Some(message.from) {
            self.handed_over = true;
        }
    }

    /// Leadership is with `leader` from now on, or with nobody.
    pub(super) fn note_leader(&mut self, term: Term, leader: Option<MemberId>) {
        let Some(leader) = leader else { return };
        if leader == self.id {
            let what =
                format!("{} leads in term {term}: {}", self.options.name, self.why_elected());
            self.saw(EventKind::Leader, what, None);
        }
        (self.led_by, self.handed_over) = (Some(leader), false);
    }

    fn why_elected(&self) -> String {
        let Some(before) = self.led_by else {
            return "it knows of no leader before".to_owned();
        };
        if before == self.id {
            return "it led before, and had lost touch with the others".to_owned();
        }
        let name = self.name_of(before);
        if self.handed_over {
            return format!("{name} handed leadership over");
        }
        let Some(peer) = self.peers.get(before) else {
            return format!("{name}, which led before, is no member any more");
        };
        if peer.absent.is_some() {
            return format!("the process of {name}, which led before, had ended");
        }
        let silence = Duration::from_millis(self.now_ms.saturating_sub(peer.heard_ms));
        format!("nothing had been heard from {name}, which led before, for {silence:?}")
    }

    /// As the configuration has it, or as the member announced it.
    pub fn name_of(&self, id: MemberId) -> String {
        let configured = self.config.members.get(&id).map(|info| info.name.clone());
        let announced = || Some(self.peers.get(id)?.identity.as_ref()?.name.clone());
        configured.or_else(announced).unwrap_or_else(|| id.to_string())
    }
}
