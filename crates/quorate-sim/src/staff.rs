//! What operators do in one run, and how many votes its members have.
//!
//! Drawn apart from the rest of a scenario, so that the seeds of a plain group keep their meaning.

use crate::scenario::{Profile, Scenario};
use crate::schedule::Micros;
use quorate_consensus::{Config, MemberId, MemberRole};
use quorate_seeds::{mix, Rng};

#[derive(Clone, Debug, Default)]
pub struct Staff {
    /// Of each slot, where members have none, two or three votes; empty: one each.
    votes: Vec<u8>,
    /// What members of a group wish to be that founds itself; empty: voters of the default priority.
    wishes: Vec<(MemberRole, u8)>,
    /// Members leave, and are isolated.
    pub departs: bool,
    /// Whoever has no quorum is told to go on alone.
    pub alone: bool,
    /// A majority loses its disks for good.
    pub disaster: bool,
    /// And then something that was committed is lost with it.
    pub loses_commits: bool,
    /// Entries are read back so much later, at most.
    pub fetch_us: Micros,
    /// Operators give their names with their orders.
    pub signs: bool,
}

impl Staff {
    pub fn draw(scenario: &Scenario, profile: Profile) -> Self {
        let mut rng = Rng::new(mix(scenario.seed, 0x5374_6166_6621));
        let r = &mut rng;
        let (voters, election_us) = (scenario.voters, scenario.election_us());
        let operated = matches!(profile, Profile::Swarm | Profile::Membership);
        let calm = profile == Profile::Calm;
        // Who gives its votes away just when another one's disk is lost may leave nobody who decides.
        let other_votes = operated && r.chance(200) && !scenario.loses_disks();
        let other_wishes = operated && r.chance(400);
        Staff {
            votes: draw(r, other_votes, 1, |r| r.one_of([0, 1, 1, 1, 2, 3])),
            wishes: draw(r, other_wishes, (MemberRole::Voter, 50), |r| {
                let logger = r.chance(250);
                let priority = r.one_of([0, 20, 50, 50, 80]);
                (if logger { MemberRole::Logger } else { MemberRole::Voter }, priority)
            }),
            departs: operated && r.chance(200),
            alone: !calm && voters < 4 && r.chance(500),
            disaster: operated && voters > 1 && r.chance(130),
            loses_commits: r.chance(600),
            fetch_us: r.one_of([2_000, election_us / 4, election_us, election_us * 2]),
            signs: operated && r.chance(500),
        }
    }

    /// How many votes the member at `slot` wants, if that is to be said.
    pub fn votes(&self, slot: usize) -> Option<u8> {
        self.votes.get(slot).copied()
    }

    /// What the member at `slot` wishes to be: role and priority.
    pub fn wish(&self, slot: usize) -> (MemberRole, u8) {
        self.wishes.get(slot).copied().unwrap_or((MemberRole::Voter, 50))
    }

    /// Votes of the first membership.
    pub fn govern(&self, config: &mut Config, ids: &[MemberId]) {
        for (id, votes) in ids.iter().zip(&self.votes) {
            if let Some(info) = config.members.get_mut(id) {
                info.votes = *votes;
            }
        }
    }
}

/// Members of a run, at most.
const SLOTS: usize = 9;

/// One for each slot; the first member is an ordinary one.
fn draw<T>(rng: &mut Rng, on: bool, first: T, one: impl Fn(&mut Rng) -> T) -> Vec<T> {
    match on {
        true => std::iter::once(first).chain((1..SLOTS).map(|_| one(rng))).collect(),
        false => Vec::new(),
    }
}
