use super::*;
use crate::disk::sim::{Faults, SimDisk};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

fn supply(disk: &SimDisk, reserve: usize) -> Supply {
    Supply::new(Arc::new(disk.clone()), MemberId(1), DiskKeys::default(), 16 << 10, reserve)
}

/// Segment 1, as far as there is room.
fn prepare(supply: &Supply) {
    supply.want(1);
    let Some(Job::Make { sequence, spare }) = supply.next_job() else { panic!("one is wanted") };
    supply.prepare(sequence, spare);
}

#[test]
fn what_failed_is_tried_again_in_time_whatever_is_reported_meanwhile() {
    let disk = SimDisk::new(1);
    disk.inject(Faults { capacity: Some(0), ..Faults::default() });
    let supply = supply(&disk, 0);
    prepare(&supply);
    let due = Instant::now() + Duration::from_millis(50);
    supply.lock().held.as_mut().expect("there was no room").until = due;
    let done = AtomicBool::new(false);
    let job = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                supply.want(1);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let job = supply.next_job();
        done.store(true, Ordering::Relaxed);
        job
    });
    assert!(matches!(job, Some(Job::Make { sequence: 1, .. })));
    assert!(Instant::now() >= due);
}

#[test]
fn a_segment_that_is_ready_is_taken_while_the_reserve_is_filled_up() {
    let supply = supply(&SimDisk::new(1), 1);
    prepare(&supply);
    let Some(Job::Reserve) = supply.next_job() else { panic!("there is no reserve") };
    let taken = thread::scope(|scope| {
        let (send, taken) = channel();
        let supply = &supply;
        scope.spawn(move || send.send(supply.take(1, PAGE_BYTES).is_ok()));
        let taken = taken.recv_timeout(Duration::from_secs(10));
        // Whoever waits for this would go on now.
        supply.add_to_reserve();
        taken
    });
    assert_eq!(taken, Ok(true));
    assert_eq!(supply.lock().wanted, Some(2));
}
