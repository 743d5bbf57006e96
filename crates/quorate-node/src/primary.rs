//! Single-primary mode: only the leader takes writes, and servers, clients and tools are told so.
//!
//! Invariants:
//! - Whose write sets count is decided in the log: each carries the term in which its node led, and
//!   passes only in an entry of that term (`quorate_certify::Outcome::NotPrimary`). So a write set
//!   that was under way while leadership moved, however late it arrives, is refused on all nodes
//!   alike. What this module knows may be old: it refuses early, and says why.
//! - `read_only` is switched on by this module where the node may not write, and off only where this
//!   module had switched it on: an operator's `read_only` on a primary stays.
//! - With `primary_failover=wait` a new primary takes writes once everything that was committed
//!   before it led is applied here, so that its clients read what the last primary acknowledged.
//! - A node that was cut off from its group for long shows itself `read_only`, too (`exit` says when).
//!
//! Locks: `seen`, under it the link's and then `read_only`; the host is asked for its `read_only`, and told
//! it, under both, so it must not call back.

use crate::blocking::{self, Mutex};
use crate::local::Local;
use crate::withdraw::Helpers;
use quorate_consensus::{MemberId, Primaries, Rules, Term};
use quorate_live::ViewMember;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks whether a new primary that applies its backlog still leads.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a local write meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gate {
    /// Every node takes writes.
    Open,
    /// This node does, as the primary of this term.
    Primary(Term),
    Closed,
}

/// No term is so high; 0 is none.
const OPEN: u64 = u64::MAX;

#[derive(Clone, Copy, Default)]
struct Seen {
    rules: Rules,
    /// The term in which this node leads.
    lead: Option<Term>,
    /// The last term that this node led when all of its predecessors' write sets were applied here.
    caught_up: Term,
    /// The term for which a thread waits for that.
    waiting: Term,
}

pub struct Primary {
    local: Arc<Local>,
    helpers: Arc<Helpers>,
    seen: Mutex<Seen>,
    /// [`Gate`], for the path of a commit.
    gate: AtomicU64,
    /// Without a majority for longer than the operator wants to take for passing.
    cut_off: AtomicBool,
    read_only: Mutex<Switch>,
}

#[derive(Default)]
struct Switch {
    /// This module switched it on.
    ours: bool,
    missing_told: bool,
}

impl Primary {
    pub fn new(local: Arc<Local>, helpers: Arc<Helpers>) -> Self {
        Self {
            local,
            helpers,
            seen: Mutex::default(),
            gate: AtomicU64::new(OPEN),
            cut_off: AtomicBool::new(false),
            read_only: Mutex::default(),
        }
    }

    /// What a local write set is stamped with; `None`: this node takes no writes.
    pub fn writing_term(&self) -> Option<u64> {
        match self.gate.load(Ordering::Acquire) {
            OPEN => Some(0),
            0 => None,
            term => Some(term),
        }
    }

    /// The term that this node leads.
    pub fn leads(&self) -> Option<Term> {
        self.seen.lock().lead
    }

    /// This node leads in this term, or does not.
    pub fn leader_changed(self: &Arc<Self>, lead: Option<Term>) {
        self.seen.lock().lead = lead;
        self.settle();
    }

    pub fn rules_changed(self: &Arc<Self>, rules: Rules) {
        let before = std::mem::replace(&mut self.seen.lock().rules, rules);
        if before.primaries != rules.primaries {
            self.local.info(match rules.primaries {
                Primaries::Single => {
                    "The group is in single-primary mode: only its leader takes writes"
                }
                Primaries::Multi => "The group is in multi-primary mode: every node takes writes",
            });
        }
        self.settle();
    }

    /// Makes the gate and the server's `read_only` what rules and leadership ask for.
    pub fn settle(self: &Arc<Self>) {
        let mut seen = self.seen.lock();
        let gate = seen.gate();
        let value = match gate {
            Gate::Open => OPEN,
            Gate::Primary(term) => term,
            Gate::Closed => 0,
        };
        let wait = self.local.link().and_then(|_| seen.begin_wait());
        // Under the lock, so that an older decision never comes last.
        let before = self.gate.swap(value, Ordering::AcqRel);
        self.show_read_only(gate == Gate::Closed || self.cut_off.load(Ordering::Acquire));
        drop(seen);
        match gate {
            Gate::Primary(term) if before != value => {
                self.local
                    .info(&format!("This node is the primary (term {term}): it takes writes"));
            }
            Gate::Closed if before != value => {
                self.local.info("This node is not the primary: it takes no writes");
            }
            _ => {}
        }
        if let Some(term) = wait {
            self.apply_backlog(term);
        }
    }

    /// On a thread of its own, for as long as this node leads in `term`.
    fn apply_backlog(self: &Arc<Self>, term: Term) {
        let began = blocking::now();
        let primary = self.clone();
        let run = move || {
            let leads = || primary.seen.lock().lead == Some(term);
            while let Some(link) = primary.local.link().filter(|link| leads() && !link.closing()) {
                let until = || blocking::now() + PATIENCE;
                let Ok(Some(seqno)) = link.barrier(until()) else { continue };
                while leads() && !link.closing() {
                    if !primary.local.apply.wait_until(seqno, until()) {
                        continue;
                    }
                    if primary.seen.lock().note_caught_up(term) {
                        primary.local.info(&format!(
                            "The backlog up to seqno {seqno} was applied in {:.2} s",
                            (blocking::now() - began).as_secs_f64()
                        ));
                        primary.settle();
                    }
                    return;
                }
            }
        };
        if let Err(e) = self.helpers.spawn("primary", run) {
            self.local.error(&format!(
                "No thread to wait for the backlog ({e}): this node leads, but takes no writes. Hand \
                 leadership over with quorate.switchover, or set the rule primary_failover=serve"
            ));
        }
    }

    fn show_read_only(&self, wanted: bool) {
        let mut switch = self.read_only.lock();
        let Some(read_only) = self.local.host.read_only() else {
            if wanted && !std::mem::replace(&mut switch.missing_told, true) {
                self.local.error(&format!(
                    "This server has no read_only that can be switched from here: writes are refused on \
                     secondaries all the same, but tools that look at read_only do not see which node \
                     is the primary. Let them look at {}",
                    self.local.config.words.primary_shown
                ));
            }
            return;
        };
        if wanted && !read_only {
            self.local.host.set_read_only(true);
            switch.ours = true;
        } else if !wanted && switch.ours {
            self.local.host.set_read_only(false);
            switch.ours = false;
        }
    }

    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Acquire)
    }

    /// The node was cut off for long, or no longer is: then nobody is to write here.
    pub fn set_cut_off(self: &Arc<Self>, cut_off: bool) {
        if self.cut_off.swap(cut_off, Ordering::AcqRel) != cut_off {
            self.settle();
        }
    }

    /// A connection begins: nobody leads by it yet, nor is anybody cut off from it. It may be to another
    /// group, whose terms have the same numbers.
    pub fn begin_connection(&self) {
        self.cut_off.store(false, Ordering::Release);
        let mut seen = self.seen.lock();
        *seen = Seen { rules: seen.rules, ..Seen::default() };
    }

    /// The node goes: what the server was told does not hold any more.
    pub fn forget(&self) {
        self.cut_off.store(false, Ordering::Release);
        *self.seen.lock() = Seen::default();
        self.gate.store(OPEN, Ordering::Release);
        self.show_read_only(false);
    }

    /// After a state transfer the server knows its place in the view from the donor's tables, where
    /// members stand in the order of their ids. With a single primary it has to see a view.
    pub fn ask_for_view(&self) {
        let single = self.seen.lock().rules.primaries == Primaries::Single;
        if let Some(link) = self.local.link().filter(|_| single) {
            link.group.refresh_view();
        }
    }

    /// Tells the client whose write is refused where to go.
    pub fn say_not_primary(&self) {
        let leader = self.local.link().and_then(|link| {
            let status = link.group.status();
            let leader = status.leader?;
            let name = status.config.members.get(&leader)?.name.clone();
            Some((name, clients_address(&link.group.reachable(), leader), status.is_leader))
        });
        let where_to = match leader {
            Some((_, _, true)) => {
                "it applies its backlog first (primary_failover=wait): try again".into()
            }
            Some((name, Some(address), false)) => format!("the primary is {name} ({address})"),
            Some((name, None, false)) => format!("the primary is {name}"),
            None => "a primary is being elected: try again".into(),
        };
        self.local.host.refuse(&format!(
            "{} takes no writes, the group is in single-primary mode: {where_to}",
            self.local.config.name
        ));
    }
}

/// Where clients find a member, if its server has said so.
fn clients_address(reachable: &[ViewMember], id: MemberId) -> Option<String> {
    let member = reachable.iter().find(|member| member.id == id)?;
    Some(member.incoming.clone()).filter(|incoming| !matches!(incoming.as_str(), "" | "AUTO"))
}

impl Seen {
    fn gate(&self) -> Gate {
        match (self.rules.primaries, self.lead) {
            (Primaries::Multi, _) => Gate::Open,
            (Primaries::Single, Some(term)) if !self.must_wait(term) => Gate::Primary(term),
            (Primaries::Single, _) => Gate::Closed,
        }
    }

    fn must_wait(&self, term: Term) -> bool {
        self.rules.failover_waits && self.caught_up != term
    }

    /// The term for which a thread has to be started that waits for the backlog.
    fn begin_wait(&mut self) -> Option<Term> {
        let single = self.rules.primaries == Primaries::Single;
        let term = self.lead.filter(|term| single && self.must_wait(*term))?;
        (std::mem::replace(&mut self.waiting, term) != term).then_some(term)
    }

    /// The backlog of this term is applied; false, and not noted, if this node does not lead in it any more.
    /// It may lead in a later one by then, whose backlog is applied already: nobody waits for that again.
    fn note_caught_up(&mut self, term: Term) -> bool {
        let leads = self.lead == Some(term);
        if leads {
            self.caught_up = term;
        }
        leads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Records;
    use crate::withdraw::Withdrawal;

    const SINGLE: Rules = Rules {
        zones_min: 0,
        priorities: quorate_consensus::PriorityRule::Optimistic,
        primaries: Primaries::Single,
        failover_waits: false,
        follows_writes: false,
        paused: false,
        after: false,
    };

    #[test]
    fn only_the_leader_takes_writes_with_a_single_primary() {
        let mut seen = Seen { lead: None, ..Seen::default() };
        assert_eq!(seen.gate(), Gate::Open);
        seen.rules = SINGLE;
        assert_eq!(seen.gate(), Gate::Closed);
        seen.lead = Some(7);
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Primary(7), None));
    }

    #[test]
    fn a_primary_that_waits_does_so_once_in_each_term() {
        let rules = Rules { failover_waits: true, ..SINGLE };
        let mut seen = Seen { rules, lead: Some(7), ..Seen::default() };
        assert_eq!(
            (seen.gate(), seen.begin_wait(), seen.begin_wait()),
            (Gate::Closed, Some(7), None)
        );
        assert!(seen.note_caught_up(7));
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Primary(7), None));
        seen.lead = Some(9);
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Closed, Some(9)));
        seen.rules.primaries = Primaries::Multi;
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Open, None));
    }

    #[test]
    fn a_group_that_is_connected_to_next_has_terms_of_its_own() {
        let local = Arc::new(Local::for_tests());
        let records = Arc::new(Records::new(local.clone()));
        let withdrawal = Withdrawal::new(local.clone(), records, Vec::new());
        let primary = Primary::new(local, Arc::new(Helpers::new(Arc::new(withdrawal))));
        let rules = Rules { failover_waits: true, ..SINGLE };
        *primary.seen.lock() = Seen { rules, lead: Some(1), caught_up: 1, waiting: 1 };
        primary.begin_connection();
        let mut seen = primary.seen.lock();
        seen.lead = Some(1);
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Closed, Some(1)));
    }

    #[test]
    fn a_wait_that_outlasts_its_term_takes_nothing_from_the_next_one() {
        let rules = Rules { failover_waits: true, ..SINGLE };
        let mut seen = Seen { rules, lead: Some(2), ..Seen::default() };
        assert_eq!(seen.begin_wait(), Some(2));
        seen.lead = Some(3);
        assert_eq!(seen.begin_wait(), Some(3));
        assert!(seen.note_caught_up(3));
        assert!(!seen.note_caught_up(2), "it ends after that of term 3");
        assert_eq!((seen.gate(), seen.begin_wait()), (Gate::Primary(3), None));
    }
}
