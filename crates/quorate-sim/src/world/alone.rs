//! One of two goes on alone, by an option (`pc.ignore_sb`) or because an operator says so, who does
//! not look first whether that is wise: the product has to refuse what is not.
//!
//! What is checked goes by what the world knows, whatever the product went by: when one goes on alone,
//! its log has all that anybody was fed, or knew to be committed when its process ended; and the other
//! one could not do the same at that moment, for its process is gone, or is cut off by its operator,
//! or no view has it in that was made since it started or was cut off.

use super::{show, Mark, Micros, Process, Rule, World};
use quorate_consensus::{Config, Index, LogPosition, MemberId};
use quorate_group::Order;
use std::collections::BTreeMap;

/// What the core writes beside such a membership.
const AUDIT: &str = "went on alone";

/// What each member knows, as the world sees it.
#[derive(Default)]
pub struct Known {
    /// What each knew to be committed when its process ended last.
    committed: BTreeMap<MemberId, LogPosition>,
    /// When each view was made.
    views: BTreeMap<Index, Micros>,
}

impl Known {
    /// What came after `upto` is lost.
    pub(super) fn forget_after(&mut self, upto: Index) {
        self.committed.retain(|_, known| known.index <= upto);
    }
}

impl World {
    pub(super) fn order_alone(&mut self) {
        self.act_in_faults(self.scenario.election_us() * 2, World::order_alone);
        for m in self.slots() {
            let Some(process) = &mut self.nodes[m].process else { continue };
            let cut_off = !process.member.status(0, Default::default()).primary;
            if cut_off && self.nodes[m].runs() && self.rng.chance(500) {
                self.tell(m, "alone", Order::GoOnAlone);
            }
        }
    }

    /// The process at `m` ends.
    pub(super) fn keep_known(&mut self, m: usize, process: &Process) {
        let id = self.nodes[m].id;
        if !self.was_lost(id) {
            self.known.committed.insert(id, committed(process));
        }
    }

    pub(super) fn view_made(&mut self, index: Index) {
        self.known.views.insert(index, self.schedule.now());
    }

    /// `m` was fed the view at `index`.
    pub(super) fn view_seen(&mut self, m: usize, index: Index) {
        let Some(process) = &mut self.nodes[m].process else { return };
        let own = process.member.identity();
        let members = &process.feed.view().members;
        let here = members.iter().any(|v| (v.id, v.incarnation) == (own.member, own.incarnation));
        let made = self.known.views.get(&index).copied().unwrap_or_default();
        process.in_view |= here && made > process.cut_until;
    }

    /// `m` is cut off by its operator, or not any more.
    pub(super) fn note_cut(&mut self, m: usize, over: bool) {
        let Some(process) = &mut self.nodes[m].process else { return };
        process.cut_until = if over { self.schedule.now() } else { Micros::MAX };
        process.in_view = false;
    }

    /// `m` makes this membership, at `index`.
    pub(super) fn check_alone(&mut self, m: usize, index: Index, config: &Config) {
        if !config.audit.contains(AUDIT) {
            return;
        }
        self.mark(Mark::WentAlone);
        note!(self, "m{m} goes on alone at {index}");
        let Some(process) = &self.nodes[m].process else { return };
        let base = process.wal.base().index;
        let has = |known: LogPosition| {
            known.index <= base || process.wal.term_at(known.index) == Some(known.term)
        };
        let fed = |index| self.oracle.committed_term(index).map(|term| LogPosition { term, index });
        let all = (1..=self.oracle.commit()).filter_map(fed);
        let ended = self.known.committed.values().copied();
        let nodes = self.nodes.iter().filter(|node| !self.was_lost(node.id));
        let running = nodes.filter_map(|node| Some(committed(node.process.as_ref()?)));
        let missed = all.chain(ended).chain(running).find(|known| !has(*known));
        self.oracle.fail_for(missed, Rule::AloneWithAll, |missed| {
            format!("m{m} goes on alone without {}, which was committed", show(missed))
        });
        let other = |o: &usize| *o != m && config.audit.contains(&self.nodes[*o].id.to_string());
        let may_go_on = |other: &usize| {
            self.nodes[*other].process.as_ref().is_some_and(|process| process.in_view)
        };
        let other = self.slots().find(other).filter(may_go_on);
        self.oracle.fail_for(other, Rule::AloneWithAll, |other| {
            format!("m{m} goes on alone, and m{other} runs, and may do so, too")
        });
    }
}

/// What this process knows to be committed.
fn committed(process: &Process) -> LogPosition {
    let base = process.wal.base();
    let index = process.fed_to.max(base.index);
    let term = process.wal.term_at(index).unwrap_or(base.term);
    LogPosition { term, index }
}
