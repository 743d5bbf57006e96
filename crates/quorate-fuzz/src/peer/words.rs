//! What a hostile peer says: well formed, near enough to what its victim expects, and sometimes absurd.

use crate::certify::LIMITS;
use crate::entries::proposal;
use crate::source::Source;
use bytes::Bytes;
use quorate_certify::Sequenced;
use quorate_consensus::{
    Charter, Config, Entry, EntryKind, KeyId, LogPosition, MemberId, MemberInfo, MemberRole,
    Message, MessageBody, Primaries, PriorityRule, Proposal, Rules, SnapshotMeta, Term,
};
use quorate_group::{
    Content, EventKind, EventNote, Mandate, Note, NoteId, Notes, OrderNote, OrderTaken, View,
    ViewMember,
};
use quorate_wire::{
    Admission, FrameType, Hello, JoinRequest, LeaveAnswer, Packet, PeerIdentity, Refusal,
    RefusalCode, Standing, Want, Wish,
};

/// The group that the victim founds, or belongs to.
pub const GROUP: u128 = 77;
pub const GROUP_NAME: &str = "group";
pub const VICTIM: MemberId = MemberId(1);

/// What the peer knows of its victim.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub term: Term,
    pub leader: Option<MemberId>,
    pub last: LogPosition,
    pub commit: u64,
    pub view: u64,
    pub seqno: i64,
}

pub fn member(source: &mut Source<'_>) -> MemberId {
    MemberId(source.below(6).into())
}

/// What this member shows, where members show anything.
pub fn own_key(member: MemberId) -> KeyId {
    KeyId([member.0 as u8 + 1; 32])
}

/// `keyed`: members show keys here.
pub fn identity(source: &mut Source<'_>, keyed: bool, member: MemberId) -> PeerIdentity {
    let honest = PeerIdentity {
        member,
        incarnation: 1,
        group: GROUP,
        charter: Charter::default(),
        levels: (1, 1),
        group_name: GROUP_NAME.into(),
        name: format!("n{}", member.0),
        addr: format!("node{}", member.0),
        incoming: String::new(),
        key: if keyed { own_key(member) } else { KeyId::default() },
    };
    if source.below(4) != 0 {
        return honest;
    }
    PeerIdentity {
        incarnation: source.near(1) as u32,
        group: [GROUP, 0, GROUP + 1][usize::from(source.below(3))],
        charter: Charter([source.near(0), 0, 0, source.near(0), 0]),
        levels: (source.below(3).into(), source.below(3).into()),
        name: format!("n{}", source.below(6)),
        addr: format!("node{}", source.below(6)),
        key: key(source),
        ..honest
    }
}

/// What somebody shows.
pub fn key(source: &mut Source<'_>) -> KeyId {
    KeyId([source.below(3); 32])
}

pub fn hello(source: &mut Source<'_>, keyed: bool) -> Hello {
    let member = member(source);
    let mut hello = proper_hello(identity(source, keyed, member));
    if source.below(4) == 0 {
        hello.want = source.one_of(&[Want::Peer, Want::Join, Want::Status, Want::Operator]);
        hello.versions = (source.below(4).into(), source.below(4).into());
        hello.expects = source.one_of(&[None, Some(VICTIM), Some(MemberId(9))]);
    }
    hello
}

pub fn proper_hello(from: PeerIdentity) -> Hello {
    let versions = (quorate_wire::PROTOCOL_MIN, quorate_wire::PROTOCOL_MAX);
    Hello { versions, want: Want::Peer, from, expects: Some(VICTIM) }
}

pub fn request(source: &mut Source<'_>) -> JoinRequest {
    let wish = Wish {
        role: role(source),
        priority: source.byte(),
        zone: source.one_of(&["", "west"]).to_owned(),
    };
    JoinRequest { last_index: source.near(0), blank: source.flag(), wish }
}

pub fn refusal(source: &mut Source<'_>) -> Refusal {
    let codes = [
        RefusalCode::Busy,
        RefusalCode::Version,
        RefusalCode::OtherGroup,
        RefusalCode::OtherMember,
        RefusalCode::Yourself,
        RefusalCode::Stale,
        RefusalCode::Isolated,
        RefusalCode::RolledBack,
    ];
    let code = if source.flag() { RefusalCode::Busy } else { source.one_of(&codes) };
    Refusal { code, text: source.text() }
}

pub fn admission(source: &mut Source<'_>) -> Admission {
    match source.below(4) {
        0 => Admission::Granted,
        1 => Admission::AskLeader { addr: format!("node{}", source.byte()) },
        2 => Admission::Later { reason: source.text() },
        _ => Admission::Refused { reason: source.text() },
    }
}

/// What an honest peer that has all of it answers.
pub fn honest_answer(said: &Message) -> Option<Packet> {
    let body = match &said.body {
        MessageBody::PreVote { .. } => MessageBody::PreVoteReply { granted: true },
        MessageBody::Vote { .. } => MessageBody::VoteReply { granted: true },
        MessageBody::ForcedVote { last } => {
            MessageBody::ForcedVoteReply { granted: true, commit: *last }
        }
        MessageBody::Append { prev, entries, .. } => {
            MessageBody::AppendReply { matched: prev.index + entries.len() as u64 }
        }
        MessageBody::Heartbeat { commit, round } => {
            MessageBody::HeartbeatReply { round: *round, persisted_last: *commit }
        }
        MessageBody::ReadIndex { ctx } => MessageBody::ReadIndexReply { ctx: *ctx, index: 1 },
        _ => return None,
    };
    let Message { from: to, to: from, term, .. } = *said;
    Some(Packet::Consensus(Message { from, to, term, body }))
}

/// What an honest leader sends next, though what it proposes may be anything: with its own id.
pub fn honest_append(source: &mut Source<'_>, known: &Known) -> (MemberId, Packet) {
    let from = known.leader.filter(|leader| *leader != VICTIM).unwrap_or(MemberId(2));
    let (prev, term) = (known.last, known.term.max(1));
    let entry = |offset: u64, source: &mut Source<'_>| {
        let index = prev.index + 1 + offset;
        match source.below(6) {
            0 => {
                // A snapshot may have given it the largest number that there is.
                let next = Known { view: known.view.saturating_add(offset), ..*known };
                Entry::new(index, term, EntryKind::View, view_entry(source, &next))
            }
            1 => Entry::new(index, term, EntryKind::Noop, Bytes::new()),
            _ => Proposal::new(EntryKind::Data, proposal(source, known.seqno))
                .into_entry(index, term),
        }
    };
    let count = u64::from(source.below(4));
    let entries = (0..count).map(|offset| entry(offset, source)).collect();
    let body = MessageBody::Append { prev, entries, commit: prev.index + count };
    (from, Packet::Consensus(Message { from, to: VICTIM, term, body }))
}

/// A packet; `None`: its bytes are refused by the codec.
pub fn packet(source: &mut Source<'_>, from: MemberId, known: &Known) -> Option<Packet> {
    Some(match source.below(16) {
        0 => return raw(source, from),
        1 => Packet::Forward((0..source.below(3)).map(|_| data(source, known)).collect()),
        2 => Packet::LeaveRequest,
        3 => match source.flag() {
            true => Packet::LeaveAnswer(LeaveAnswer::Done),
            false => Packet::LeaveAnswer(LeaveAnswer::Later { reason: source.text() }),
        },
        4 => Packet::ViewRefresh { number: source.near(known.view) },
        5 => Packet::WantVotes { votes: source.byte() },
        6 => Packet::Note(Proposal::new(EntryKind::Note, note(source, from))),
        7 => Packet::Standing(standing(source)),
        _ => {
            let term = term(source, known);
            Packet::Consensus(Message { from, to: VICTIM, term, body: body(source, known) })
        }
    })
}

/// How a server stands, or says that it does.
pub fn standing(source: &mut Source<'_>) -> Standing {
    let seqno = |source: &mut Source<'_>| source.one_of(&[-1, 0, 1, 7, i64::MAX]);
    Standing {
        synced: source.flag(),
        prompt: source.flag(),
        applied: seqno(source),
        certified: seqno(source),
        index: source.one_of(&[0, 1, u64::MAX]),
        lag_ms: source.one_of(&[0, 999, 1_000, 60_000, u32::MAX]),
        written: source.byte().into(),
    }
}

/// What came of an order that `from` took, or what it saw happen, or anything.
fn note(source: &mut Source<'_>, from: MemberId) -> Bytes {
    if source.below(4) == 0 {
        return source.block();
    }
    let number = source.byte().into();
    let id = NoteId { member: from, incarnation: 1, number };
    if source.below(2) == 0 {
        let kind = source.one_of(&[EventKind::Leader, EventKind::Transfer]);
        return Note::Event(EventNote::new(id, "n2", 1, kind, &source.text())).encode();
    }
    let taken = OrderTaken::new(id, "n2", Mandate::default(), &source.text());
    Note::Order(OrderNote::new(taken, Ok(source.text()))).encode()
}

fn raw(source: &mut Source<'_>, from: MemberId) -> Option<Packet> {
    let frame_type = source.one_of(&FrameType::ALL);
    Packet::decode(frame_type, source.block(), from, VICTIM).ok()
}

fn body(source: &mut Source<'_>, known: &Known) -> MessageBody {
    match source.below(20) {
        0 => MessageBody::PreVote { last: position(source, known) },
        1 => MessageBody::PreVoteReply { granted: source.flag() },
        2 => MessageBody::Vote { last: position(source, known), transfer: source.flag() },
        3 => MessageBody::VoteReply { granted: source.flag() },
        4 => MessageBody::ForcedVote { last: position(source, known) },
        5 => {
            let (granted, commit) = (source.flag(), position(source, known));
            MessageBody::ForcedVoteReply { granted, commit }
        }
        6 => MessageBody::AppendReply { matched: source.near(known.last.index) },
        7 => {
            let (rejected, hint) = (source.near(known.last.index), position(source, known));
            MessageBody::AppendReject { rejected, hint }
        }
        8 => {
            let (commit, round) = (source.near(known.commit), source.near(1));
            MessageBody::Heartbeat { commit, round }
        }
        9 => {
            let (round, persisted_last) = (source.near(1), source.near(known.last.index));
            MessageBody::HeartbeatReply { round, persisted_last }
        }
        10 => MessageBody::ReadIndex { ctx: source.near(1) },
        11 => {
            let (ctx, index) = (source.near(1), source.near(known.commit));
            MessageBody::ReadIndexReply { ctx, index }
        }
        12 => MessageBody::TimeoutNow,
        13 => MessageBody::SnapshotReply { matched: source.near(known.last.index) },
        _ => {
            let prev = position(source, known);
            let entries = entries(source, prev, known);
            MessageBody::Append { prev, entries, commit: source.near(known.last.index) }
        }
    }
}

fn entries(source: &mut Source<'_>, prev: LogPosition, known: &Known) -> Vec<Entry> {
    let mut last = prev;
    let count = source.below(4);
    let entry = |_| {
        let index = if source.byte() == 255 { source.u64() } else { last.index.wrapping_add(1) };
        let term = if source.below(8) == 0 { term(source, known) } else { last.term };
        last = LogPosition { term, index };
        match source.below(8) {
            0 => Entry::new(index, term, EntryKind::Config, config(source).encode()),
            1 => Entry::new(index, term, EntryKind::View, view_entry(source, known)),
            2 => Entry::new(index, term, EntryKind::Noop, Bytes::new()),
            3 => {
                let kind = EntryKind::from_code(source.below(16) / 3);
                Entry::new(index, term, kind, source.block())
            }
            _ => data(source, known).into_entry(index, term),
        }
    };
    (0..count).map(entry).collect()
}

fn data(source: &mut Source<'_>, known: &Known) -> Proposal {
    let data = if source.flag() { proposal(source, known.seqno) } else { source.block() };
    Proposal::new(EntryKind::Data, data)
}

/// The entry that makes a view, which is what a snapshot's content has of it.
fn view_entry(source: &mut Source<'_>, known: &Known) -> Bytes {
    let content =
        Content { view: view(source, known), notes: Notes::default(), machine: Bytes::new() };
    // After its version and its length.
    content.encode(1).slice(5..)
}

fn view(source: &mut Source<'_>, known: &Known) -> View {
    let mut members = Vec::new();
    for _ in 0..source.below(4) {
        let id = member(source);
        members.push(ViewMember::from(identity(source, false, id)));
    }
    let next = known.view.saturating_add(1);
    let number = if source.below(4) == 0 { source.near(next) } else { next };
    View { number, members, primary: source.flag().then(|| member(source)) }
}

fn config(source: &mut Source<'_>) -> Config {
    let mut config = Config::default();
    let set = source.byte();
    for id in (0..6u8).filter(|id| set >> id & 1 == 1) {
        let mut info = MemberInfo::new(MemberRole::Voter, format!("node{id}"), format!("n{id}"));
        if set >> 7 == 1 {
            (info.role, info.joining) = (role(source), source.flag());
            (info.priority, info.votes) = (source.byte(), source.one_of(&[1, 0, 2, 255]));
            info.zone = source.one_of(&["", "west"]).to_owned();
        }
        config.members.insert(MemberId(id.into()), info);
    }
    config.level = 1;
    if set >> 6 & 1 == 1 {
        let outgoing = source.byte();
        let ids = |set: u8| (0..6).filter(move |id| set >> id & 1 == 1).map(MemberId).collect();
        config.outgoing = ids(outgoing);
        config.lost = ids(source.byte());
        config.rules = Rules {
            zones_min: source.below(3),
            priorities: source.one_of(&[PriorityRule::Optimistic, PriorityRule::Forced]),
            primaries: source.one_of(&[Primaries::Multi, Primaries::Single]),
            failover_waits: source.flag(),
            follows_writes: source.flag(),
            paused: source.flag(),
            after: source.flag(),
        };
        config.level = source.below(3).into();
    }
    config
}

/// What stands in a snapshot, and the snapshot.
pub fn snapshot(source: &mut Source<'_>, known: &Known) -> (SnapshotMeta, Bytes) {
    let meta = SnapshotMeta { last: position(source, known), config: config(source) };
    let machine = match source.below(3) {
        0 => source.block(),
        1 => Bytes::new(),
        _ => Sequenced::beginning(LIMITS, source.below(9).into()).snapshot(),
    };
    let notes = Notes::default();
    let content = Content { view: view(source, known), notes, machine }.encode(meta.config.level);
    (meta, if source.byte() == 255 { source.block() } else { content })
}

pub fn term(source: &mut Source<'_>, known: &Known) -> Term {
    match source.byte() {
        0..=159 => known.term,
        160..=239 => known.term.saturating_add(1),
        _ => source.near(known.term),
    }
}

fn position(source: &mut Source<'_>, known: &Known) -> LogPosition {
    match source.below(4) {
        0 => LogPosition { term: term(source, known), index: source.near(known.last.index) },
        _ => known.last,
    }
}

fn role(source: &mut Source<'_>) -> MemberRole {
    source.one_of(&[MemberRole::Voter, MemberRole::Learner, MemberRole::Logger])
}
