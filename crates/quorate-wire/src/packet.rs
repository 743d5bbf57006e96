//! Everything that is said on a connection.

use crate::body::{Body, BodyReader, BodyWriter};
use crate::consensus;
use crate::control::{Admission, JoinRequest, LeaveAnswer, SnapshotBegin};
use crate::error::WireError;
use crate::frame::FrameType;
use crate::handshake::{Hello, Refusal, Welcome};
use crate::standing::Standing;
use bytes::Bytes;
use quorate_consensus::{EntryKind, MemberId, Message, MessageBody, Proposal};

/// Proposals in one packet. Each takes more room in memory and in the log than on the wire, if it is short.
const FORWARDED_MAX: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    Hello(Hello),
    Welcome(Welcome),
    Refuse(Refusal),
    Consensus(Message),
    /// Proposals for the leader, in order.
    Forward(Vec<Proposal>),
    JoinRequest(JoinRequest),
    Admission(Admission),
    /// The sender wants to be removed from the group.
    LeaveRequest,
    LeaveAnswer(LeaveAnswer),
    /// The sender was cut off, has seen view `number` last, and wants a fresh one.
    ViewRefresh {
        number: u64,
    },
    /// The sender wants to have so many votes.
    WantVotes {
        votes: u8,
    },
    SnapshotBegin(SnapshotBegin),
    SnapshotData(Bytes),
    /// crc32c of the whole snapshot.
    SnapshotEnd {
        crc: u32,
    },
    /// Nothing to say. On a connection that carries little else it finds out whether the other
    /// end still has it: a partition can end it there unnoticed here.
    Ping,
    StatusRequest,
    /// Names and values, in the order to show them.
    StatusReport(Vec<(String, String)>),
    /// For the leader, from level `OPERATORS` on: what came of an order that the sender took.
    Note(Proposal),
    /// From level `STANDINGS` on, in place of a ping: how the sender's server stands.
    Standing(Standing),
}

impl Packet {
    pub fn frame_type(&self) -> FrameType {
        match self {
            Packet::Hello(_) => FrameType::Hello,
            Packet::Welcome(_) => FrameType::Welcome,
            Packet::Refuse(_) => FrameType::Refuse,
            Packet::Consensus(_) => FrameType::Consensus,
            Packet::Forward(_) => FrameType::Forward,
            Packet::JoinRequest(_) => FrameType::JoinRequest,
            Packet::Admission(_) => FrameType::Admission,
            Packet::LeaveRequest => FrameType::LeaveRequest,
            Packet::LeaveAnswer(_) => FrameType::LeaveAnswer,
            Packet::ViewRefresh { .. } => FrameType::ViewRefresh,
            Packet::WantVotes { .. } => FrameType::WantVotes,
            Packet::SnapshotBegin(_) => FrameType::SnapshotBegin,
            Packet::SnapshotData(_) => FrameType::SnapshotData,
            Packet::SnapshotEnd { .. } => FrameType::SnapshotEnd,
            Packet::Ping => FrameType::Ping,
            Packet::StatusRequest => FrameType::StatusRequest,
            Packet::StatusReport(_) => FrameType::StatusReport,
            Packet::Note(_) => FrameType::Note,
            Packet::Standing(_) => FrameType::Standing,
        }
    }

    /// Small and awaited by somebody's timer or commit: goes before bulk data. The consensus
    /// tolerates any order of messages; an Append without entries asks what became of those that
    /// were sent, so it stays behind them.
    pub fn is_urgent(&self) -> bool {
        match self {
            Packet::Consensus(message) => !matches!(message.body, MessageBody::Append { .. }),
            Packet::Forward(_)
            | Packet::SnapshotBegin(_)
            | Packet::SnapshotData(_)
            | Packet::SnapshotEnd { .. } => false,
            _ => true,
        }
    }

    /// Roughly what the packet holds in memory and on the wire.
    pub fn size_hint(&self) -> usize {
        const FIXED: usize = 64;
        FIXED
            + match self {
                Packet::Consensus(message) => match &message.body {
                    MessageBody::Append { entries, .. } => {
                        entries.iter().map(|entry| entry.data.len() + 28).sum()
                    }
                    _ => 0,
                },
                Packet::Forward(batch) => {
                    batch.iter().map(|proposal| proposal.data.len() + 8).sum()
                }
                Packet::SnapshotData(data) => data.len(),
                _ => 0,
            }
    }

    pub fn encode(&self) -> Body {
        let mut out = BodyWriter::default();
        match self {
            Packet::Hello(hello) => hello.encode(&mut out),
            Packet::Welcome(welcome) => welcome.encode(&mut out),
            Packet::Refuse(refusal) => refusal.encode(&mut out),
            Packet::Consensus(message) => consensus::encode(message, &mut out),
            Packet::Forward(batch) => {
                out.u32(batch.len() as u32);
                for proposal in batch {
                    debug_assert_eq!(proposal.kind, EntryKind::Data);
                    write_proposal(proposal, &mut out);
                }
            }
            Packet::JoinRequest(request) => request.encode(&mut out),
            Packet::Admission(admission) => admission.encode(&mut out),
            Packet::LeaveRequest | Packet::Ping | Packet::StatusRequest => {}
            Packet::LeaveAnswer(answer) => answer.encode(&mut out),
            Packet::ViewRefresh { number } => out.u64(*number),
            Packet::WantVotes { votes } => out.u8(*votes),
            Packet::SnapshotBegin(begin) => begin.encode(&mut out),
            Packet::SnapshotData(data) => out.rest(data),
            Packet::SnapshotEnd { crc } => out.u32(*crc),
            Packet::Note(note) => {
                debug_assert_eq!(note.kind, EntryKind::Note);
                write_proposal(note, &mut out);
            }
            Packet::Standing(standing) => standing.encode(&mut out),
            Packet::StatusReport(lines) => {
                out.u32(lines.len() as u32);
                for (name, value) in lines {
                    out.text(name);
                    out.text(value);
                }
            }
        }
        out.finish()
    }

    /// `from` and `to` are the two ends of the connection, as the handshake settled them.
    pub fn decode(
        frame_type: FrameType,
        bytes: Bytes,
        from: MemberId,
        to: MemberId,
    ) -> Result<Packet, WireError> {
        let mut body = BodyReader::new(bytes, name(frame_type));
        let packet = match frame_type {
            FrameType::Hello => Packet::Hello(Hello::decode(&mut body)?),
            FrameType::Welcome => Packet::Welcome(Welcome::decode(&mut body)?),
            FrameType::Refuse => Packet::Refuse(Refusal::decode(&mut body)?),
            FrameType::Consensus => {
                let (term, body) = consensus::decode(&mut body)?;
                Packet::Consensus(Message { from, to, term, body })
            }
            FrameType::Forward => {
                let count = body.count(8)?;
                if count > FORWARDED_MAX {
                    let value = count as u64;
                    return Err(WireError::BadValue { what: "the number of proposals", value });
                }
                let proposals = (0..count).map(|_| read_proposal(EntryKind::Data, &mut body));
                Packet::Forward(proposals.collect::<Result<_, _>>()?)
            }
            FrameType::JoinRequest => Packet::JoinRequest(JoinRequest::decode(&mut body)?),
            FrameType::Admission => Packet::Admission(Admission::decode(&mut body)?),
            FrameType::LeaveRequest => Packet::LeaveRequest,
            FrameType::LeaveAnswer => Packet::LeaveAnswer(LeaveAnswer::decode(&mut body)?),
            FrameType::ViewRefresh => Packet::ViewRefresh { number: body.u64()? },
            FrameType::WantVotes => Packet::WantVotes { votes: body.u8()? },
            FrameType::SnapshotBegin => Packet::SnapshotBegin(SnapshotBegin::decode(&mut body)?),
            FrameType::SnapshotData => Packet::SnapshotData(body.rest()),
            FrameType::SnapshotEnd => Packet::SnapshotEnd { crc: body.u32()? },
            FrameType::Ping => Packet::Ping,
            FrameType::Note => Packet::Note(read_proposal(EntryKind::Note, &mut body)?),
            FrameType::Standing => Packet::Standing(Standing::decode(&mut body)?),
            FrameType::StatusRequest => Packet::StatusRequest,
            FrameType::StatusReport => {
                let count = body.count(4)?;
                let line = |_| Ok::<_, WireError>((body.text()?, body.text()?));
                Packet::StatusReport((0..count).map(line).collect::<Result<_, _>>()?)
            }
            FrameType::OperatorRequest | FrameType::OperatorAnswer => {
                let value = (frame_type as u8).into();
                return Err(WireError::BadValue { what: "the type of a member's packet", value });
            }
        };
        body.end()?;
        Ok(packet)
    }
}

fn write_proposal(proposal: &Proposal, out: &mut BodyWriter) {
    out.u32(proposal.sum);
    out.data(&proposal.data);
}

fn read_proposal(kind: EntryKind, body: &mut BodyReader) -> Result<Proposal, WireError> {
    let (sum, data) = (body.u32()?, body.data()?);
    let proposal = Proposal { kind, data, sum };
    match proposal.is_intact() {
        true => Ok(proposal),
        false => Err(WireError::ProposalAltered),
    }
}

fn name(frame_type: FrameType) -> &'static str {
    match frame_type {
        FrameType::Hello => "hello",
        FrameType::Welcome => "welcome",
        FrameType::Refuse => "refusal",
        FrameType::Consensus => "consensus message",
        FrameType::Forward => "forwarded proposals",
        FrameType::JoinRequest => "join request",
        FrameType::Admission => "admission",
        FrameType::LeaveRequest => "leave request",
        FrameType::LeaveAnswer => "leave answer",
        FrameType::ViewRefresh => "view request",
        FrameType::WantVotes => "request for votes",
        FrameType::SnapshotBegin => "snapshot start",
        FrameType::SnapshotData => "snapshot data",
        FrameType::SnapshotEnd => "snapshot end",
        FrameType::Ping => "ping",
        FrameType::Note => "note of an order",
        FrameType::Standing => "standing",
        FrameType::StatusRequest => "status request",
        FrameType::StatusReport => "status report",
        FrameType::OperatorRequest => "operator's request",
        FrameType::OperatorAnswer => "answer to an operator",
    }
}
