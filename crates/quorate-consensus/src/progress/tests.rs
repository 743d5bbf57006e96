use super::*;

fn options() -> Options {
    Options {
        append_bytes_max: 100,
        inflight_bytes_max: 250,
        inflight_messages_max: 4,
        ..Options::new(MemberId(1), 0)
    }
}

fn replicating(matched: Index) -> Progress {
    let mut peer = Progress::new(MemberId(2), matched + 1);
    peer.acknowledge(matched, 0);
    assert_eq!(peer.state, State::Replicate);
    peer
}

#[test]
fn the_window_closes_by_bytes_and_by_messages() {
    let mut peer = replicating(10);
    for last in [11, 12] {
        assert_eq!(peer.window_bytes(&options()), Some(100));
        peer.sent(last, 100);
    }
    assert_eq!(peer.window_bytes(&options()), Some(50));
    peer.sent(13, 60);
    assert_eq!(peer.window_bytes(&options()), None);
    assert!(peer.acknowledge(12, 0));
    assert_eq!((peer.matched, peer.next, peer.window_bytes(&options())), (12, 14, Some(100)));
    (14..=16).for_each(|last| peer.sent(last, 1));
    assert_eq!(peer.window_bytes(&options()), None);
}

#[test]
fn an_entry_larger_than_the_window_passes_alone() {
    let mut peer = replicating(10);
    peer.sent(11, 9999);
    assert_eq!(peer.window_bytes(&options()), None);
    peer.acknowledge(11, 0);
    assert_eq!(peer.window_bytes(&options()), Some(100));
}

#[test]
fn a_probe_ends_with_an_acknowledgement() {
    let mut peer = Progress::new(MemberId(2), 20);
    peer.state = State::Probe { sent: true };
    assert!(peer.reject(19, 7));
    assert_eq!((peer.next, peer.state), (8, State::Probe { sent: false }));
    // The answer to the first probe, once more.
    assert!(!peer.reject(19, 3));
    assert!(peer.acknowledge(7, 0));
    assert_eq!((peer.next, peer.state), (8, State::Replicate));
}

#[test]
fn a_rejection_always_steps_back() {
    let mut peer = Progress::new(MemberId(2), 20);
    assert!(peer.reject(19, 19));
    assert_eq!(peer.next, 19);
    let mut peer = Progress::new(MemberId(2), 1);
    assert!(peer.reject(0, u64::MAX));
    assert_eq!(peer.next, 1);
}

#[test]
fn rejections_of_what_was_acknowledged_since_are_old() {
    let mut peer = replicating(10);
    peer.sent(15, 1);
    assert!(!peer.reject(10, 3));
    assert!(peer.reject(15, 12));
    assert_eq!((peer.next, peer.state), (13, State::Probe { sent: false }));
}

#[test]
fn a_snapshot_ends_where_the_log_can_go_on() {
    let mut peer = replicating(10);
    peer.await_snapshot();
    peer.acknowledge(12, 50);
    assert_eq!(peer.state, State::Snapshot);
    peer.acknowledge(50, 50);
    assert_eq!((peer.next, peer.state), (51, State::Replicate));
}

#[test]
fn only_a_reply_to_the_newest_round_proves_a_loss() {
    let mut peer = replicating(10);
    peer.round_leaves(1);
    peer.acknowledge(20, 0);
    peer.round_leaves(2);
    assert!(!peer.lost_entries(1, 10), "sent before 11..20 were acknowledged");
    assert!(!peer.lost_entries(2, 20));
    assert!(peer.lost_entries(2, 19));
    peer.forget_acknowledged(5);
    assert_eq!((peer.matched, peer.next, peer.state), (5, 6, State::Probe { sent: false }));
}

#[test]
fn who_refuses_what_it_acknowledged_first_says_how_much_it_has() {
    let mut peer = replicating(10);
    peer.round_leaves(1);
    peer.connection_lost();
    assert!(!peer.reject(10, 9), "nothing is sent for it yet");
    peer.ask_further_back(1);
    assert_eq!((peer.matched, peer.next), (10, 11), "that round may have come before");
    peer.round_leaves(2);
    peer.round_leaves(3);
    assert!(peer.lost_entries(2, 9), "it acknowledged 10");
    assert!(!peer.lost_entries(2, 10));
    peer.ask_further_back(2);
    assert_eq!((peer.matched, peer.next, peer.state), (9, 10, State::Probe { sent: false }));
    peer.acknowledge(10, 0);
    assert_eq!((peer.matched, peer.next, peer.state), (10, 11, State::Replicate));
}

#[test]
fn who_refuses_the_same_again_and_again_is_asked_further_back_in_the_end() {
    let mut peer = replicating(10);
    peer.round_leaves(1);
    peer.connection_lost();
    // Its answers take three rounds.
    for round in 2..6 {
        peer.state = State::Probe { sent: false };
        assert!(!peer.reject(10, 9));
        peer.round_leaves(round);
    }
    peer.ask_further_back(1);
    assert_eq!(peer.next, 11, "that round left before it refused");
    peer.ask_further_back(2);
    assert_eq!((peer.matched, peer.next), (9, 10));
}

#[test]
fn who_reconnects_is_proved_by_a_round_that_left_after_that() {
    let mut peer = replicating(10);
    assert!(!peer.is_proved(), "it answered no round of this term");
    peer.round_leaves(1);
    peer.prove(1, 10);
    assert!(peer.is_proved());
    peer.connection_lost();
    peer.prove(1, 10);
    assert!(!peer.is_proved(), "its former process may have answered that");
    peer.round_leaves(2);
    peer.round_leaves(3);
    peer.prove(2, 9);
    assert!(!peer.is_proved(), "it acknowledged 10");
    peer.prove(2, 10);
    assert!(peer.is_proved(), "a later round is on its way, as with every slow link");
}

#[test]
fn after_a_snapshot_it_rests_until_it_has_answered_a_later_round() {
    let mut peer = Progress::new(MemberId(2), 1);
    peer.round_leaves(7);
    peer.await_snapshot();
    peer.probe_from(100);
    peer.snapshot_left();
    peer.round_acknowledged(7, None, 0);
    assert!(peer.rests(), "the answer may have left before");
    peer.round_leaves(8);
    peer.round_acknowledged(8, None, 0);
    assert!(!peer.rests());
    peer.snapshot_left();
    peer.acknowledge(99, 0);
    assert!(!peer.rests(), "it has what was sent");
}
