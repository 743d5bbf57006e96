//! What the log means: certification and views, as a member's sequencer runs them.

use crate::rng::mix;
use bytes::Bytes;
use quorate_certify::{
    flags, Certifier, Header, KeyType, Outcome, Seqno, WriteSet, WriteSetBuilder,
};
use quorate_consensus::{Config, Entry, EntryKind, Index, MemberId, Primaries, Term};

/// Who is here, as the last accepted View entry said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    pub number: u64,
    pub members: Vec<MemberId>,
}

/// The replicated state after some prefix of the log.
pub struct Machine {
    certifier: Certifier,
    pub view: View,
    pub applied: Index,
    /// Over everything decided so far: verdicts, seqnos, views.
    chain: u64,
    /// Only a primary's write sets count, by the last membership before here.
    single: bool,
}

/// What a client wants written, before it is stamped.
pub struct WriteRequest {
    pub op: u32,
    /// Rows and how each is used.
    pub rows: Vec<(u64, KeyType)>,
    pub isolation: bool,
    pub padding: usize,
}

/// What became of one entry.
pub enum Applied {
    /// Nothing that consumes a seqno.
    Nothing,
    View {
        accepted: bool,
    },
    Write(Decision),
}

pub struct Decision {
    pub op: u32,
    pub write_set: WriteSet,
    pub seqno: Seqno,
    pub outcome: Outcome,
}

impl Machine {
    pub fn new(window: usize) -> Self {
        Machine {
            certifier: Certifier::new(window as u32),
            view: View::default(),
            applied: 0,
            chain: 0,
            single: false,
        }
    }

    /// The membership that holds where the log begins; later ones are entries.
    pub fn govern(&mut self, config: &Config) {
        self.single = config.rules.primaries == Primaries::Single;
    }

    pub fn seqno(&self) -> Seqno {
        self.certifier.seqno()
    }

    /// Differs if the state differs.
    pub fn digest(&self) -> u64 {
        mix(self.chain, self.certifier.digest())
    }

    /// The bytes to propose for a request, stamped with what this member has applied, and with the
    /// term in which it is the primary (0: everybody may write).
    pub fn write_set(
        &self,
        origin: u128,
        serial: u64,
        term: Term,
        request: &WriteRequest,
    ) -> Bytes {
        let mut builder = WriteSetBuilder::new();
        for (row, key_type) in &request.rows {
            builder.append_key(&[b"db", &row.to_le_bytes()], *key_type);
        }
        builder.append_data(&request.op.to_le_bytes());
        builder.append_data(&PADDING[..request.padding.min(PADDING.len())]);
        let mut header = Header { term, ..Header::transaction(origin, serial, self.seqno()) };
        if request.isolation {
            header.flags |= flags::ISOLATION;
        }
        builder.finish(&header)
    }

    pub fn apply(&mut self, entry: &Entry) -> Applied {
        self.applied = entry.index;
        match entry.kind {
            EntryKind::Noop => Applied::Nothing,
            EntryKind::Config => {
                if let Ok(config) = Config::decode(&entry.data) {
                    self.govern(&config);
                }
                Applied::Nothing
            }
            EntryKind::View => self.apply_view(&entry.data),
            EntryKind::Data => self.apply_write(&entry.data, entry.term),
            EntryKind::Unknown(kind) => unreachable!("no member makes an entry of kind {kind}"),
        }
    }

    /// The view that would follow this one, as bytes to propose.
    pub fn next_view(&self, members: &[MemberId]) -> Bytes {
        let mut out = (self.view.number + 1).to_le_bytes().to_vec();
        for member in members {
            out.extend_from_slice(&member.0.to_le_bytes());
        }
        Bytes::from(out)
    }

    pub fn snapshot(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.applied.to_le_bytes());
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&self.view.number.to_le_bytes());
        out.extend_from_slice(&(self.view.members.len() as u64).to_le_bytes());
        for member in &self.view.members {
            out.extend_from_slice(&member.0.to_le_bytes());
        }
        out.extend_from_slice(&self.certifier.snapshot());
        out
    }

    /// The state that [`snapshot`](Self::snapshot) wrote; the membership comes with it (see
    /// [`govern`](Self::govern)). An error is a finding: nothing here ever
    /// damages a snapshot.
    pub fn restore(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = bytes;
        let applied = take_u64(&mut rest)?;
        let chain = take_u64(&mut rest)?;
        let number = take_u64(&mut rest)?;
        let count = take_u64(&mut rest)?;
        let mut members = Vec::new();
        for _ in 0..count {
            let (head, tail) = rest.split_first_chunk::<16>().ok_or("snapshot cut short")?;
            members.push(MemberId(u128::from_le_bytes(*head)));
            rest = tail;
        }
        let certifier = Certifier::restore(rest).map_err(|e| e.to_string())?;
        Ok(Machine { certifier, view: View { number, members }, applied, chain, single: false })
    }

    /// The planted bug: the index starts empty in place of being rebuilt.
    pub fn forget_index(&mut self) {
        self.certifier = Certifier::starting_at(self.certifier.limits(), self.certifier.seqno());
    }

    fn apply_view(&mut self, data: &[u8]) -> Applied {
        let Some((number, members)) = data.split_first_chunk::<8>() else {
            return Applied::Nothing;
        };
        // Compare and swap: of several proposals for one number only the first counts.
        let number = u64::from_le_bytes(*number);
        let accepted = number == self.view.number + 1;
        if accepted {
            let id = |c: &[u8]| c.try_into().map(|b| MemberId(u128::from_le_bytes(b))).ok();
            self.view = View { number, members: members.chunks_exact(16).filter_map(id).collect() };
            let seqno = self.certifier.sequence_view(self.view.members.iter().map(|m| m.0));
            self.chain = mix(mix(self.chain, seqno as u64), number);
        }
        Applied::View { accepted }
    }

    fn apply_write(&mut self, data: &Bytes, term: Term) -> Applied {
        let Ok(write_set) = WriteSet::parse(data.clone()) else { return Applied::Nothing };
        let verdict = self.certifier.sequence_under(&write_set, self.single.then_some(term));
        let outcome = match verdict.outcome {
            Outcome::Ok => 1,
            Outcome::Conflict { with } => with as u64 + 5,
            Outcome::TooOld | Outcome::Orphan => 2,
            Outcome::Duplicate => 3,
            Outcome::NotPrimary => 4,
        };
        self.chain = mix(self.chain, verdict.seqno as u64);
        self.chain = mix(mix(self.chain, verdict.depends_on as u64), outcome);
        let op = payload_op(&write_set).unwrap_or(u32::MAX);
        Applied::Write(Decision { op, write_set, seqno: verdict.seqno, outcome: verdict.outcome })
    }
}

/// The client operation that a Data entry stands for.
pub fn op_of(data: &Bytes) -> Option<u32> {
    payload_op(&WriteSet::parse(data.clone()).ok()?)
}

fn payload_op(write_set: &WriteSet) -> Option<u32> {
    write_set.payload().first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, String> {
    let (head, tail) = rest.split_first_chunk::<8>().ok_or("snapshot cut short")?;
    *rest = tail;
    Ok(u64::from_le_bytes(*head))
}

/// Payload bytes of a large write set.
const PADDING: [u8; 512] = [b'.'; 512];

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: Index, kind: EntryKind, data: Bytes) -> Entry {
        Entry::new(index, 1, kind, data)
    }

    #[test]
    fn a_single_primary_is_an_entry_of_the_log() {
        let mut machine = Machine::new(16);
        let mut config = Config::default();
        config.rules.primaries = Primaries::Single;
        let writes = [0, 1, 2].map(|term| machine.write_set(1, term, term, &request(0, term)));
        machine.apply(&entry(1, EntryKind::Config, config.encode()));
        let outcomes = writes.map(|data| match machine.apply(&entry(2, EntryKind::Data, data)) {
            Applied::Write(decision) => decision.outcome,
            _ => panic!("not a write"),
        });
        assert_eq!(outcomes, [Outcome::NotPrimary, Outcome::Ok, Outcome::NotPrimary]);
    }

    fn request(op: u32, row: u64) -> WriteRequest {
        WriteRequest { op, rows: vec![(row, KeyType::Update)], isolation: false, padding: 9 }
    }

    #[test]
    fn a_restored_machine_goes_on_alike() {
        let mut a = Machine::new(16);
        a.apply(&entry(1, EntryKind::View, a.next_view(&[MemberId(7)])));
        let first = a.write_set(1, 1, 0, &request(0, 5));
        let rival = a.write_set(2, 1, 0, &request(1, 5));
        a.apply(&entry(2, EntryKind::Data, first.clone()));
        let mut b = Machine::restore(&a.snapshot()).expect("own snapshot");
        assert_eq!(a.digest(), b.digest());
        for machine in [&mut a, &mut b] {
            let Applied::Write(rival) = machine.apply(&entry(3, EntryKind::Data, rival.clone()))
            else {
                panic!("not a write")
            };
            assert!(matches!(rival.outcome, Outcome::Conflict { .. }));
            assert_eq!(rival.op, 1);
            let Applied::Write(again) = machine.apply(&entry(4, EntryKind::Data, first.clone()))
            else {
                panic!("not a write")
            };
            assert_eq!(again.outcome, Outcome::Duplicate);
        }
        assert_eq!(a.digest(), b.digest());
        assert!(matches!(
            a.apply(&entry(5, EntryKind::View, Bytes::from(1u64.to_le_bytes().to_vec()))),
            Applied::View { accepted: false }
        ));
    }
}
