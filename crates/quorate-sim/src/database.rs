//! What stands above the group at a member: the state that follows from the log
//! ([`Sequenced`], as the provider runs it), and what a client's write becomes.

use crate::oracle::rows::Row;
use bytes::Bytes;
use quorate_certify::{
    flags, process_uuid, Certifier, Header, Key, KeyType, Limits, Outcome, Rules, Seqno, Sequenced,
    Sequencing, WriteSet, WriteSetBuilder,
};
use quorate_consensus::level::VOTES_BY_MAJORITY;
use quorate_consensus::{Index, Level, Term};
use quorate_group::{View, ViewMember};
use quorate_seeds::mix;
use std::collections::BTreeMap;

/// More than the writes of a window have together; a table for as many as the product's would cost a seed time.
const KEYS_MAX: u64 = 1 << 14;

pub struct Database {
    state: Sequenced,
    /// Over everything decided so far: verdicts, seqnos, views.
    chain: u64,
    /// Who changed each row last, where clients look at rows.
    rows: Option<BTreeMap<Row, u32>>,
}

/// A database as it was; its bytes are made later, when it has gone on.
pub struct Frozen {
    rest: Vec<u8>,
    state: quorate_certify::Frozen,
}

impl Frozen {
    pub fn encode(self) -> Bytes {
        [&self.rest[..], &self.state.encode()].concat().into()
    }
}

/// What a client wants written, before it is stamped.
#[derive(Default)]
pub struct WriteRequest {
    pub op: u32,
    /// Rows and how each is used.
    pub rows: Vec<(u64, KeyType)>,
    pub isolation: bool,
    pub padding: usize,
    /// Of a streaming transaction.
    pub part: Part,
}

/// Which part of its transaction a write set is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Part {
    #[default]
    Whole,
    First,
    /// After the one of this seqno.
    Next(Seqno),
    Last(Seqno),
}

/// What became of a write.
pub struct Decision {
    pub op: u32,
    pub write_set: WriteSet,
    pub seqno: Seqno,
    pub outcome: Outcome,
}

impl Database {
    pub fn new(window: usize, with_rows: bool) -> Self {
        let limits = Limits { window: window as u32, keys_max: KEYS_MAX };
        let rows = with_rows.then(BTreeMap::new);
        Database { state: Sequenced::beginning(limits, 0), chain: 0, rows }
    }

    /// Differs if the state differs.
    pub fn digest(&self) -> u64 {
        mix(self.chain, self.state.certifier.digest())
    }

    pub fn seqno(&self) -> Seqno {
        self.state.certifier.seqno()
    }

    /// The operation that changed `row` last.
    pub fn last_change(&self, row: Row) -> Option<u32> {
        self.rows.as_ref()?.get(&row).copied()
    }

    /// What to propose, stamped with what this member has applied, with the term in which it is the
    /// primary (0: everybody may write), and the epoch of its kin.
    pub fn write_set(
        &self,
        (origin, serial): (u128, u64),
        (term, kin_epoch): (Term, u16),
        request: &WriteRequest,
    ) -> (Header, Bytes) {
        let mut builder = WriteSetBuilder::new();
        for (row, key_type) in &request.rows {
            builder.append_key(&[b"db", &row.to_le_bytes()], *key_type);
        }
        builder.append_data(&request.op.to_le_bytes());
        builder.append_data(&vec![b'.'; request.padding]);
        let transaction = Header::transaction(origin, serial, self.seqno());
        let mut header = Header { term, kin_epoch, ..transaction };
        if request.isolation {
            header.flags |= flags::ISOLATION;
        }
        let after = |seqno: Seqno| (header.last_seen - seqno) as u32;
        match request.part {
            Part::Whole => {}
            Part::First => header.flags &= !flags::TRX_END,
            Part::Next(seqno) => {
                header.pa_range = after(seqno);
                header.flags &= !(flags::TRX_START | flags::TRX_END);
            }
            Part::Last(seqno) => {
                header.pa_range = after(seqno);
                header.flags &= !flags::TRX_START;
            }
        }
        (header, builder.finish(&header))
    }

    /// `more`: the planted bug, whoever was here is still here.
    pub fn view(&mut self, view: &View, more: &[ViewMember]) {
        let members = view.members.iter().chain(more);
        let origins: Vec<u128> = members.map(|m| process_uuid(m.id.0, m.incarnation)).collect();
        let (seqno, _) = self.state.view(&origins);
        self.chain = mix(mix(self.chain, seqno as u64), view.number);
    }

    pub fn freeze(&self) -> Frozen {
        let mut bytes = self.chain.to_le_bytes().to_vec();
        if let Some(rows) = &self.rows {
            bytes.extend_from_slice(&(rows.len() as u32).to_le_bytes());
            for (row, op) in rows {
                bytes.extend_from_slice(&row.to_le_bytes());
                bytes.extend_from_slice(&op.to_le_bytes());
            }
        }
        Frozen { rest: bytes, state: self.state.freeze() }
    }

    pub fn restore(bytes: &[u8], with_rows: bool) -> Result<Self, String> {
        let short = "snapshot cut short";
        let (chain, mut state) = bytes.split_first_chunk::<8>().ok_or(short)?;
        let mut rows = with_rows.then(BTreeMap::new);
        if let Some(rows) = &mut rows {
            let (count, mut rest) = state.split_first_chunk::<4>().ok_or(short)?;
            for _ in 0..u32::from_le_bytes(*count) {
                let (row, after) = rest.split_first_chunk::<8>().ok_or(short)?;
                let (op, after) = after.split_first_chunk::<4>().ok_or(short)?;
                rows.insert(u64::from_le_bytes(*row), u32::from_le_bytes(*op));
                rest = after;
            }
            state = rest;
        }
        let chain = u64::from_le_bytes(*chain);
        Ok(Database { state: Sequenced::restore(state)?, chain, rows })
    }

    /// The planted bug: the index starts empty in place of being rebuilt.
    pub fn forget_index(&mut self) {
        let certifier = &self.state.certifier;
        self.state.certifier = Certifier::starting_at(certifier.limits(), certifier.seqno());
    }

    /// A transaction of fragments counts for nothing here.
    fn change_rows(&mut self, op: u32, write_set: &WriteSet) {
        let whole = !is_fragment(write_set.header());
        let Some(rows) = self.rows.as_mut().filter(|_| whole) else { return };
        for row in changed_rows(write_set) {
            rows.insert(row, op);
            self.chain = mix(mix(self.chain, row), u64::from(op));
        }
    }

    pub fn write(
        &mut self,
        index: Index,
        data: Bytes,
        (primary_term, level): (Option<Term>, Level),
    ) -> Result<Decision, String> {
        let rules = Rules::new(primary_term, level >= VOTES_BY_MAJORITY);
        let sequencing = self.state.entry(index, data, rules).map_err(|e| e.to_string())?;
        let Sequencing::WriteSet(write_set, verdict, _) = sequencing else {
            return Err("no write set".into());
        };
        let outcome = match verdict.outcome {
            Outcome::Ok => 1,
            Outcome::Conflict { with } => with as u64 + 6,
            Outcome::TooOld => 2,
            Outcome::Duplicate => 3,
            Outcome::NotPrimary => 4,
            Outcome::Orphan => 5,
        };
        self.chain = mix(self.chain, verdict.seqno as u64);
        self.chain = mix(mix(self.chain, verdict.depends_on as u64), outcome);
        let op = payload_op(&write_set).ok_or("a write set without an operation")?;
        if verdict.outcome == Outcome::Ok {
            self.change_rows(op, &write_set);
        }
        let (seqno, outcome) = (verdict.seqno, verdict.outcome);
        Ok(Decision { op, write_set, seqno, outcome })
    }
}

/// As keys name it.
pub fn row_path(row: u64) -> Row {
    let mut builder = WriteSetBuilder::new();
    builder.append_key(&[b"db", &row.to_le_bytes()], KeyType::Update);
    let bytes = builder.finish(&Header::transaction(1, 1, 0));
    changed_rows(&WriteSet::parse(bytes).expect("just built")).next().expect("of the row")
}

/// The rows that it does not only read.
pub fn changed_rows(write_set: &WriteSet) -> impl Iterator<Item = Row> + '_ {
    write_set.keys().filter(|key| key.key_type() >= KeyType::Update).map(Key::path)
}

/// Of a streaming transaction.
pub fn is_fragment(header: &Header) -> bool {
    let whole = flags::TRX_START | flags::TRX_END;
    header.flags & whole != whole
}

/// The client operation that a Data entry stands for.
pub fn op_of(data: &Bytes) -> Option<u32> {
    payload_op(&WriteSet::parse(data.clone()).ok()?)
}

fn payload_op(write_set: &WriteSet) -> Option<u32> {
    Some(u32::from_le_bytes(*write_set.payload().first_chunk()?))
}
