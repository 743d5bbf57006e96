//! When a packet arrives: the model of one sender's links, without I/O.
//!
//! A packet waits for its turn on the link (bandwidth), then travels (delay, jitter). Packets of
//! one link arrive in the order in which they were sent, unless `reorder` lets one overtake.

use super::Quality;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// What carrying a packet is taken to cost by itself: its forwarder is woken, and then who receives it. That is part
/// of the link's delay; a packet that would wait for no longer goes on at once. On a machine that is faster, packets
/// arrive earlier by the rest.
pub const CARRYING: Duration = Duration::from_micros(50);
/// What may wait for its turn on a link of limited bandwidth.
const BACKLOG_MAX: Duration = Duration::from_secs(1);
/// Packets on their way from one host, all links together.
const PACKETS_MAX: usize = 100_000;

/// Packets on their way from one host.
pub(super) struct Travel {
    random: fastrand::Rng,
    /// By receiver.
    links: Vec<Occupied>,
    packets: BinaryHeap<Reverse<Packet>>,
    sent: u64,
}

#[derive(Clone, Copy)]
struct Occupied {
    /// When the link has sent what waits for its turn.
    until: Instant,
    /// When the last packet that keeps the order arrives.
    last: Instant,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packet {
    due: Instant,
    /// Those due at the same time keep their order.
    number: u64,
    pub to: usize,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Deliver it at this moment.
    Now,
    /// It travels.
    Later(Instant),
    Lost,
}

impl Travel {
    pub fn new(receivers: usize, seed: u64, now: Instant) -> Travel {
        Travel {
            random: fastrand::Rng::with_seed(seed),
            links: vec![Occupied { until: now, last: now }; receivers],
            packets: BinaryHeap::new(),
            sent: 0,
        }
    }

    /// What becomes of a packet of `bytes` bytes that is sent at `now`.
    pub fn send(&mut self, to: usize, bytes: usize, quality: &Quality, now: Instant) -> Fate {
        let link = &mut self.links[to];
        if quality.loss > 0.0 && self.random.f64() < quality.loss {
            return Fate::Lost;
        }
        let sent = match quality.bandwidth {
            None => now,
            Some(bits_per_second) => {
                let begin = now.max(link.until);
                if begin - now > BACKLOG_MAX {
                    return Fate::Lost;
                }
                let seconds = bytes as f64 * 8.0 / bits_per_second.max(1) as f64;
                link.until = begin + Duration::from_secs_f64(seconds);
                link.until
            }
        };
        if quality.reorder > 0.0 && self.random.f64() < quality.reorder {
            return if sent <= now { Fate::Now } else { Fate::Later(sent) };
        }
        let jitter = quality.jitter.mul_f64(2.0 * self.random.f64());
        let early = quality.jitter + CARRYING;
        let due = (sent + quality.delay + jitter).checked_sub(early).unwrap_or(now);
        link.last = due.max(link.last).max(now);
        match () {
            () if link.last <= now => Fate::Now,
            () if self.packets.len() >= PACKETS_MAX => Fate::Lost,
            () => Fate::Later(link.last),
        }
    }

    pub fn hold(&mut self, due: Instant, to: usize, bytes: &[u8]) {
        self.sent += 1;
        let packet = Packet { due, number: self.sent, to, bytes: bytes.to_vec() };
        self.packets.push(Reverse(packet));
    }

    /// When the next packet arrives.
    pub fn next(&self) -> Option<Instant> {
        self.packets.peek().map(|Reverse(packet)| packet.due)
    }

    /// A packet that has arrived.
    pub fn arrived(&mut self, now: Instant) -> Option<Packet> {
        if self.next()? > now {
            return None;
        }
        self.packets.pop().map(|Reverse(packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn due(travel: &mut Travel, quality: &Quality, now: Instant) -> Duration {
        match travel.send(1, 1250, quality, now) {
            Fate::Now => Duration::ZERO,
            Fate::Later(due) => due - now,
            Fate::Lost => panic!("lost"),
        }
    }

    #[test]
    fn without_faults_a_packet_is_delivered_at_once() {
        let now = Instant::now();
        assert_eq!(Travel::new(2, 1, now).send(1, 1500, &Quality::default(), now), Fate::Now);
    }

    #[test]
    fn carrying_a_packet_is_part_of_its_delay() {
        let now = Instant::now();
        let mut travel = Travel::new(2, 1, now);
        let short = Quality { delay: CARRYING, ..Quality::default() };
        assert_eq!(travel.send(1, 1500, &short, now), Fate::Now);
        let long = Quality { delay: CARRYING + MS, ..Quality::default() };
        assert_eq!(travel.send(1, 1500, &long, now), Fate::Later(now + MS));
    }

    #[test]
    fn bandwidth_makes_packets_wait_and_then_drops_them() {
        let now = Instant::now();
        let mut travel = Travel::new(2, 1, now);
        // 1250 bytes take 1 ms.
        let quality = Quality { bandwidth: Some(10_000_000), delay: MS, ..Quality::default() };
        assert_eq!(due(&mut travel, &quality, now), 2 * MS - CARRYING);
        assert_eq!(due(&mut travel, &quality, now), 3 * MS - CARRYING);
        let lost = (0..2000).filter(|_| travel.send(1, 1250, &quality, now) == Fate::Lost).count();
        assert!((990..1010).contains(&lost), "{lost}");
    }

    #[test]
    fn jitter_keeps_the_order_and_the_mean() {
        let now = Instant::now();
        let mut travel = Travel::new(2, 1, now);
        let quality = Quality { delay: 10 * MS, jitter: 2 * MS, ..Quality::default() };
        let mut last = now;
        for step in 0..1000 {
            let now = now + step * MS;
            let taken = due(&mut travel, &quality, now) + CARRYING;
            assert!(taken >= 8 * MS && taken <= 12 * MS, "{taken:?}");
            assert!(now + taken >= last);
            last = now + taken;
        }
    }

    #[test]
    fn loss_and_reordering_happen_as_often_as_asked() {
        let now = Instant::now();
        let mut travel = Travel::new(2, 1, now);
        let quality = Quality { delay: MS, loss: 0.1, reorder: 0.1, ..Quality::default() };
        let fates: Vec<Fate> = (0..10_000).map(|_| travel.send(1, 100, &quality, now)).collect();
        let count = |wanted| fates.iter().filter(|fate| **fate == wanted).count();
        assert!((900..1100).contains(&count(Fate::Lost)));
        assert!((800..1000).contains(&count(Fate::Now)));
    }

    #[test]
    fn packets_arrive_when_due_and_in_order() {
        let now = Instant::now();
        let mut travel = Travel::new(3, 1, now);
        travel.hold(now + 2 * MS, 1, b"c");
        travel.hold(now + MS, 2, b"a");
        travel.hold(now + MS, 1, b"b");
        assert!(travel.arrived(now).is_none());
        let later = now + 3 * MS;
        let order: Vec<Vec<u8>> =
            std::iter::from_fn(|| travel.arrived(later)).map(|packet| packet.bytes).collect();
        assert_eq!(order, [b"a", b"b", b"c"]);
        assert_eq!(travel.next(), None);
    }
}
