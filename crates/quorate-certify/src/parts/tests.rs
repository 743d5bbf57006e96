mod plain;

use self::plain::Plain;
use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn of(stream: u64, count: u32) -> PartsOf {
    PartsOf { stream, count, bytes: 0 }
}

#[test]
fn a_stream_is_whole_however_its_parts_came() {
    let mut parts = OpenParts::default();
    for (number, index) in [(2, 9), (0, 7), (1, 8), (0, 11)] {
        parts.add(1, 5, number, index);
    }
    parts.add(1, 6, 0, 10);
    parts.add(2, 5, 0, 6);
    assert_eq!(parts.first_index(), Some(6));
    assert_eq!(parts.take(1, &of(5, 3)).as_deref(), Some(&[7, 8, 9][..]));
    assert_eq!(parts.take(1, &of(5, 3)), None, "it has ended");
    assert_eq!(parts.take(1, &of(6, 2)), None, "one is missing");
    assert_eq!(parts.first_index(), Some(6));
    parts.add(2, 5, 3, 12);
    assert_eq!(parts.take(2, &of(5, 2)), None, "one is missing, and there is another");
    assert_eq!(parts, OpenParts::default());
}

#[test]
fn a_stream_ends_without_its_origin_given_up_or_idle() {
    let mut parts = OpenParts::default();
    (1..=3).for_each(|origin| parts.add(origin, 5, 0, origin as u64));
    parts.view(&[2, 3]);
    assert_eq!(parts.first_index(), Some(2));
    parts.end(2, 5);
    assert_eq!(parts.first_index(), Some(3));
    parts.passed(IDLE_BYTES_MAX as usize);
    parts.add(3, 6, 0, 20);
    parts.passed(1);
    assert_eq!(parts.first_index(), Some(20), "the first has not gone on");
    let half = IDLE_BYTES_MAX / 2;
    for number in 1..BYTES_MAX / half {
        parts.passed(half as usize);
        parts.add(3, 6, number as u32, 21);
    }
    assert_eq!(parts.first_index(), Some(20), "it goes on");
    parts.passed(half as usize);
    assert_eq!(parts, OpenParts::default());
}

#[test]
fn what_is_kept_is_bounded() {
    let mut parts = OpenParts::default();
    let too_many = SHARE_MAX as u32 + 1;
    for (origin, most) in [(1, SHARE_MAX), (2, PLACES_MAX), (3, PLACES_MAX)] {
        (0..too_many).for_each(|number| parts.add(origin, 5, number, 7));
        assert_eq!(parts.places, most, "one leaves room for others, two do not");
    }
    assert_eq!(parts.take(1, &of(5, too_many)), None);
    parts.add(3, 5, 0, 7);
    assert_eq!(parts.places, SHARE_MAX + 1);
    parts.view(&[1]);
    assert_eq!(parts, OpenParts::default());
}

#[test]
fn they_are_written_and_read_and_damage_is_refused() {
    let mut parts = OpenParts::default();
    for (origin, stream, number, index) in [(1, 5, 0, 7), (1, 5, 2, 9), (3, 1, 0, 8)] {
        parts.add(origin, stream, number, index);
        parts.passed(100);
    }
    let bytes = parts.encode();
    assert_eq!(OpenParts::decode(&bytes).as_ref(), Some(&parts));
    // Where a stream ends, fewer of them are as good as more.
    let whole = [8, 8 + 44 + 2 * 12];
    for cut in (0..bytes.len()).filter(|cut| !whole.contains(cut)) {
        assert_eq!(OpenParts::decode(&bytes[..cut]), None, "{cut}");
    }
    let swapped = [&bytes[..8], &bytes[76..], &bytes[8..76]].concat();
    assert_eq!(OpenParts::decode(&swapped), None);
}

/// With a look at each stream at each entry, it would be out of time long before its end.
#[test]
fn an_entry_looks_at_none_of_the_streams_that_stay() {
    const STREAMS: u64 = 1 << 17;
    const BYTES: usize = (IDLE_BYTES_MAX / STREAMS) as usize;
    let begin = Instant::now();
    let in_time = || assert!(begin.elapsed() < Duration::from_secs(60));
    let mut parts = OpenParts::default();
    for stream in 0..STREAMS {
        parts.passed(BYTES);
        parts.add(1, stream, 0, stream + 1);
        in_time();
    }
    for _ in 0..STREAMS {
        parts.passed(0);
        parts.view(&[1]);
        assert_eq!(parts.first_index(), Some(1));
        in_time();
    }
    for gone in 0..STREAMS {
        parts.passed(BYTES);
        assert_eq!(parts.first_index(), Some(gone + 1));
        in_time();
    }
    assert_eq!(parts.streams.len(), 1, "the last one is as old as it may be");
}

#[derive(Clone, Debug)]
enum Step {
    Add { origin: u128, stream: u64, number: u32, index: u64 },
    End { origin: u128, stream: u64 },
    Take { origin: u128, parts: PartsOf },
    Passed(usize),
    View(Vec<u128>),
    Restart,
}

fn stream() -> impl Strategy<Value = (u128, u64)> {
    let origin = prop::sample::select(vec![0, 1, 7, u128::MAX]);
    (origin, prop::sample::select(vec![0, 1, 2, u64::MAX]))
}

fn add() -> impl Strategy<Value = Step> {
    (stream(), 0u32..4, 0u64..1000).prop_map(|((origin, stream), number, index)| Step::Add {
        origin,
        stream,
        number,
        index,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (idle, all) = (IDLE_BYTES_MAX as usize, BYTES_MAX as usize);
    let few = prop::sample::select(vec![0, 1, idle / 2, idle - 1, idle]);
    let many = prop::sample::select(vec![idle + 1, all - 1, all, all + 1]);
    let members = prop::sample::subsequence(vec![0, 1, 7, u128::MAX], 2..4);
    let end = stream().prop_map(|(origin, stream)| Step::End { origin, stream });
    let take = (stream(), 0u32..4)
        .prop_map(|((origin, stream), count)| Step::Take { origin, parts: of(stream, count) });
    // It may become as old as any.
    let goes_on = (add(), few.clone(), 1usize..40)
        .prop_map(|(add, bytes, times)| vec![[add, Step::Passed(bytes)]; times].concat());
    let step = prop_oneof![
        20 => add().prop_map(|step| vec![step]),
        1 => end.prop_map(|step| vec![step]),
        1 => take.prop_map(|step| vec![step]),
        4 => few.prop_map(|bytes| vec![Step::Passed(bytes)]),
        1 => many.prop_map(|bytes| vec![Step::Passed(bytes)]),
        1 => members.prop_map(|members| vec![Step::View(members)]),
        1 => Just(vec![Step::Restart]),
        1 => goes_on,
    ];
    prop::collection::vec(step, 0..100).prop_map(|steps| steps.concat())
}

proptest! {
    #[test]
    fn the_same_is_given_up_as_by_a_look_at_all(steps in steps()) {
        let (mut parts, mut plain) = (OpenParts::default(), Plain::default());
        for step in steps {
            match step {
                Step::Add { origin, stream, number, index } => {
                    parts.add(origin, stream, number, index);
                    plain.add(origin, stream, number, index);
                }
                Step::End { origin, stream } => {
                    prop_assert_eq!(parts.end(origin, stream), plain.end(origin, stream));
                }
                Step::Take { origin, parts: of } => {
                    let places = plain.end(origin, of.stream);
                    let whole = places.keys().copied().eq(0..of.count);
                    let taken = whole.then(|| places.into_values().collect());
                    prop_assert_eq!(parts.take(origin, &of), taken);
                }
                Step::Passed(bytes) => {
                    parts.passed(bytes);
                    plain.passed(bytes);
                }
                Step::View(members) => {
                    parts.view(&members);
                    plain.view(&members);
                }
                Step::Restart => {
                    let restored = OpenParts::decode(&parts.encode());
                    prop_assert_eq!(restored.as_ref(), Some(&parts), "its orders, too");
                    parts = restored.unwrap_or_default();
                }
            }
            prop_assert_eq!(parts.encode(), plain.encode());
            prop_assert_eq!(parts.first_index(), plain.first_index());
            prop_assert_eq!(parts.places, plain.places());
        }
    }
}
