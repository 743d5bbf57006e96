//! Who has a vote, and whom the group cannot lose.
//!
//! A decision needs more than half of all votes, whoever is there. A vote counts if its member is there for the group:
//! whether this command reaches it is another question.

use super::here::{DOWN, STOPPED};
use super::survey::{NodeSurvey, Survey};
use quorate_live::port::MemberReport;

pub struct Voter<'a> {
    pub member: &'a MemberReport,
    /// The group can count on its vote.
    pub is_there: bool,
    /// It answers this command.
    pub answers: bool,
}

impl<'a> Voter<'a> {
    /// None: it has no vote.
    fn of(node: &'a NodeSurvey) -> Option<Voter<'a>> {
        let member = node.member.as_ref()?;
        let has_vote = member.role != "learner" && !member.joining && member.votes > 0;
        let is_there = match &node.own {
            Some(own) => own.primary && !own.failed,
            // Others may not have noticed yet that its process, on this machine, is gone.
            None => member.connected && ![DOWN, STOPPED].contains(&&*node.state),
        };
        has_vote.then_some(Voter { member, is_there, answers: node.own.is_some() })
    }
}

/// All that have a vote, whether they are there or not.
pub struct Voters<'a>(pub Vec<Voter<'a>>);

impl<'a> Voters<'a> {
    pub fn of(survey: &'a Survey) -> Voters<'a> {
        Voters(survey.nodes.iter().filter_map(Voter::of).collect())
    }

    pub fn votes(&self, of: impl Fn(&Voter) -> bool) -> u32 {
        self.0.iter().filter(|voter| of(voter)).map(|voter| u32::from(voter.member.votes)).sum()
    }

    pub fn majority(&self) -> u32 {
        self.votes(|_| true) / 2 + 1
    }

    /// Whether those that are there go on without these.
    pub fn go_on_without(&self, is_lost: impl Fn(&Voter) -> bool) -> bool {
        self.votes(|voter| voter.is_there && !is_lost(voter)) >= self.majority()
    }

    pub fn names(&self, of: impl Fn(&Voter) -> bool) -> Vec<&'a str> {
        self.0.iter().filter(|voter| of(voter)).map(|voter| &*voter.member.name).collect()
    }

    /// Each of them stops the writes when it is lost. Where there is no majority, none does.
    pub fn vital(&self) -> Vec<&'a str> {
        let go_on = self.go_on_without(|_| false);
        self.names(|voter| {
            let is_same = |lost: &Voter| lost.member.id == voter.member.id;
            go_on && voter.is_there && !self.go_on_without(is_same)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::port::OwnReport;

    /// One of three, of which the others are well.
    fn is_there(change: impl Fn(&mut NodeSurvey)) -> bool {
        let node = |id: &str| NodeSurvey {
            member: Some(MemberReport {
                id: id.into(),
                name: id.into(),
                role: "voter".into(),
                votes: 1,
                connected: true,
                ..MemberReport::default()
            }),
            own: Some(OwnReport { primary: true, ..OwnReport::default() }),
            ..NodeSurvey::default()
        };
        let mut survey = Survey::unknown("shop");
        survey.nodes = ["a", "b", "c"].map(node).into();
        change(&mut survey.nodes[2]);
        let voters = Voters::of(&survey);
        assert_eq!((voters.0.len(), voters.majority()), (3, 2));
        let is_there = voters.0[2].is_there;
        assert_eq!(voters.vital().is_empty(), is_there, "of three, one can be spared");
        is_there
    }

    #[test]
    fn a_vote_counts_if_its_member_is_there_for_the_group() {
        assert!(is_there(|_| {}));
        assert!(
            is_there(|node| node.own = None),
            "it is this command alone that does not reach it"
        );
        let own = |node: &mut NodeSurvey| node.own.take().unwrap_or_default();
        assert!(!is_there(|node| node.own = Some(OwnReport { primary: false, ..own(node) })));
        assert!(!is_there(|node| node.own = Some(OwnReport { failed: true, ..own(node) })));
        assert!(!is_there(|node| {
            node.own = None;
            node.member.as_mut().unwrap().connected = false;
        }));
        assert!(!is_there(|node| (node.own, node.state) = (None, DOWN.into())));
    }

    #[test]
    fn where_there_is_no_majority_nobody_can_be_lost_any_more() {
        let survey = Survey::unknown("shop");
        assert_eq!(Voters::of(&survey).vital(), Vec::<&str>::new());
    }
}
