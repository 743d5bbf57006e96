//! What an operator is answered.

use super::document::{decode, encode, Unreadable};
use super::history::Happening;
use super::report::Report;
use quorate_consensus::Index;
use quorate_group::ForcePlan;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Status(Box<Report>),
    /// The oldest first.
    History(Vec<Happening>),
    /// The order was carried out.
    Done,
    /// Leadership went to the member of this name.
    Leads {
        name: String,
    },
    /// What is, or would be, done by force.
    Plan(Plan),
    /// The leader carries it out, which is this one; nothing was done.
    AskLeader {
        name: String,
        address: String,
    },
    Refused(Refused),
}

/// What would be done by force, and what may be lost by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the members kept, and of those given up: their logs never come back.
    pub kept: Vec<String>,
    pub lost: Vec<String>,
    /// The end of this member's log: everything up to it is kept.
    pub last_index: Index,
    pub last_term: u64,
    /// What this member knows to be committed.
    pub commit_index: Index,
    /// Why it cannot be done, if so.
    pub refusal: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub why: Why,
    /// In words: what happened, and what to do.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// This operator may not do that here.
    Permission,
    /// The request was not understood.
    Request,
    /// Nobody leads who could do it.
    NoLeader,
    /// The group does not do it, or not in time; the reason says whether anything was changed.
    Order,
    /// This member is closing, or out of service.
    Unavailable,
    /// What a later release says.
    #[serde(other)]
    Other,
}

impl Answer {
    pub fn refused(why: Why, reason: impl Into<String>) -> Answer {
        Answer::Refused(Refused { why, reason: reason.into() })
    }

    pub fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        encode(self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Answer, Unreadable> {
        decode(bytes)
    }
}

impl From<ForcePlan> for Plan {
    fn from(plan: ForcePlan) -> Plan {
        Plan {
            kept: plan.kept,
            lost: plan.lost,
            last_index: plan.last.index,
            last_term: plan.last.term,
            commit_index: plan.commit,
            refusal: plan.refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_an_older_release_is_read() {
        let older = br#"{"version":1,"body":{"status":{"own":{"server":{"seqno":7,"queued":1}}}}}"#;
        let Ok(Answer::Status(report)) = Answer::decode(older) else { panic!("it is not read") };
        let server = report.own.server.unwrap();
        assert_eq!((server.seqno, server.queued, server.commits), (7, 1, None));
    }

    #[test]
    fn an_answer_survives_and_more_words_of_a_later_release_are_passed_over() {
        let answers = [
            Answer::Status(Box::default()),
            Answer::History(vec![Happening { index: 7, ..Happening::default() }]),
            Answer::Leads { name: "n1".into() },
            Answer::Plan(Plan { refusal: Some("no".into()), ..Plan::default() }),
            Answer::AskLeader { name: "n1".into(), address: "a:1".into() },
            Answer::refused(Why::Permission, "read only"),
        ];
        for answer in answers {
            assert_eq!(Answer::decode(&answer.encode().unwrap()), Ok(answer));
        }
        let later =
            br#"{"version":1,"more":1,"body":{"refused":{"why":"mood","reason":"r","x":1}}}"#;
        assert_eq!(Answer::decode(later), Ok(Answer::refused(Why::Other, "r")));
    }
}
