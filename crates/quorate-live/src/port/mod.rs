//! What operators and members say to each other on the group port.
//!
//! ```text
//! operator ──▶ [proof or certificate, see net/trust]  Hello (as an operator)
//! member   ──▶ Welcome, or Refuse with the reason
//! operator ──▶ OperatorRequest, one JSON document {"version": 1, "body": Request}
//! member   ──▶ OperatorAnswer,  one JSON document {"version": 1, "body": Answer};  and so on
//! ```
//!
//! Invariants:
//! - a document is read only from who has shown to be an operator, and is at most [`REQUEST_BYTES_MAX`] long;
//! - a request with a word that this release does not know is refused, so nothing is done in part; of an
//!   answer such words are passed over, so later releases may say more.

mod answer;
mod client;
mod document;
mod history;
mod report;
mod request;

pub use answer::{Answer, Plan, Refused, Why};
pub use client::{Asked, Operating, Session, Unanswered};
pub use document::{Unreadable, ANSWER_BYTES_MAX, PORT_VERSION, REQUEST_BYTES_MAX};
pub use history::{Happening, OrderGiven};
pub use report::{Fault, LogReport, MemberReport, OwnReport, Report, RulesReport, StandingReport};
pub use request::{
    ConsistencyWord, FailoverWord, MemberChange, ModeWord, PriorityWord, Request, RoleWord,
    RulesChange,
};

pub(crate) use history::history;
pub(crate) use report::Seen;
