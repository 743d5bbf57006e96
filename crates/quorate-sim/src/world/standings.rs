//! How servers stand, and clients that are told of their writes once others have applied them, too.

use super::{Mark, Micros, Plant, Profile, Rng, Rule, World};
use quorate_certify::Seqno;
use quorate_group::{Answer, Input, Order};
use quorate_seeds::mix;
use quorate_wire::Standing;
use std::collections::BTreeMap;

/// So many entries that are not applied count for a second of lag: enough for members to differ.
const ENTRIES_A_SECOND: u64 = 10;
/// Who has been up to date for so many election timeouts is known to be. Until then a word of it to the contrary may
/// be on its way, or stand in the way of a paused member.
const KNOWN_TIMEOUTS: u64 = 16;
/// Of a thousand writes, how many are waited for.
const AWAITED: u32 = 300;

/// Drawn apart from the rest of a scenario.
pub struct Waits {
    rng: Rng,
    on: bool,
    /// By order: what is waited for, whether on all, and since when.
    open: BTreeMap<u64, (Seqno, bool, Micros)>,
}

impl Waits {
    pub fn draw(seed: u64, profile: Profile) -> Self {
        let mut rng = Rng::new(mix(seed, 0x0041_6674_6572));
        let on = profile != Profile::Disk && rng.chance(400);
        Waits { rng, on, open: BTreeMap::new() }
    }
}

impl World {
    /// How the server of `m` stands, as its clock tells it to the member.
    pub(super) fn standing(&mut self, m: usize) -> Option<Standing> {
        let (now, prompt) = (self.schedule.now(), self.waits.on);
        let process = self.nodes[m].process.as_mut()?;
        let behind = process.fed_to.saturating_sub(process.applied());
        if process.in_view && behind == 0 {
            process.synced_since.get_or_insert(now);
        }
        let seqno = process.database.seqno();
        let inflated = if self.plant == Some(Plant::InflatedStanding) { 1_000 } else { 0 };
        Some(Standing {
            synced: process.synced_since.is_some(),
            prompt,
            applied: seqno + inflated,
            certified: seqno,
            index: process.applied(),
            lag_ms: (behind * 1_000 / ENTRIES_A_SECOND) as u32,
            written: process.next_serial,
        })
    }

    /// `m` has applied something: says so at once, if somebody waits for that.
    pub(super) fn tell_applied(&mut self, m: usize) {
        let awaited = |process: &super::Process| process.awaited;
        if !self.nodes[m].process.as_ref().is_some_and(awaited) {
            return;
        }
        if let Some(standing) = self.standing(m) {
            self.take_in(m, |intake| intake.standing(standing));
            self.carry_out(m);
        }
    }

    pub(super) fn step_standing(&mut self, m: usize) {
        let standing = self.standing(m);
        self.step(m, Input::Standing(standing));
    }

    /// A client of `m` has written this, and may want to be told once it is applied elsewhere.
    pub(super) fn may_await_others(&mut self, m: usize, seqno: Seqno) {
        if !self.waits.on || !self.waits.rng.chance(AWAITED) {
            return;
        }
        let at_least = self.waits.rng.chance(300).then_some(2);
        let id = self.next_number();
        self.waits.open.insert(id, (seqno, at_least.is_none(), self.schedule.now()));
        self.give_order(m, id, "after", Order::AwaitApplied { seqno, at_least });
    }

    /// True if this answers such a client.
    pub(super) fn others_awaited(&mut self, m: usize, id: u64, answer: &Answer) -> bool {
        let Some((seqno, all, since)) = self.waits.open.remove(&id) else { return false };
        if answer.is_err() {
            self.mark(Mark::AppliedTooLate);
            return true;
        }
        self.mark(Mark::AppliedElsewhere);
        let Some(process) = &self.nodes[m].process else { return true };
        let known_us = KNOWN_TIMEOUTS * self.scenario.election_us();
        let members = process.feed.view().members.iter().filter(|_| all);
        let late = members.filter_map(|member| self.slot(member.id)).find(|other| {
            let node = &self.nodes[*other];
            let counts = |process: &&super::Process| {
                process.synced_since.is_some_and(|at| at + known_us <= since)
            };
            node.is_whole()
                && node.process.as_ref().filter(counts).is_some_and(|p| p.database.seqno() < seqno)
        });
        self.oracle.fail_for(late, Rule::AppliedEverywhere, |late| {
            format!(
                "a client of m{m} is told that {seqno} is applied everywhere, and m{late} has not"
            )
        });
        true
    }
}
