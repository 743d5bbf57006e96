//! What a snapshot that does not help costs the leader, and a disk that does not sync.

use super::super::tests::{elected, from_peer, id, step, voters};
use crate::core::Consensus;
use crate::effects::Effects;
use crate::event::{Event, Options, Restored, StepError};
use crate::message::MessageBody;
use crate::types::{EntryKind, LogPosition, Proposal, SnapshotMeta};

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

/// Its followers commit without its disk, and it may be the only one that may lead.
#[test]
fn a_leader_whose_disk_stands_still_takes_no_more_data_than_its_memory_may_hold() {
    let mut leader = leader();
    let propose = |leader: &mut Consensus, kind| {
        let batch = vec![Proposal::new(kind, vec![7; 1 << 20].into())];
        leader.step(5000, Event::Propose(batch), &mut Effects::default())
    };
    let taken = (0..1000).take_while(|_| propose(&mut leader, EntryKind::Data).is_ok()).count();
    assert_eq!(taken, 64);
    let refused = propose(&mut leader, EntryKind::Data).unwrap_err();
    assert!(matches!(refused, StepError::DiskBehind { bytes } if bytes >= 64 << 20), "{refused}");
    assert!(refused.is_passing());
    assert_eq!(propose(&mut leader, EntryKind::View), Ok(()));
    let synced = LogPosition { term: 2, index: BASE.index + 3 };
    step(&mut leader, 5000, Event::Persisted(synced));
    assert_eq!(propose(&mut leader, EntryKind::Data), Ok(()));
}
