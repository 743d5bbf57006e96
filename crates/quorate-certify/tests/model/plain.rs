//! A certifier so plain that it can be read as the definition.

use quorate_certify::*;

struct Past {
    seqno: Seqno,
    /// `None`: a view.
    header: Option<Header>,
    passed: bool,
    barrier: bool,
    keys: Vec<Key>,
}

/// Keeps every item of the window whole and compares each newcomer with each key of each.
pub struct Model {
    limits: Limits,
    window: Vec<Past>,
    floor: Seqno,
    /// All views ever, never forgotten.
    views: Vec<(Seqno, Vec<u128>)>,
}

impl Model {
    pub fn new(limits: Limits, start: Seqno) -> Model {
        Model { limits, window: Vec::new(), floor: start, views: Vec::new() }
    }

    pub fn seqno(&self) -> Seqno {
        self.floor + self.window.len() as Seqno
    }

    pub fn sequence_view(&mut self, members: &[u128]) -> Seqno {
        let seqno = self.seqno() + 1;
        self.views.push((seqno, members.to_vec()));
        self.push(Past { seqno, header: None, passed: true, barrier: true, keys: vec![] });
        seqno
    }

    pub fn sequence(&mut self, write_set: &WriteSet) -> Verdict {
        let header = *write_set.header();
        let seqno = self.seqno() + 1;
        let outcome = self.decide(write_set, seqno);
        let barrier = match outcome {
            Outcome::Ok => {
                header.has(flags::ISOLATION)
                    || header.has(flags::PA_UNSAFE)
                    || header.has(flags::ROLLBACK)
            }
            Outcome::Duplicate => false,
            _ => !header.has(flags::ISOLATION) && !header.has(flags::TRX_START),
        };
        let mut lower = vec![self.floor];
        lower.extend(self.window.iter().filter(|past| past.barrier).map(|past| past.seqno));
        if header.pa_range != u32::MAX {
            lower.push(header.last_seen.saturating_sub(header.pa_range.into()).min(seqno - 1));
        }
        if header.has(flags::IMPLICIT_DEPS) {
            lower.push(header.last_seen.min(seqno - 1));
        }
        if barrier {
            lower.push(seqno - 1);
        }
        if outcome == Outcome::Ok && !header.has(flags::ISOLATION) && !header.has(flags::ROLLBACK) {
            lower.extend(self.related(write_set).map(|(past, _)| past.seqno));
        }
        let passed = outcome == Outcome::Ok;
        let enters = passed && !header.has(flags::ROLLBACK);
        let keys = if enters { write_set.keys().collect() } else { vec![] };
        self.push(Past { seqno, header: Some(header), passed, barrier, keys });
        let depends_on = lower.into_iter().max().expect("has the floor");
        Verdict { seqno, outcome, depends_on }
    }

    fn decide(&self, write_set: &WriteSet, seqno: Seqno) -> Outcome {
        let header = *write_set.header();
        let is_same = |h: &Header| h.origin == header.origin && h.serial == header.serial;
        if self.window.iter().any(|past| past.header.as_ref().is_some_and(is_same)) {
            return Outcome::Duplicate;
        }
        if header.last_seen < self.floor || header.last_seen >= seqno {
            return Outcome::TooOld;
        }
        if header.has(flags::ISOLATION) || header.has(flags::ROLLBACK) {
            return Outcome::Ok;
        }
        if !self.may_stream(&header) {
            return Outcome::Orphan;
        }
        let conflicts = self.related(write_set).filter(|(past, relation)| {
            let earlier = past.header.expect("views have no keys");
            *relation == Relation::Conflict
                && past.seqno > header.last_seen
                && (earlier.has(flags::ISOLATION)
                    || earlier.origin != header.origin
                    || earlier.kin_epoch != header.kin_epoch)
        });
        match conflicts.map(|(past, _)| past.seqno).max() {
            Some(with) => Outcome::Conflict { with },
            None => Outcome::Ok,
        }
    }

    /// A fragment's origin is in the last view, and no view after what it follows has left it out
    /// or repeated the one before it.
    fn may_stream(&self, header: &Header) -> bool {
        let (start, end) = (header.has(flags::TRX_START), header.has(flags::TRX_END));
        let follows = match header.pa_range {
            _ if start && end => return true,
            _ if start => header.last_seen,
            u32::MAX => return false,
            range => header.last_seen - Seqno::from(range),
        };
        let is_in = |(_, members): &(Seqno, Vec<u128>)| members.contains(&header.origin);
        let after = self.views.iter().position(|(seqno, _)| *seqno > follows);
        let after = after.unwrap_or(self.views.len());
        let broken = (after..self.views.len())
            .any(|v| !is_in(&self.views[v]) || (v > 0 && self.views[v - 1].1 == self.views[v].1));
        self.views[..after].last().is_some_and(is_in) && !broken
    }

    fn related<'a>(
        &'a self,
        write_set: &'a WriteSet,
    ) -> impl Iterator<Item = (&'a Past, Relation)> + 'a {
        let pairs = self
            .window
            .iter()
            .filter(|past| past.passed)
            .flat_map(|past| past.keys.iter().map(move |earlier| (past, earlier)))
            .flat_map(|(past, earlier)| write_set.keys().map(move |later| (past, earlier, later)));
        pairs.filter(|(_, earlier, later)| earlier.path() == later.path()).filter_map(
            |(past, earlier, later)| match relation(earlier.key_type(), later.key_type()) {
                Relation::Free => None,
                relation => Some((past, relation)),
            },
        )
    }

    fn push(&mut self, past: Past) {
        self.window.push(past);
        let keys = |window: &[Past]| window.iter().map(|past| past.keys.len() as u64).sum::<u64>();
        while self.window.len() > self.limits.window as usize
            || keys(&self.window) > self.limits.keys_max
        {
            self.window.remove(0);
            self.floor += 1;
        }
    }
}
