//! The receiver thread of one accepted connection: finds out who it is, then hands its packets on.

use super::channel::Channel;
use super::dial::{write_packet, GREETING_BYTES_MAX};
use super::peer::Peer;
use crate::admission;
use crate::machine::LogLevel;
use crate::member::Member;
use crate::snapshot::{Received, SNAPSHOT_BYTES_MAX};
use bytes::BytesMut;
use quorate_consensus::{Event, MemberId};
use quorate_wire::{
    FrameReader, Hello, LeaveAnswer, Packet, ReadFailure, Refusal, RefusalCode, SnapshotBegin,
    Want, Welcome, WireError,
};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// How long a stranger may take to introduce itself, and a guest to ask.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(member: &Member, stream: TcpStream) {
    let addr = stream.peer_addr().map_or_else(|_| "?".to_owned(), |addr| addr.to_string());
    if let Err(failure) = serve(member, stream) {
        if !member.is_stopping() && !member.survival.is_isolated() {
            let node = &member.options.name;
            let line = format!("node {node} closed a connection from {addr}: {failure}");
            member.acceptor.complain(member, line);
        }
    }
}

/// `Ok` when the connection ended as connections do.
fn serve(member: &Member, stream: TcpStream) -> Result<(), ReadFailure> {
    let listed = member.acceptor.connections.list(&stream, true)?;
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    stream.set_write_timeout(Some(GREETING_TIMEOUT))?;
    let channel = Channel::accept(stream, member.tls().as_deref())?;
    let mut reader = FrameReader::new(channel, GREETING_BYTES_MAX);
    let Some(Packet::Hello(hello)) = next(&mut reader, MemberId(0), member.id)? else {
        return Ok(());
    };
    let version = match check(member, &hello) {
        Ok(version) => version,
        Err(refusal) => {
            // Whoever asks around for the leader may be sent to itself.
            if !matches!(refusal.code, RefusalCode::Yourself | RefusalCode::Isolated) {
                let Hello { from, .. } = &hello;
                let line = format!("refused node {} at {}: {}", from.name, from.addr, refusal.text);
                member.acceptor.complain(member, line);
            }
            return Ok(write_packet(reader.stream_mut(), &Packet::Refuse(refusal))?);
        }
    };
    let welcome = Packet::Welcome(Welcome { version, from: member.identity() });
    match hello.want {
        Want::Peer => {
            listed.known();
            let handle = reader.stream().socket().try_clone()?;
            let from = hello.from.member;
            let peer = member.with_core(|driver| member.peer(driver, from));
            let connection = match peer.incoming_opened(handle, hello.from) {
                Ok(connection) => connection,
                Err(other) => {
                    let text = format!(
                        "member {from} is connected from {other} already: two nodes must not run \
                         with copies of one log directory; empty that of one of them"
                    );
                    member.log(LogLevel::Error, text.clone());
                    let refusal = Refusal { code: RefusalCode::Stale, text };
                    return Ok(write_packet(reader.stream_mut(), &Packet::Refuse(refusal))?);
                }
            };
            member.notices.wake();
            let ended = write_packet(reader.stream_mut(), &welcome)
                .map_err(ReadFailure::from)
                .and_then(|()| Receiver::new(member, &peer).run(&mut reader));
            if peer.incoming_closed(connection) {
                member.notices.wake();
            }
            match ended {
                // The end of a peer's process, or a newer connection: the peer's sender tells.
                Err(ReadFailure::Closed | ReadFailure::Io(_)) => Ok(()),
                ended => ended,
            }
        }
        Want::Join | Want::Status => {
            write_packet(reader.stream_mut(), &welcome)?;
            let answer = match next(&mut reader, hello.from.member, member.id)? {
                Some(Packet::JoinRequest(request)) if hello.want == Want::Join => {
                    Packet::Admission(admission::admit(member, hello.from, &request))
                }
                Some(Packet::StatusRequest) => Packet::StatusReport(member.report()),
                _ => return Ok(()),
            };
            Ok(write_packet(reader.stream_mut(), &answer)?)
        }
    }
}

/// Whether this connection is welcome, and the protocol version on it.
fn check(member: &Member, hello: &Hello) -> Result<u16, Refusal> {
    let refuse = |code, text: String| Err(Refusal { code, text });
    let version = hello.agree()?;
    if hello.want == Want::Status {
        return Ok(version);
    }
    let (own, from) = (member.identity(), &hello.from);
    if from.member == own.member {
        return refuse(RefusalCode::Yourself, "this is the dialling member itself".into());
    }
    if member.is_stopping() || member.has_failed() {
        return refuse(RefusalCode::Busy, format!("node {} is out of service", own.name));
    }
    if member.survival.is_isolated() {
        member.forswear();
        let text = format!("node {} is isolated by its operator", own.name);
        return refuse(RefusalCode::Isolated, text);
    }
    if from.group_name != own.group_name {
        let text = format!(
            "node {} is of group '{}', not of '{}'",
            own.name, own.group_name, from.group_name
        );
        return refuse(RefusalCode::OtherGroup, text);
    }
    if from.group != own.group && from.group != 0 && own.group != 0 {
        let text = format!(
            "node {} belongs to group {:032x}, not to {:032x}, though both are named '{}'; a node \
             that is to change groups needs an empty log directory",
            own.name, own.group, from.group, own.group_name
        );
        return refuse(RefusalCode::OtherGroup, text);
    }
    member.lineage.check(from)?;
    if hello.expects.is_some_and(|expected| expected != own.member) {
        let text = format!("here is member {} ({}), not the one expected", own.member, own.name);
        return refuse(RefusalCode::OtherMember, text);
    }
    if hello.want == Want::Peer && own.group == 0 {
        // Only a leader that has admitted this member knows its id.
        if hello.expects.is_none() || from.group == 0 {
            let text = format!("node {} belongs to no group yet", own.name);
            return refuse(RefusalCode::Busy, text);
        }
        if let Err(error) = member.adopt_group(from) {
            member.with_core(|driver| member.log_failed(driver, &error));
            return refuse(RefusalCode::Busy, error.to_string());
        }
    }
    Ok(version)
}

/// `None` at the end of the stream.
fn next(
    reader: &mut FrameReader<Channel>,
    from: MemberId,
    to: MemberId,
) -> Result<Option<Packet>, ReadFailure> {
    match reader.next_packet() {
        Ok((frame_type, body)) => Ok(Some(Packet::decode(frame_type, body, from, to)?)),
        Err(ReadFailure::Closed) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A peer's packets, until its connection ends.
struct Receiver<'a> {
    member: &'a Member,
    peer: &'a Arc<Peer>,
    packets: Vec<Packet>,
    snapshot: Option<(SnapshotBegin, BytesMut)>,
    /// When the core last heard of something long that is coming, as [`Peer::heard`] counts.
    told_ms: u64,
}

impl<'a> Receiver<'a> {
    fn new(member: &'a Member, peer: &'a Arc<Peer>) -> Self {
        Self { member, peer, packets: Vec::new(), snapshot: None, told_ms: 0 }
    }

    fn run(&mut self, reader: &mut FrameReader<Channel>) -> Result<(), ReadFailure> {
        reader.stream().socket().set_read_timeout(None)?;
        reader.raise_limit(self.member.options.message_bytes_max());
        loop {
            let gathered = self.gather(reader);
            self.deliver()?;
            gathered?;
        }
    }

    /// Waits for a packet, and takes those that came with it.
    fn gather(&mut self, reader: &mut FrameReader<Channel>) -> Result<(), ReadFailure> {
        let (from, to) = (self.peer.id, self.member.id);
        while self.packets.is_empty() {
            while let Some((frame_type, body)) = reader.buffered_packet()? {
                self.packets.push(Packet::decode(frame_type, body, from, to)?);
            }
            if self.packets.is_empty() {
                reader.fill()?;
                self.came(reader.is_inside_packet());
            }
        }
        Ok(())
    }

    /// Bytes came. In the midst of something `long` that is a sign of life for the core, too: what
    /// else there is to say may be stuck behind it.
    fn came(&mut self, long: bool) {
        let now_ms = self.peer.heard();
        let due = self.member.options.heartbeat_interval().as_millis() as u64;
        if (long || self.snapshot.is_some()) && now_ms - self.told_ms >= due {
            self.told_ms = now_ms;
            let event = Event::Heard(self.peer.id);
            self.member.with_core(|driver| driver.ignore_refusal(self.member, event));
        }
    }

    fn deliver(&mut self) -> Result<(), WireError> {
        let packets = std::mem::take(&mut self.packets);
        let mut locked = None;
        let mut packets = packets.into_iter();
        for packet in packets.by_ref() {
            let driver = locked.get_or_insert_with(|| self.member.core.lock());
            match packet {
                Packet::Consensus(message) => {
                    driver.ignore_refusal(self.member, Event::Receive(message));
                }
                Packet::Forward(batch) => {
                    driver.writes.note(self.peer.id, batch.len(), self.member.now_ms());
                    driver.propose_for_others(self.member, batch);
                }
                other => {
                    if let Some(driver) = locked.take() {
                        self.member.finish(driver);
                    }
                    self.control(other)?;
                }
            }
        }
        if let Some(driver) = locked {
            self.member.finish(driver);
        }
        Ok(())
    }

    fn control(&mut self, packet: Packet) -> Result<(), WireError> {
        let member = self.member;
        match packet {
            Packet::LeaveRequest => member.desk.ask_removal(member, self.peer.id),
            Packet::LeaveAnswer(LeaveAnswer::Done) => member.membership.set_left(),
            Packet::LeaveAnswer(LeaveAnswer::Later { reason }) => {
                member.membership.set_reason(reason);
            }
            Packet::Ping => {}
            Packet::ViewRefresh { number } => member.desk.ask_view(member, number),
            Packet::Ballots { ballots } => {
                member.ballots.asked(self.peer.id, ballots);
                member.notices.wake();
            }
            Packet::SnapshotBegin(begin) => {
                if begin.bytes > SNAPSHOT_BYTES_MAX {
                    let value = begin.bytes;
                    return Err(WireError::BadValue { what: "the length of a snapshot", value });
                }
                self.snapshot = Some((begin, BytesMut::new()));
            }
            Packet::SnapshotData(data) => {
                let Some((begin, content)) = &mut self.snapshot else { return Ok(()) };
                if (content.len() + data.len()) as u64 > begin.bytes {
                    let value = (content.len() + data.len()) as u64;
                    return Err(WireError::BadValue { what: "the size of a snapshot", value });
                }
                content.extend_from_slice(&data);
            }
            Packet::SnapshotEnd { crc } => self.end_snapshot(crc)?,
            other => {
                let value = (other.frame_type() as u8).into();
                return Err(WireError::BadValue { what: "a packet between members", value });
            }
        }
        Ok(())
    }

    fn end_snapshot(&mut self, crc: u32) -> Result<(), WireError> {
        let Some((begin, content)) = self.snapshot.take() else { return Ok(()) };
        if content.len() as u64 != begin.bytes {
            let missing = (begin.bytes - content.len() as u64) as usize;
            return Err(WireError::Truncated { what: "snapshot", missing });
        }
        let found = crc32c::crc32c(&content);
        if found != crc {
            return Err(WireError::Checksum { expected: crc, found });
        }
        let SnapshotBegin { term, meta, .. } = begin;
        let index = meta.last.index;
        self.member.log(LogLevel::Debug, format!("snapshot of index {index} has arrived"));
        let content = content.freeze();
        self.member.snapshots.install(Received { from: self.peer.id, term, meta, content });
        Ok(())
    }
}
