//! A connection of an operator, on its receiver thread: requests, and their answers. It never becomes a
//! peer's: nothing that comes on it is handed to the machine but orders, as the handle of the group gives them.
//!
//! Invariant: what an operator may do is asked anew for each request, so a right that is taken is gone at once.

use crate::error::GroupError;
use crate::live::Live;
use crate::net::channel::Channel;
use crate::net::connections::Listed;
use crate::net::dial::{write_frames, write_packet};
use crate::net::trust::{OperatorId, Privilege};
use crate::port::{
    history, Answer, Fault, Report, Request, Seen, Unreadable, Why, REQUEST_BYTES_MAX,
};
use bytes::Bytes;
use quorate_group::{Author, Done, Order, OrderError};
use quorate_wire::{
    FrameReader, FrameType, Hello, Packet, PeerIdentity, ReadFailure, Refusal, RefusalCode, Want,
    Welcome, WireError,
};
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// A connection that says nothing for so long ends, and one that is so old or has asked so much.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const LIFE_MAX: Duration = Duration::from_secs(15 * 60);
const REQUESTS_MAX: usize = 10_000;
/// As for orders by SQL; the group gives up sooner by itself.
const ORDER_TIMEOUT: Duration = Duration::from_secs(20);

/// `Ok` when the connection ended as connections do.
pub(super) fn serve(
    live: &Live,
    mut reader: FrameReader<Channel>,
    hello: &Hello,
    listed: &Listed<'_>,
) -> Result<(), ReadFailure> {
    let from = reader.stream().socket().peer_addr()?.ip().to_canonical().to_string();
    let shown = match welcome(live, reader.stream(), hello, listed) {
        Ok((version, shown)) => {
            let welcome = Welcome { version, from: identity(live) };
            write_packet(reader.stream_mut(), &Packet::Welcome(welcome))?;
            shown
        }
        Err(refusal) => {
            live.complain(&format!("refused an operator from {from}"), &refusal.text);
            return Ok(write_packet(reader.stream_mut(), &Packet::Refuse(refusal))?);
        }
    };
    let connection = Served { live, listed, shown, from };
    match connection.run(&mut reader) {
        // As operators' connections end: by themselves, or for their silence.
        Err(ReadFailure::Closed | ReadFailure::Io(_)) => Ok(()),
        ended => ended,
    }
}

/// The version to speak, and who it is that is let in.
fn welcome(
    live: &Live,
    channel: &Channel,
    hello: &Hello,
    listed: &Listed<'_>,
) -> Result<(u16, OperatorId), Refusal> {
    let node = &live.options.name;
    let forbidden = |text: String| Refusal { code: RefusalCode::Forbidden, text };
    let version = hello.agree()?;
    if hello.want != Want::Operator {
        let text = format!("node {node}: an operator is heard by nobody as a member");
        return Err(forbidden(text));
    }
    let shown = match channel.operator() {
        Some(shown) => shown.clone(),
        None if channel.is_plain() && live.trust().tls.is_none() => OperatorId::anonymous(),
        None => {
            let text = format!(
                "node {node} wants an operator's credential ('quorate operator new'), or a certificate \
                 for a name that its quorate.operators lists: what members have is none"
            );
            return Err(forbidden(text));
        }
    };
    if live.admit(&shown).is_none() {
        return Err(forbidden(not_admitted(live, &shown)));
    }
    match listed.known_operator(&shown.name) {
        true => Ok((version, shown)),
        false => {
            let text = format!("node {node}: too many operators are connected, try again");
            Err(Refusal { code: RefusalCode::Busy, text })
        }
    }
}

fn not_admitted(live: &Live, shown: &OperatorId) -> String {
    format!(
        "node {} does not let operator {} in: its option quorate.operators does not list it",
        live.options.name, shown.name
    )
}

fn identity(live: &Live) -> PeerIdentity {
    live.with_machine(|machine, _, _| machine.identity())
}

struct Served<'a> {
    live: &'a Live,
    listed: &'a Listed<'a>,
    /// As the connection has shown.
    shown: OperatorId,
    from: String,
}

impl Served<'_> {
    fn run(&self, reader: &mut FrameReader<Channel>) -> Result<(), ReadFailure> {
        reader.raise_limit(REQUEST_BYTES_MAX);
        let end = Instant::now() + LIFE_MAX;
        for _ in 0..REQUESTS_MAX {
            let left = end.saturating_duration_since(Instant::now()).min(SILENCE_MAX);
            if left.is_zero() {
                break;
            }
            let body = match whole_packet(reader, Instant::now() + left)? {
                (FrameType::OperatorRequest, body) => body,
                (other, _) => {
                    let (what, value) = ("an operator's packet", (other as u8).into());
                    return Err(WireError::BadValue { what, value }.into());
                }
            };
            if !self.live.pause(self.listed.pause()) {
                break;
            }
            let answer = match Request::decode(&body) {
                Ok(request) => self.answer(request),
                Err(error) => Answer::refused(Why::Request, self.unreadable(&error)),
            };
            let bytes = answer.encode().map_err(io::Error::other)?;
            write_frames(reader.stream_mut(), FrameType::OperatorAnswer, bytes.into())?;
        }
        Ok(())
    }

    fn unreadable(&self, error: &Unreadable) -> String {
        format!("node {} does not understand the request: {error}", self.live.options.name)
    }

    fn answer(&self, request: Request) -> Answer {
        let node = &self.live.options.name;
        let Some(operator) = self.live.admit(&self.shown) else {
            let reason = not_admitted(self.live, &self.shown);
            self.live.complain(&format!("refused a request from {}", self.from), &reason);
            return Answer::refused(Why::Permission, reason);
        };
        if operator.privilege < request.needs() {
            let (name, may) = (&operator.name, Privilege::Read.word());
            let reason = format!(
                "operator {name} may only look at node {node} ({may}), not give orders; nothing was done"
            );
            self.live.complain(&format!("refused an order from {}", self.from), &reason);
            return Answer::refused(Why::Permission, reason);
        }
        if request.is_leaders() {
            if let Some(leader) = self.live.status().leads_elsewhere() {
                let (name, address) = (leader.name.clone(), leader.addr.clone());
                return Answer::AskLeader { name, address };
            }
        }
        self.carry_out(request, &operator)
    }

    fn carry_out(&self, request: Request, operator: &OperatorId) -> Answer {
        let order = match request {
            Request::Status => return Answer::Status(Box::new(report(self.live, operator))),
            Request::History => {
                let notes = self.live.hands.notes.lock().clone();
                return Answer::History(history(&notes));
            }
            Request::ForcePlan { keep } => {
                let plan = self.live.with_machine(|machine, _, _| machine.plan_force(&keep));
                return Answer::Plan(plan.into());
            }
            Request::Switchover { to } => Order::Switchover { to },
            Request::MemberSet(change) => {
                Order::Alter { alteration: change.alteration(), name: change.name }
            }
            Request::MemberRemove { name } => Order::Remove { name },
            Request::Rules(change) => {
                Order::SetRules(change.applied_to(self.live.status().config.rules))
            }
            Request::ForceQuorum { keep, reason } => Order::ForceQuorum { keep, reason },
            Request::Isolate { isolated } => Order::Isolate(isolated),
            Request::Reinit => return self.reinit(operator),
        };
        let author = Author { name: operator.name.clone(), from: self.from.clone() };
        match self.live.order_by(author, order, ORDER_TIMEOUT) {
            Ok(Done::Leader(name)) => Answer::Leads { name },
            Ok(Done::Forced(plan)) => Answer::Plan(plan.into()),
            Ok(Done::Nothing | Done::ReadPoint(_)) => Answer::Done,
            Err(error) => refused(&error),
        }
    }
}

impl Served<'_> {
    fn reinit(&self, operator: &OperatorId) -> Answer {
        let (node, name) = (&self.live.options.name, &operator.name);
        let refused = |reason| {
            let reason = format!("node {node} keeps its data: {reason}. Nothing was changed");
            Answer::refused(Why::Order, reason)
        };
        let status = self.live.status();
        if status.is_leader {
            return refused(
                "it leads the group; hand leadership over first (quorate switchover)".into(),
            );
        }
        let others = self.live.with_machine(|machine, now_ms, _| machine.reachable(now_ms));
        if !others.iter().any(|member| member.id != status.member) {
            return refused("no other server is there that it could fetch the data from".into());
        }
        let why = format!(
            "Operator {name} ({}) ordered that this node fetches its data anew.",
            self.from
        );
        match self.live.observer.start_over(&why) {
            Ok(()) => Answer::Done,
            Err(reason) => refused(reason),
        }
    }
}

/// A request that is here in whole until then: who sends it byte by byte has no more time than others.
fn whole_packet(
    reader: &mut FrameReader<Channel>,
    end: Instant,
) -> Result<(FrameType, Bytes), ReadFailure> {
    loop {
        if let Some(packet) = reader.buffered_packet()? {
            return Ok(packet);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        reader.stream().socket().set_read_timeout(Some(left))?;
        reader.fill()?;
    }
}

fn refused(error: &GroupError) -> Answer {
    let why = match error {
        GroupError::Order(OrderError::NoLeader { .. }) => Why::NoLeader,
        GroupError::Order(_) => Why::Order,
        _ => Why::Unavailable,
    };
    Answer::refused(why, error.to_string())
}

/// From memory, but for the look at a file's date: a server that hangs does not matter.
fn report(live: &Live, operator: &OperatorId) -> Report {
    let status = live.status();
    let (identity, isolated) =
        live.with_machine(|machine, _, _| (machine.identity(), machine.is_isolated()));
    let log_age = live.hands.wal.oldest_write().and_then(|at| at.elapsed().ok());
    let fault = live.hands.notices.last_fault();
    let trust = live.trust();
    let seen = Seen {
        identity,
        status,
        isolated,
        failed: live.has_failed(),
        log_age_s: log_age.map(|age| age.as_secs()),
        sync_latency: live.hands.wal.stats().latency.report(),
        last_fault: fault
            .map(|(at, message)| Fault { message, seconds_ago: at.elapsed().as_secs() }),
        certificate_days: trust.expiry.as_ref().map(|expiry| expiry.days_left(SystemTime::now())),
        election_timeout_ms: live.options.election_timeout.as_millis() as u64,
        server: live.observer.server(),
    };
    Report::of(seen, operator)
}
