use super::*;

fn write_set(seqno: i64, bytes: usize) -> Event {
    Event::WriteSet(WriteSetEvent {
        place: Place { index: seqno as u64, seqno, depends_on: 0, flags: 0, certified: true },
        entry: Bytes::from(vec![seqno as u8; bytes]),
    })
}

fn take(queue: &EventQueue) -> Event {
    match queue.pop() {
        Popped::Event(e) => e,
        Popped::Read(reading) => panic!("to be read: {reading:?}"),
        Popped::Closed => panic!("closed"),
    }
}

fn reading(queue: &EventQueue) -> Reading {
    match queue.pop() {
        Popped::Read(reading) => reading,
        _ => panic!("nothing to be read"),
    }
}

/// The entries of the log from `from` on, each of 60 bytes.
fn log(from: u64, upto: u64) -> Vec<Bytes> {
    (from..=upto).map(|index| Bytes::from(vec![index as u8; 60])).collect()
}

/// A queue of write sets `1..=last` of 60 bytes, of which the first is in memory.
fn lagging(last: i64) -> EventQueue {
    let queue = EventQueue::new(100);
    queue.open();
    (1..=last).for_each(|seqno| queue.push(write_set(seqno, 60)));
    queue
}

#[test]
fn how_many_wait_is_told_as_it_is_as_it_was_at_most_and_on_average() {
    let queue = EventQueue::new(1000);
    assert_eq!(queue.queued(), Queued { now: 0, max: 0, avg: 0.0 });
    queue.open();
    (1..=3).for_each(|seqno| queue.push(write_set(seqno, 60)));
    (1..=3).for_each(|_| drop(take(&queue)));
    queue.push(write_set(4, 60));
    assert_eq!(queue.queued(), Queued { now: 1, max: 3, avg: 0.75 });
}

#[test]
fn what_is_past_the_bound_is_read_back_in_order() {
    let queue = lagging(4);
    queue.push(Event::NonPrimary);
    queue.push(write_set(5, 60));
    assert_eq!((queue.len(), queue.first_index()), (6, Some(1)));
    let mut seen = Vec::new();
    while seen.len() < 5 {
        match queue.pop() {
            Popped::Event(Event::WriteSet(w)) => {
                assert_eq!(w.entry, vec![w.place.seqno as u8; 60]);
                seen.push(w.place.seqno);
            }
            Popped::Event(_) => {
                assert_eq!(seen, [1, 2, 3, 4]);
                queue.finish_exclusive();
            }
            // The log goes on behind what waits here.
            Popped::Read(reading) => queue.fill(reading, log(reading.from, 9)),
            Popped::Closed => panic!("closed"),
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!((queue.len(), queue.first_index()), (0, None));
    queue.push(write_set(6, 60));
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 6));
}

#[test]
fn what_is_there_is_taken_while_another_one_reads() {
    let queue = lagging(3);
    take(&queue);
    let first = reading(&queue);
    queue.fill(first, log(2, 2));
    take(&queue);
    let second = reading(&queue);
    assert_eq!(second.from, 3);
    queue.push(write_set(4, 60));
    assert_eq!((queue.len(), queue.first_index()), (2, Some(3)));
    queue.fill(second, log(3, 4));
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 3));
    assert_eq!(reading(&queue).from, 4, "it was not known to be committed then");
}

#[test]
fn a_reading_that_failed_matters_only_while_it_is_needed() {
    let queue = lagging(3);
    take(&queue);
    let failed = reading(&queue);
    assert!(queue.not_read(failed));
    let again = reading(&queue);
    queue.discard_upto(3);
    assert!(!queue.not_read(again), "a state transfer brought it");
    assert_eq!(queue.len(), 0);
}

#[test]
fn what_a_state_transfer_brought_is_dropped_from_the_middle_of_what_waits_in_the_log() {
    let queue = lagging(5);
    queue.push(Event::Synced);
    queue.discard_upto(3);
    assert_eq!((queue.len(), queue.first_index()), (3, Some(4)));
    let first = reading(&queue);
    assert_eq!(first.from, 4);
    queue.fill(first, log(4, 5));
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 4));
}

#[test]
fn discarding_keeps_events_without_a_seqno() {
    let queue = EventQueue::new(1000);
    queue.open();
    queue.push(write_set(1, 1));
    queue.push(Event::NonPrimary);
    queue.push(write_set(2, 1));
    queue.discard_upto(1);
    assert!(matches!(take(&queue), Event::NonPrimary));
    queue.finish_exclusive();
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 2));
}

#[test]
fn what_a_state_transfer_brought_is_not_taken_in_when_the_log_comes_to_it() {
    let queue = EventQueue::new(1000);
    queue.open();
    queue.push(write_set(1, 1));
    queue.discard_upto(3);
    (2..=4).for_each(|seqno| queue.push(write_set(seqno, 1)));
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 4));
}

#[test]
fn only_the_end_is_left_of_a_connection_that_ends_before_it_began() {
    let queue = EventQueue::new(1000);
    queue.open();
    queue.push(write_set(1, 1));
    queue.push(Event::Vote { seqno: 1 });
    queue.leave_only_the_end();
    queue.push(write_set(2, 1));
    queue.push(Event::Final);
    assert!(matches!(take(&queue), Event::Final));
    queue.open();
    queue.push(write_set(3, 1));
    assert!(matches!(take(&queue), Event::WriteSet(w) if w.place.seqno == 3), "another connection");
}

#[test]
fn the_last_event_waits_for_what_was_taken_before() {
    let queue = std::sync::Arc::new(EventQueue::new(1000));
    queue.open();
    queue.push(write_set(1, 1));
    queue.push(Event::Final);
    assert!(matches!(take(&queue), Event::WriteSet(_)));
    assert!(matches!(take(&queue), Event::Final));
    let last = {
        let queue = queue.clone();
        std::thread::spawn(move || queue.wait_for_others())
    };
    assert!(!last.is_finished());
    queue.finish_shared();
    last.join().unwrap();
}

#[test]
fn nothing_is_taken_while_an_exclusive_event_is_handled() {
    let queue = std::sync::Arc::new(EventQueue::new(1000));
    queue.open();
    queue.push(Event::Connect);
    queue.push(write_set(1, 1));
    assert!(matches!(take(&queue), Event::Connect));
    let (tx, rx) = std::sync::mpsc::channel();
    let other = {
        let queue = queue.clone();
        std::thread::spawn(move || {
            let e = take(&queue);
            tx.send(e.seqno()).unwrap();
        })
    };
    assert!(rx.try_recv().is_err());
    queue.finish_exclusive();
    assert_eq!(rx.recv().unwrap(), Some(1));
    other.join().unwrap();
}

#[test]
fn the_end_passes_a_closed_gate_once_nothing_is_left_before_it() {
    let queue = lagging(4);
    queue.set_gate(|| 0);
    let first = reading_behind_the_first(&queue);
    queue.fill(first, log(2, 4));
    queue.push(Event::Final);
    queue.leave_only_the_end();
    assert!(matches!(take(&queue), Event::Final));
    assert_eq!(queue.first_index(), None);
}

/// At the end of a pause the server goes by the state that it had at its begin. The pause itself waits for what is
/// below.
#[test]
fn what_changes_the_servers_state_waits_while_it_stands_still() {
    let queue = EventQueue::new(1000);
    queue.open();
    queue.push(Event::NonPrimary);
    queue.push(write_set(1, 60));
    queue.push(Event::Synced);
    queue.set_gate(|| 1);
    assert!(matches!(take(&queue), Event::NonPrimary));
    queue.finish_exclusive();
    assert!(matches!(take(&queue), Event::WriteSet(_)));
    assert!(queue.inner.lock().take().is_none(), "nothing below is left");
    queue.open_gate();
    assert!(matches!(take(&queue), Event::Synced));
}

/// With the gate closed: what is behind the first write set, which is in memory, is not read yet.
fn reading_behind_the_first(queue: &EventQueue) -> Reading {
    queue.open_gate();
    take(queue);
    let first = reading(queue);
    queue.set_gate(|| 1);
    first
}

/// A packet, or what was read at once, is one piece of memory, however little of it waits.
#[test]
fn what_waits_behind_others_does_not_keep_what_came_with_it() {
    let queue = EventQueue::new(1 << 20);
    queue.open();
    let packet = Bytes::from(vec![7; 1 << 20]);
    for seqno in 1..=2 * AT_HAND as i64 {
        let Event::WriteSet(w) = write_set(seqno, 0) else { panic!() };
        queue.push(Event::WriteSet(WriteSetEvent { entry: packet.slice(..200), ..w }));
    }
    for seqno in 1..=2 * AT_HAND {
        let Event::WriteSet(w) = take(&queue) else { panic!() };
        assert_eq!(w.entry, packet.slice(..200));
        let shares = w.entry.as_ptr() == packet.as_ptr();
        assert_eq!(shares, seqno <= AT_HAND, "{seqno}");
        queue.finish_shared();
    }
}
