//! The receiver thread of one accepted connection: lets the machine say who is welcome, then hands it
//! the packets.

use super::operators;
use crate::live::Live;
use crate::net::channel::{Channel, NoChannel};
use crate::net::dial::{write_packet, GREETING_BYTES_MAX};
use crate::process;
use bytes::Bytes;
use quorate_consensus::{MemberId, Proposal};
use quorate_group::{Assembly, AtLength, Greeting, Input, LogLevel, Received};
use quorate_wire::{FrameReader, Hello, Packet, ReadFailure, Refusal, RefusalCode, Want, Welcome};
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest packet of somebody who is no member, nor leads: an answer or a heartbeat is much shorter.
const GUEST_BYTES_MAX: usize = 1 << 20;

/// How long a stranger may take to introduce itself, and a guest to ask.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// `number`: as which the connection is listed.
pub(crate) fn run(live: &Live, stream: TcpStream, number: u64) {
    let addr = stream.peer_addr().map_or_else(|_| "?".to_owned(), |addr| addr.to_string());
    let Err(failure) = serve(live, stream, number) else { return };
    if live.is_stopping() {
        return;
    }
    let who = format!("node {} closed a connection from {addr}", live.options.name);
    let Some(line) = live.hands.acceptor.complaint(&who, &failure.to_string()) else { return };
    // Asked last: strangers, however many, do not keep the machine busy.
    if !live.with_machine(|machine, _, _| machine.is_isolated()) {
        live.log(LogLevel::Warn, line);
    }
}

/// `Ok` when the connection ended as connections do.
fn serve(live: &Live, stream: TcpStream, number: u64) -> Result<(), ReadFailure> {
    let listed = live.hands.acceptor.connections.take_over(number);
    let addr = stream.peer_addr()?.ip();
    let allowed = &live.hands.acceptor.allowed;
    let error = match allowed.admits(addr, Instant::now(), || live.observer.admits(addr)) {
        Some(true) => None,
        Some(false) => Some(
            "the list of addresses that members may come from (wsrep_allowlist) does not have it",
        ),
        None => Some("the server does not say whether wsrep_allowlist has it: it does not answer"),
    };
    if let Some(error) = error {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, error).into());
    }
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    stream.set_write_timeout(Some(GREETING_TIMEOUT))?;
    let channel = match Channel::accept(stream, &live.trust()) {
        Ok(channel) => channel,
        Err(NoChannel::Failed(error)) => return Err(error.into()),
        Err(NoChannel::Mismatch(mut plain, why)) => {
            // A stranger hears what it has to speak, and not who is here.
            let refusal = Refusal { code: RefusalCode::Security, text: why.to_string() };
            write_packet(&mut plain, &Packet::Refuse(refusal))?;
            return Err(io::Error::other(why).into());
        }
    };
    let is_plain = channel.is_plain() && live.trust().tls.is_some();
    let mut reader = FrameReader::new(channel, GREETING_BYTES_MAX);
    let Some(Packet::Hello(mut hello)) = next(&mut reader, MemberId(0), live.id)? else {
        return Ok(());
    };
    // Who only looks whether somebody listens says nothing.
    if is_plain {
        live.warn_plain(&format!("a connection from {addr}"));
    }
    hello.from.key = reader.stream().peer();
    if hello.want == Want::Operator || reader.stream().operator().is_some() {
        return operators::serve(live, reader, &hello, &listed);
    }
    match greet(live, &hello) {
        Ok(Greeting { welcome, connection: Some(connection) }) => {
            listed.known();
            serve_peer(live, reader, welcome, hello.from.member, connection)
        }
        Ok(Greeting { welcome, connection: None }) => answer(live, reader, welcome, hello),
        Err(refusal) => {
            // Whoever asks around for the leader may be sent to itself.
            if !matches!(refusal.code, RefusalCode::Yourself | RefusalCode::Isolated) {
                let Hello { from, .. } = &hello;
                let who = format!("refused node {} at {}", from.name, from.addr);
                live.complain(&who, &refusal.text);
            }
            Ok(write_packet(reader.stream_mut(), &Packet::Refuse(refusal))?)
        }
    }
}

fn greet(live: &Live, hello: &Hello) -> Result<Greeting, Refusal> {
    let isolated = process::is_isolated();
    let greeting = live.with_machine(|machine, now_ms, out| {
        machine.step(now_ms, Input::ProcessIsolated(isolated), out);
        machine.greet(now_ms, hello, out)
    })?;
    match live.has_failed() && hello.want != Want::Status {
        // Just now: what the answer stands on could not be saved.
        true => {
            let text = format!("node {} is out of service", live.options.name);
            Err(Refusal { code: RefusalCode::Busy, text })
        }
        false => Ok(greeting),
    }
}

fn serve_peer(
    live: &Live,
    mut reader: FrameReader<Channel>,
    welcome: Welcome,
    from: MemberId,
    connection: u64,
) -> Result<(), ReadFailure> {
    let ended = receive(live, &mut reader, welcome, from, connection);
    live.step(Input::IncomingClosed { peer: from, connection });
    match ended {
        // The end of a peer's process, or a newer connection: the peer's sender tells.
        Err(ReadFailure::Closed | ReadFailure::Io(_)) => Ok(()),
        ended => ended,
    }
}

fn receive(
    live: &Live,
    reader: &mut FrameReader<Channel>,
    welcome: Welcome,
    from: MemberId,
    connection: u64,
) -> Result<(), ReadFailure> {
    let handle = reader.stream().socket().try_clone()?;
    let Some(peer) = live.core.peer(from) else { return Ok(()) };
    peer.incoming_opened(connection, handle);
    let ended = write_packet(reader.stream_mut(), &Packet::Welcome(welcome))
        .map_err(ReadFailure::from)
        .and_then(|()| Receiver::new(live, from, connection).run(reader));
    peer.incoming_closed(connection);
    ended
}

/// One question of a guest, one answer.
fn answer(
    live: &Live,
    mut reader: FrameReader<Channel>,
    welcome: Welcome,
    hello: Hello,
) -> Result<(), ReadFailure> {
    write_packet(reader.stream_mut(), &Packet::Welcome(welcome))?;
    let answer = match next(&mut reader, hello.from.member, live.id)? {
        Some(Packet::JoinRequest(request)) if hello.want == Want::Join => {
            let guest = hello.from;
            let admit = |machine: &mut quorate_group::Member, now_ms, out: &mut _| {
                machine.admit(now_ms, guest, &request, out)
            };
            Packet::Admission(live.with_machine(admit))
        }
        Some(Packet::StatusRequest) => {
            let figures = live.log_figures();
            let last_order = live.hands.notes.lock().orders().last().map(ToString::to_string);
            let mut lines = live.with_machine(|machine, now_ms, _| machine.report(now_ms, figures));
            lines.push(("last_order".to_owned(), last_order.unwrap_or_default()));
            Packet::StatusReport(lines)
        }
        _ => return Ok(()),
    };
    Ok(write_packet(reader.stream_mut(), &answer)?)
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
    live: &'a Live,
    from: MemberId,
    connection: u64,
    packets: Vec<Packet>,
    /// A snapshot is coming in from it.
    sends_snapshot: bool,
    /// A packet longer than a guest's is coming in, and may.
    sends_long: bool,
    /// When the machine last heard of something long that is coming.
    reported: Instant,
}

impl<'a> Receiver<'a> {
    fn new(live: &'a Live, from: MemberId, connection: u64) -> Self {
        Self {
            live,
            from,
            connection,
            packets: Vec::new(),
            sends_snapshot: false,
            sends_long: false,
            reported: Instant::now(),
        }
    }

    fn run(&mut self, reader: &mut FrameReader<Channel>) -> Result<(), ReadFailure> {
        reader.stream().socket().set_read_timeout(None)?;
        reader.raise_limit(GUEST_BYTES_MAX);
        loop {
            let gathered = self.gather(reader);
            self.deliver();
            gathered?;
        }
    }

    /// Waits for a packet for the machine, and takes those that came with it.
    fn gather(&mut self, reader: &mut FrameReader<Channel>) -> Result<(), ReadFailure> {
        while self.packets.is_empty() {
            while let Some((frame_type, body)) = reader.buffered_packet()? {
                let packet = Packet::decode(frame_type, body, self.from, self.live.id)?;
                if self.is_forged(&packet) {
                    self.live.step(Input::Forged(self.from));
                } else if !Assembly::takes(&packet) {
                    self.packets.push(packet);
                } else {
                    self.take_in(packet)?;
                }
            }
            if self.packets.is_empty() {
                reader.fill()?;
                self.came(reader.is_inside_packet());
                self.set_limit(reader);
            }
        }
        Ok(())
    }

    /// A packet becomes long: whether its sender may send such ones is looked at for each of them, before more
    /// than a guest's is kept.
    fn set_limit(&mut self, reader: &mut FrameReader<Channel>) {
        let is_long = reader.partial_bytes() > GUEST_BYTES_MAX / 2;
        if is_long == self.sends_long {
            return;
        }
        let alone = &self.live.hands.at_length;
        let may =
            |machine: &mut quorate_group::Member, _, _: &mut _| machine.hears_at_length(self.from);
        self.sends_long = is_long
            && match self.live.with_machine(may) {
                AtLength::Yes => true,
                AtLength::OneAtATime => alone.claim(self.connection),
                AtLength::No => false,
            };
        if !is_long {
            alone.release(self.connection);
        }
        reader.raise_limit(match self.sends_long {
            true => self.live.options.message_bytes_max(),
            false => GUEST_BYTES_MAX,
        });
    }

    /// Proposals in the name of another member, that nobody can read, or that are longer than any may be: none of them
    /// is taken. (What is a little too long would come in, and not go out again to those that have to acknowledge it.)
    fn is_forged(&self, packet: &Packet) -> bool {
        let Packet::Forward(batch) = packet else { return false };
        let longest = self.live.options.longest_proposal();
        !batch.iter().all(|Proposal { data, .. }| {
            data.len() <= longest && self.live.observer.may_propose(self.from, data)
        })
    }

    /// A piece of a snapshot.
    fn take_in(&mut self, packet: Packet) -> Result<(), ReadFailure> {
        let arriving = &self.live.hands.arriving;
        if self.is_unwanted(&packet) {
            arriving.end(self.connection);
        } else if let Some((received, content)) =
            arriving.take((self.connection, self.from), packet)?
        {
            self.snapshot_arrived(received, content);
        }
        self.sends_snapshot = arriving.is_on(self.connection);
        Ok(())
    }

    /// A snapshot that is not taken: what comes of it is not kept.
    fn is_unwanted(&self, packet: &Packet) -> bool {
        let Packet::SnapshotBegin(begin) = packet else { return false };
        let (leader, room) = ((self.from, begin.term), self.live.hands.snapshots.room());
        !self.live.with_machine(|machine, _, out| machine.awaits(leader, begin.bytes, room, out))
    }

    fn snapshot_arrived(&self, received: Received, content: Bytes) {
        if self.live.with_machine(|machine, _, out| machine.arrived(&received, out)) {
            if let Some(superseded) = self.live.hands.snapshots.store(received, content) {
                self.live.step(Input::SnapshotNotStored(superseded));
            }
        }
    }

    /// Bytes came. In the midst of something `long` that is a sign of life: what else there is to say
    /// may be stuck behind it.
    fn came(&mut self, long: bool) {
        let due = Duration::from_millis(4 * self.live.tick_ms);
        if (long || self.sends_snapshot) && self.reported.elapsed() >= due {
            self.reported = Instant::now();
            self.live.step(Input::Heard(self.from));
        }
    }

    /// All under one lock.
    fn deliver(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let (from, packets) = (self.from, &mut self.packets);
        let Live { core, feeding, .. } = self.live;
        let hear = |machine: &mut quorate_group::Member, now_ms, out: &mut _| {
            for packet in packets.drain(..) {
                machine.step(now_ms, Input::Packet { from, packet }, out);
            }
        };
        core.with_feeding(hear, || feeding.in_passing(core));
    }
}

impl Drop for Receiver<'_> {
    fn drop(&mut self) {
        let hands = &self.live.hands;
        hands.arriving.end(self.connection);
        hands.at_length.release(self.connection);
    }
}
