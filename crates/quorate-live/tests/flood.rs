//! A member that floods the others with connections and halves of packets. Alone in its process, for what it costs
//! is measured.

mod common;
#[path = "common/scene.rs"]
mod scene;

use bytes::Bytes;
use quorate_consensus::MemberRole;
use quorate_wire::Packet;
use scene::{figure, Scene};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

#[test]
fn a_member_that_connects_again_and_again_and_never_ends_a_packet_takes_little() {
    let mut scene = Scene::new("hostile-flood", MemberRole::Learner);
    let threads = figure("Threads:");
    scene.withstands(|scene, ended| {
        let part = Packet::SnapshotData(Bytes::from(vec![0; 4 << 20]));
        let mut open = Vec::new();
        while !ended.load(Ordering::SeqCst) {
            for at in 0..3 {
                let mut guest = scene.dial(at, scene.identity(1)).expect("it is let in");
                let _replaced = guest.begins(&part);
                open.push(guest);
            }
            // Both sides of each TLS handshake take their time on this machine.
            thread::sleep(Duration::from_millis(25));
        }
        let more = figure("Threads:").saturating_sub(threads);
        assert!(more < 40, "{more} threads more for {} connections", open.len());
    });
}
