//! The operator's side: one question to one member, and its answer.

use super::{Answer, Request, ANSWER_BYTES_MAX};
use crate::error::GroupError;
use crate::net::channel::Channel;
use crate::net::connections::Connections;
use crate::net::dial::{dial, write_frames, Caller, DialError};
use crate::net::trust::{OperatorIdentity, Trust};
use quorate_wire::{FrameReader, FrameType, PeerIdentity, ReadFailure, RefusalCode, Want};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a member may take to carry out an order; it gives up sooner by itself.
const ORDER_PATIENCE: Duration = Duration::from_secs(25);
/// A question that nothing is done for.
const LOOK_PATIENCE: Duration = Duration::from_secs(3);
/// The other side's host is gone without a word.
const SILENCE: Duration = Duration::from_secs(10);

/// From member to leader; leadership may move meanwhile.
const HOPS_MAX: usize = 4;

/// Somebody who asks, and how it is known.
pub struct Operating {
    trust: Arc<Trust>,
}

/// An answer, and who gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Name of the node.
    pub node: String,
    pub answer: Answer,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// Nothing was asked: nobody is there, or says what a member says.
    #[error("{0}")]
    NotReached(String),
    /// It has as many operators as it takes at a time. Nothing was asked.
    #[error("{0}")]
    Busy(String),
    /// It does not let this operator in, or is not to be believed itself. Nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// It was asked, and what became of that is not known.
    #[error("{0}")]
    Lost(String),
}

impl Unanswered {
    /// With what explains whose answer that would have been.
    fn of(self, whose: &str) -> Unanswered {
        let with = |text| format!("{whose}: {text}");
        match self {
            Unanswered::NotReached(text) => Unanswered::NotReached(with(text)),
            Unanswered::Busy(text) => Unanswered::Busy(with(text)),
            Unanswered::Forbidden(text) => Unanswered::Forbidden(with(text)),
            Unanswered::Lost(text) => Unanswered::Lost(with(text)),
        }
    }
}

impl Operating {
    pub fn new(identity: &OperatorIdentity) -> Result<Operating, GroupError> {
        Ok(Operating { trust: Arc::new(Trust::of_operator(identity)?) })
    }

    /// Asks the member at this group address. A member that hangs is waited for a few seconds; one that
    /// carries out an order, as long as that may take.
    pub fn ask(&self, addr: &str, request: &Request) -> Result<Asked, Unanswered> {
        let mut session = self.open(addr)?;
        let answer = session.ask(request)?;
        Ok(Asked { node: session.node, answer })
    }

    /// Has an order carried out by whoever does that: the member at this address, or the leader that it knows.
    /// Gives back the address of that one, and its answer.
    pub fn order(&self, addr: &str, request: &Request) -> Result<(String, Asked), Unanswered> {
        self.follow(addr.to_owned(), self.ask(addr, request)?, request)
    }

    /// Goes on from what the member at `addr` has answered.
    pub fn follow(
        &self,
        mut addr: String,
        mut asked: Asked,
        request: &Request,
    ) -> Result<(String, Asked), Unanswered> {
        for _ in 0..HOPS_MAX {
            let Answer::AskLeader { name, address } = asked.answer else {
                return Ok((addr, asked));
            };
            let of_leader = |error: Unanswered| error.of(&format!("{name} leads, at {address}"));
            asked = self.ask(&address, request).map_err(of_leader)?;
            addr = address;
        }
        let what = "leadership moves from member to member; nothing was done: see quorate status";
        Err(Unanswered::NotReached(what.to_owned()))
    }

    /// Connects to the member at this group address, to ask it one thing after the other.
    pub fn open(&self, addr: &str) -> Result<Session, Unanswered> {
        let connections = Connections::default();
        let caller = Caller {
            identity: PeerIdentity::default(),
            silence: SILENCE,
            connections: &connections,
            trust: self.trust.clone(),
        };
        let dialled = dial(caller, addr, Want::Operator, None).map_err(not_reached)?;
        Ok(Session { node: dialled.welcome.from.name, reader: dialled.reader })
    }
}

/// A connection to one member.
pub struct Session {
    node: String,
    reader: FrameReader<Channel>,
}

impl Session {
    /// As [`Operating::ask`]. After an error it is of no use any more.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, Unanswered> {
        exchange(&mut self.reader, request).map_err(|error| {
            let done = match request.is_order() {
                true => "; whether the order was carried out is not known: look at the status",
                false => "",
            };
            Unanswered::Lost(format!("{} did not answer: {error}{done}", self.node))
        })
    }
}

fn exchange(reader: &mut FrameReader<Channel>, request: &Request) -> Result<Answer, ReadFailure> {
    let patience = if request.is_order() { ORDER_PATIENCE } else { LOOK_PATIENCE };
    reader.stream().socket().set_read_timeout(Some(patience))?;
    reader.raise_limit(ANSWER_BYTES_MAX);
    let bytes = request.encode().map_err(io::Error::other)?;
    write_frames(reader.stream_mut(), FrameType::OperatorRequest, bytes.into())?;
    match reader.next_packet()? {
        (FrameType::OperatorAnswer, body) => Ok(Answer::decode(&body).map_err(io::Error::other)?),
        (other, _) => {
            let what = format!("it answers with a packet of type {other:?}");
            Err(io::Error::other(what).into())
        }
    }
}

fn not_reached(error: DialError) -> Unanswered {
    match error {
        DialError::Refused { refusal, .. } if refusal.code == RefusalCode::Forbidden => {
            Unanswered::Forbidden(refusal.text)
        }
        DialError::Refused { refusal, .. } if refusal.code == RefusalCode::Busy => {
            Unanswered::Busy(refusal.text)
        }
        DialError::Refused { refusal, .. } if refusal.code == RefusalCode::Security => {
            let what =
                "it wants to know who asks, and nothing was shown (--operator-file, or --ssl-cert)";
            Unanswered::Forbidden(what.to_owned())
        }
        DialError::Handshake(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Unanswered::Forbidden(error.to_string())
        }
        other => Unanswered::NotReached(other.to_string()),
    }
}
