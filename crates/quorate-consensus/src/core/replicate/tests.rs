//! What a snapshot that does not help costs the leader.

use super::super::tests::{elected, from_peer, id, step, voters};
use crate::core::Consensus;
use crate::event::{Event, Options, Restored};
use crate::message::MessageBody;
use crate::types::{LogPosition, SnapshotMeta};

const BASE: LogPosition = LogPosition { term: 1, index: 50 };

fn from_second(body: MessageBody) -> Event {
    from_peer(2, body)
}

/// A leader whose log starts after [`BASE`].
fn leader() -> Consensus {
    let snapshot = SnapshotMeta { last: BASE, config: voters(&[1, 2, 3]) };
    let restored = Restored { snapshot, ..Restored::default() };
    elected(Consensus::new(Options::new(id(1), 7), restored, 0), 2)
}

#[test]
fn no_second_snapshot_before_a_later_heartbeat_was_answered() {
    let mut leader = leader();
    let blank = LogPosition::default();
    let refuses = || from_second(MessageBody::AppendReject { rejected: BASE.index, hint: blank });
    let beats = |round| from_second(MessageBody::HeartbeatReply { round, persisted_last: 0 });
    assert_eq!(step(&mut leader, 5_001, refuses()).snapshots, [id(2)]);
    let sent = || Event::SnapshotSent { to: id(2), last: BASE.index, ok: true };
    step(&mut leader, 5_002, sent());
    for said in [refuses(), beats(1), refuses(), beats(1), refuses()] {
        assert!(step(&mut leader, 5_003, said).snapshots.is_empty());
    }
    step(&mut leader, 5_400, Event::Tick);
    step(&mut leader, 5_401, beats(2));
    assert_eq!(step(&mut leader, 5_402, refuses()).snapshots, [id(2)]);
    // With a new connection it starts over.
    step(&mut leader, 5_403, sent());
    assert_eq!(step(&mut leader, 5_404, Event::Connected(id(2))).snapshots.len(), 0);
    let helped = from_second(MessageBody::SnapshotReply { matched: BASE.index });
    let after = step(&mut leader, 5_405, helped);
    assert!(after.snapshots.is_empty() && !after.messages.is_empty(), "what follows is sent");
}
