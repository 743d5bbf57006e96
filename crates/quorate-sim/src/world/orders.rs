//! What operators ask for.

use super::{name, Mark, Process, World};
use crate::scenario::draw_rules;
use quorate_consensus::{MemberRole, Rules};
use quorate_group::{Alteration, Answer, Author, EventKind, Input, Mandate, Note, Noted, Order};

/// What may come of an order, for each kind of it that may be refused.
const REFUSABLE: [(&str, Mark, Mark); 8] = [
    ("switchover", Mark::SwitchoverDone, Mark::SwitchoverRefused),
    ("alter", Mark::AlterDone, Mark::AlterRefused),
    ("remove", Mark::RemoveDone, Mark::RemoveRefused),
    ("rules", Mark::RulesDone, Mark::RulesRefused),
    ("force", Mark::ForceDone, Mark::ForceRefused),
    ("leave", Mark::LeaveDone, Mark::LeaveRefused),
    ("join", Mark::JoinDone, Mark::JoinRefused),
    ("alone", Mark::AloneDone, Mark::AloneRefused),
];

impl World {
    pub(super) fn order(&mut self) {
        self.fault_later(World::order);
        let m = self.draw_node(850);
        if !self.nodes[m].runs() || self.is_somebody_lost() {
            return;
        }
        let other = self.rng.index(self.nodes.len());
        let (what, mark, order) = self.draw_order(name(other));
        self.mark(mark);
        self.tell(m, what, order);
    }

    fn draw_order(&mut self, other: String) -> (&'static str, Mark, Order) {
        let alter = |alteration| Order::Alter { name: other.clone(), alteration };
        match self.rng.below(12) {
            0..=2 => {
                let to = self.rng.chance(700).then_some(other);
                ("switchover", Mark::Switchover, Order::Switchover { to })
            }
            3..=5 if self.scenario.zones > 1 && self.rng.chance(400) => {
                let zone = Some(format!("z{}", self.rng.below(self.scenario.zones)));
                ("alter", Mark::AlterZone, alter(Alteration { zone, ..Alteration::default() }))
            }
            3 => {
                let roles = [MemberRole::Voter, MemberRole::Learner, MemberRole::Voter];
                let role = Some(self.rng.one_of(roles));
                ("alter", Mark::AlterRole, alter(Alteration { role, ..Alteration::default() }))
            }
            4 => {
                let priority = Some(self.rng.one_of([0, 20, 50, 80]));
                let change = Alteration { priority, ..Alteration::default() };
                ("alter", Mark::AlterPriority, alter(change))
            }
            5 => ("rules", Mark::SetRules, Order::SetRules(self.draw_rules())),
            6 if !self.scenario.loses_disks() => {
                ("votes", Mark::WantVotes, Order::WantVotes(self.rng.range(0, 2) as u8))
            }
            7 => ("view", Mark::RefreshView, Order::RefreshView),
            8 => ("alone", Mark::GoOnAlone, Order::GoOnAlone),
            9 => {
                let allowed = self.rng.chance(500);
                ("allow alone", Mark::AllowAlone, Order::AllowAlone(allowed))
            }
            10 => ("remove", Mark::Remove, Order::Remove { name: other }),
            _ => {
                let ms = self.scenario.election_timeout_ms * self.rng.range(2, 6);
                ("suspect", Mark::SuspectAfter, Order::SuspectAfter(ms))
            }
        }
    }

    fn draw_rules(&mut self) -> Rules {
        let rules = draw_rules(&mut self.rng, self.scenario.zones, true, true);
        let paused = self.rng.chance(150);
        if paused {
            self.mark(Mark::PauseGroup);
        }
        Rules { paused, ..self.scenario.modes.rules(&mut self.rng, rules) }
    }

    /// Who gives this order, if operators say so.
    pub(super) fn mandate(&self, id: u64, order: &Order) -> Option<Mandate> {
        let is_operators = matches!(
            order,
            Order::Switchover { .. }
                | Order::Alter { .. }
                | Order::Remove { .. }
                | Order::SetRules(_)
                | Order::ForceQuorum { .. }
                | Order::GoOnAlone
                | Order::Isolate(_)
        );
        let author = Author { name: id.to_string(), from: "sim".into() };
        let given_ms = self.schedule.now() / 1_000;
        (self.scenario.staff.signs && is_operators).then_some(Mandate { author, given_ms })
    }

    /// `m` met a note in the log, while this view was the newest; `news`: as the first one.
    pub(super) fn noted(&mut self, m: usize, news: bool, noted: &Noted, view: u64) {
        let Noted { index, note, again } = noted;
        note!(self, "m{m} notes at {index}, again: {again}: {note}");
        if news {
            self.mark(match note {
                _ if *again => Mark::NotedAgain,
                Note::Order(_) => Mark::Note,
                Note::Event(event) => match event.kind {
                    EventKind::Leader => Mark::LeaderNoted,
                    EventKind::Membership => Mark::MembershipNoted,
                    EventKind::View => Mark::ViewNoted,
                    EventKind::Transfer | EventKind::Withdrawal => unreachable!("no database here"),
                },
            });
            self.oracle.noted(note, view);
        }
        self.step(m, Input::Noted(note.id()));
    }

    /// Whether an order is under way, which may change the membership yet.
    pub(super) fn somebody_waits(&self) -> bool {
        let changes = |process: &Process| {
            process.orders.values().any(|what| !["read", "after"].contains(what))
        };
        self.nodes.iter().any(|node| node.process.as_ref().is_some_and(changes))
    }

    pub(super) fn order_answered(&mut self, m: usize, what: &'static str, answer: Answer) {
        let done = answer.is_ok();
        if let Some((_, yes, no)) = REFUSABLE.into_iter().find(|(kind, ..)| *kind == what) {
            self.mark(if done { yes } else { no });
        }
        let answer = answer.map_err(|error| error.to_string());
        note!(self, "m{m} answers to {what}: {answer:?}");
        if what == "leave" {
            self.departed(m, done);
        }
    }
}
