//! All state that follows from the log, as one: verdicts, votes and state transfers. Members with
//! the same log have the same, whether they have a database or not, and a snapshot is the whole of
//! it.

use crate::snapshot;
use crate::transfers::{Asked, StateOutcome, StateRequest, Transfers};
use crate::vote_message::{VoteAct, VoteMessage};
use crate::votes::{Answer, Ballot, Decision, Rule, Votes};
use crate::{
    Certifier, Class, Kind, Limits, OpenParts, ParseError, Places, Seqno, Verdict, WriteSet,
};
use bytes::Bytes;

/// ```text
/// magic "qseq", version u8 = 3, votes length u32, votes, transfers length u32, transfers,
/// open parts length u32, open parts, certifier snapshot
/// ```
///
/// Version 2 has no open parts, and is written where there are none: an older release may read it. Version 1,
/// which has no transfers either, is read too.
const MAGIC: &[u8; 4] = b"qseq";
const VERSION: u8 = 3;
const VERSION_WITHOUT_PARTS: u8 = 2;

/// What a log entry turned out to be.
pub enum Sequencing {
    /// With the places of its parts in the log, if it has some and they are all there.
    WriteSet(WriteSet, Verdict, Option<Places>),
    Vote(WriteSet, VoteMessage, Answer),
    StateRequest(WriteSet, StateRequest, Asked),
    StateOutcome(WriteSet, StateOutcome),
    /// A part of a large transaction, or the end of its stream.
    Part(WriteSet),
    /// A message that counts for nothing, from whom it comes or at this place of the log.
    Void(WriteSet),
    /// A message between members that changes nothing here.
    Message(WriteSet),
}

/// What the group's configuration says at a place of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// See [`Certifier::sequence_under`].
    pub primary_term: Option<u64>,
    pub votes: Rule,
}

impl Rules {
    /// `counts_majorities`: all members know [`Rule::Majority`].
    pub fn new(primary_term: Option<u64>, counts_majorities: bool) -> Self {
        let votes = if counts_majorities { Rule::Majority } else { Rule::Cast };
        Self { primary_term, votes }
    }
}

pub struct Sequenced {
    pub certifier: Certifier,
    pub votes: Votes,
    pub transfers: Transfers,
    pub parts: OpenParts,
}

impl Sequenced {
    /// Before the first entry of a group whose history stands at `position` (see `genesis`).
    pub fn beginning(limits: Limits, position: i64) -> Self {
        let certifier = Certifier::starting_at(limits, position);
        let (votes, transfers, parts) = Default::default();
        Self { certifier, votes, transfers, parts }
    }

    /// The next entry, for who only keeps the state, and tells nobody: an error is one that stops this member.
    pub fn follow(&mut self, index: u64, data: Bytes, rules: Rules) -> Result<(), ParseError> {
        match self.entry(index, data, rules) {
            Err(error) if error.is_newer() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The next entry, which is at `index` in the log, under the group's `rules` there. An error that
    /// [`ParseError::is_newer`] stops this member: others may be able to read the entry. Any other is passed over by
    /// every member alike.
    pub fn entry(
        &mut self,
        index: u64,
        data: Bytes,
        rules: Rules,
    ) -> Result<Sequencing, ParseError> {
        self.parts.passed(data.len());
        let write_set = WriteSet::parse(data)?;
        let header = write_set.header();
        if header.kind == Kind::WRITE_SET {
            let parts = header.parts.map(|parts| self.parts.take(header.origin, &parts));
            let (whole, places) = (parts != Some(None), parts.flatten());
            let verdict = self.certifier.sequence_parts(&write_set, rules.primary_term, whole);
            return Ok(Sequencing::WriteSet(write_set, verdict, places));
        }
        let payload = write_set.payload();
        let (kind, origin) = (header.kind, header.origin);
        Ok(match kind {
            Kind::VOTE => match VoteMessage::decode(&payload) {
                Some(message) => {
                    let answer = self.vote(origin, &message, rules);
                    Sequencing::Vote(write_set, message, answer)
                }
                None => Sequencing::Message(write_set),
            },
            Kind::STATE_REQUEST => match StateRequest::decode(&payload) {
                Some(request) if request.joiner == origin => {
                    let certifier = &self.certifier;
                    let present = |id| certifier.members().ids().any(|member| member == id);
                    let (serial, seqno) = (header.serial, certifier.seqno());
                    let asked = self.transfers.request(&request, serial, seqno, present);
                    Sequencing::StateRequest(write_set, request, asked)
                }
                _ => Sequencing::Message(write_set),
            },
            Kind::STATE_OUTCOME => match StateOutcome::decode(&payload) {
                Some(outcome) if self.transfers.outcome(origin, outcome.joiner) => {
                    Sequencing::StateOutcome(write_set, outcome)
                }
                Some(_) => Sequencing::Void(write_set),
                None => Sequencing::Message(write_set),
            },
            Kind::PART => {
                let (stream, number) = (header.trx_id, u32::try_from(header.conn_id));
                let mut members = self.certifier.members().ids();
                if let (Ok(number), true) = (number, members.any(|id| id == origin)) {
                    self.parts.add(origin, stream, number, index);
                }
                Sequencing::Part(write_set)
            }
            Kind::PARTS_END => {
                self.parts.end(origin, header.trx_id);
                Sequencing::Part(write_set)
            }
            Kind(unknown) => return Err(ParseError::Kind(unknown)),
        })
    }

    fn vote(&mut self, origin: u128, message: &VoteMessage, rules: Rules) -> Answer {
        let seqno = message.seqno;
        // Nobody has met an error at what is not in the log yet, and whoever answers would wait for it.
        if seqno > self.certifier.seqno() {
            return Answer::Counted;
        }
        let rule = rules.votes;
        let is_passed_over =
            matches!(self.certifier.class(seqno), Some(Class::View | Class::Failed));
        if rule == Rule::Majority && is_passed_over {
            // Nobody meets an error there; who says so all the same may leave.
            return match message.act {
                VoteAct::Close => Answer::InDoubt,
                VoteAct::Cast(_) => Answer::Counted,
            };
        }
        match message.act {
            VoteAct::Cast(ballot @ Ballot::Dissent(error)) if rule == Rule::Majority => {
                let (how, votes) = ((message.policy, rule), &mut self.votes);
                match self.certifier.may_be_committed(seqno, origin) {
                    Some(true) => votes.cast(seqno, origin, ballot, how),
                    Some(false) => votes.cast(seqno, origin, Ballot::Error(error), how),
                    None => votes.cast_in_doubt(seqno, origin, ballot, how),
                }
            }
            VoteAct::Cast(ballot) => self.votes.cast(seqno, origin, ballot, (message.policy, rule)),
            VoteAct::Close => self.votes.close(seqno, origin, rule),
        }
    }

    /// The next view: its seqno, and the votes that it ends.
    pub fn view(&mut self, members: &[u128]) -> (Seqno, Vec<Decision>) {
        let seqno = self.certifier.sequence_view(members.iter().copied());
        self.transfers.view(members);
        self.parts.view(members);
        (seqno, self.votes.view(members.iter().copied()))
    }

    /// The whole state, as it is now.
    pub fn snapshot(&self) -> Bytes {
        self.freeze().encode()
    }

    /// The state at this place of the log, to be made bytes of elsewhere: see
    /// [`Frozen`](crate::snapshot::Frozen). Of the rest there is little, so that is encoded at once.
    pub fn freeze(&self) -> Frozen {
        let mut out = Vec::from(&MAGIC[..]);
        let mut parts = vec![self.votes.encode(), self.transfers.encode()];
        if self.parts.is_empty() {
            out.push(VERSION_WITHOUT_PARTS);
        } else {
            out.push(VERSION);
            parts.push(self.parts.encode());
        }
        for part in parts {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
            out.extend_from_slice(&part);
        }
        Frozen { rest: out, certifier: self.certifier.freeze() }
    }

    /// As [`Self::restore`], of a group with these limits: with others, verdicts would differ.
    pub fn restore_within(bytes: &[u8], limits: Limits) -> Result<Self, String> {
        let state = Self::restore(bytes)?;
        match state.certifier.limits() == limits {
            true => Ok(state),
            false => Err(
                "a snapshot has other limits of certification than the group: start from another"
                    .into(),
            ),
        }
    }

    /// The state that [`Self::snapshot`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, String> {
        let damaged =
            || format!("a snapshot of {} bytes is damaged: start from another", bytes.len());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (&version, rest) = rest.split_first().ok_or_else(damaged)?;
        if !(1..=VERSION).contains(&version) {
            return Err(format!(
                "a snapshot has version {version}, this member reads {VERSION}: a newer member wrote it; upgrade this one"
            ));
        }
        let (votes, rest) = part(rest).ok_or_else(damaged)?;
        let (transfers, rest) = match version {
            1 => (&[][..], rest),
            _ => part(rest).ok_or_else(damaged)?,
        };
        let (parts, rest) = match version {
            VERSION => {
                let (parts, rest) = part(rest).ok_or_else(damaged)?;
                let open = OpenParts::decode(parts).filter(|open| !open.is_empty());
                (open.ok_or_else(damaged)?, rest)
            }
            _ => (OpenParts::default(), rest),
        };
        Ok(Self {
            certifier: Certifier::restore(rest).map_err(|e| e.to_string())?,
            votes: Votes::decode(votes).ok_or_else(damaged)?,
            transfers: Transfers::decode(transfers).ok_or_else(damaged)?,
            parts,
        })
    }
}

/// What [`Sequenced::freeze`] took.
pub struct Frozen {
    rest: Vec<u8>,
    certifier: snapshot::Frozen,
}

impl Frozen {
    pub fn encode(self) -> Bytes {
        let mut out = self.rest;
        self.certifier.encode_to(&mut out);
        Bytes::from(out)
    }
}

/// Bytes with their length before them, and what follows.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flags, process_uuid, votes, Header, Outcome, PartsOf, WriteSetBuilder};

    #[test]
    fn a_snapshot_is_the_whole_state_and_damage_is_refused() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 0);
        state.view(&[1, 2, 3]);
        let part = WriteSetBuilder::new().finish(&Header::part(1, 7, 7, 0));
        assert!(matches!(state.entry(5, part, Rules::default()), Ok(Sequencing::Part(_))));
        state.votes.cast(1, 2, Ballot::Error(5), (0, Rule::Majority));
        let request = StateRequest { donor: 1, joiner: 3, message: Bytes::new() };
        state.transfers.request(&request, 1, 1, |_| true);
        let bytes = state.snapshot();
        let again = Sequenced::restore(&bytes).unwrap();
        assert_eq!((again.certifier.seqno(), &again.votes), (1, &state.votes));
        assert_eq!((&again.transfers, &again.parts), (&state.transfers, &state.parts));
        assert_eq!(again.parts.first_index(), Some(5));
        assert_eq!(again.snapshot(), bytes);
        for cut in 0..bytes.len() {
            assert!(Sequenced::restore(&bytes[..cut]).is_err());
        }
        let limits = state.certifier.limits();
        assert!(Sequenced::restore_within(&bytes, limits).is_ok());
        let others = Limits { window: limits.window + 1, ..limits };
        assert!(
            Sequenced::restore_within(&bytes, others).is_err_and(|e| e.contains("other limits"))
        );
    }

    #[test]
    fn what_a_newer_release_proposed_is_told_apart_from_what_nobody_can_read() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 0);
        let mut entry = |kind: Kind, version: Option<u8>| {
            let header = Header { kind, ..Header::transaction(1, 1, 0) };
            let mut data = WriteSetBuilder::new().finish(&header).to_vec();
            if let Some(version) = version {
                data[0] = version;
            }
            state
                .entry(1, data.into(), Rules::default())
                .map(|_| ())
                .map_err(|error| error.is_newer())
        };
        assert_eq!(entry(Kind::WRITE_SET, None), Ok(()));
        assert_eq!(entry(Kind::VOTE, None), Ok(()), "no vote, and so for everybody");
        assert_eq!(entry(Kind(99), None), Err(true));
        assert_eq!(entry(Kind::WRITE_SET, Some(99)), Err(true));
        assert_eq!(
            state
                .entry(1, Bytes::from_static(b"noise"), Rules::default())
                .err()
                .map(|e| e.is_newer()),
            Some(false)
        );
    }

    #[test]
    fn a_vote_is_for_what_is_in_the_log_and_an_outcome_from_the_donor_that_was_asked() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 0);
        state.view(&[1, 2, 3]);
        let mut said = |origin: u128, kind: Kind, data: &[u8]| {
            let mut builder = WriteSetBuilder::new();
            builder.append_data(data);
            let header = Header { kind, ..Header::transaction(origin, 1, 0) };
            state.entry(2, builder.finish(&header), Rules::default()).unwrap()
        };
        said(1, Kind::WRITE_SET, b"rows");
        for (seqno, answer) in [(3, Answer::Counted), (2, Answer::Opened)] {
            let act = VoteAct::Cast(Ballot::Error(7));
            let vote = VoteMessage { seqno, policy: 0, act, text: String::new() };
            let Sequencing::Vote(_, _, heard) = said(1, Kind::VOTE, &vote.encode()) else {
                panic!("no vote")
            };
            assert_eq!(heard, answer);
        }
        let request = StateRequest { donor: 1, joiner: 3, message: Bytes::new() };
        said(3, Kind::STATE_REQUEST, &request.encode());
        let outcome = StateOutcome { joiner: 3, code: -1 }.encode();
        assert!(matches!(said(2, Kind::STATE_OUTCOME, &outcome), Sequencing::Void(_)));
        assert!(matches!(said(1, Kind::STATE_OUTCOME, &outcome), Sequencing::StateOutcome(..)));
    }

    #[test]
    fn a_member_that_lies_about_an_error_makes_nobody_leave() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 0);
        state.view(&[1, 2, 3]);
        let mut entry = |header: Header, data: &[u8]| {
            let mut builder = WriteSetBuilder::new();
            builder.append_data(data);
            state.entry(2, builder.finish(&header), Rules::new(None, true)).unwrap()
        };
        let says = |entry: &mut dyn FnMut(Header, &[u8]) -> Sequencing, seqno, origin, act| {
            let vote = VoteMessage { seqno, policy: 0, act, text: String::new() }.encode();
            let header = Header { kind: Kind::VOTE, ..Header::transaction(origin, 1, 0) };
            match entry(header, &vote) {
                Sequencing::Vote(_, _, answer) => answer,
                _ => panic!("no vote"),
            }
        };
        let (dissent, error) =
            (|d| VoteAct::Cast(Ballot::Dissent(d)), VoteAct::Cast(Ballot::Error(8)));
        let ddl = Header { flags: flags::ISOLATION, ..Header::transaction(2, 1, 1) };
        let own = Header::transaction(process_uuid(1, 1), 2, 1);
        for (seqno, header) in [(2, ddl), (3, own)] {
            entry(header, b"fails wherever it is executed");
            assert_eq!(says(&mut entry, seqno, 1, dissent(7)), Answer::Opened);
            assert_eq!(says(&mut entry, seqno, 1, VoteAct::Close), Answer::Counted, "{seqno}");
            assert_eq!(says(&mut entry, seqno, 2, error), Answer::Counted);
            let last = says(&mut entry, seqno, 3, error);
            assert!(matches!(last, Answer::Decided(d) if d.result == 8), "most have met that one");
        }
        entry(Header::transaction(2, 2, 1), b"committed by its origin");
        assert_eq!(says(&mut entry, 4, 1, dissent(7)), Answer::Opened);
        assert_eq!(says(&mut entry, 4, 1, VoteAct::Close), Answer::InDoubt);
        assert_eq!(says(&mut entry, 4, 2, VoteAct::Cast(Ballot::Success)), Answer::Counted);
        let last = says(&mut entry, 4, 3, VoteAct::Cast(Ballot::Success));
        assert!(matches!(last, Answer::Decided(d) if d.result == votes::SUCCESS));

        // Nobody meets an error at a view, or at what has failed certification.
        let parts = Some(PartsOf { stream: 9, count: 1, bytes: 1 });
        entry(Header { parts, serial: 3, ..own }, b"lacks one");
        for seqno in [1, 5] {
            assert_eq!(says(&mut entry, seqno, 1, error), Answer::Counted);
            assert_eq!(says(&mut entry, seqno, 2, error), Answer::Counted);
            assert_eq!(says(&mut entry, seqno, 1, VoteAct::Close), Answer::InDoubt);
        }
    }

    #[test]
    fn a_large_transaction_passes_with_all_its_parts_and_fails_on_all_members_without_one() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 0);
        state.view(&[1, 2]);
        let mut verdicts = |numbers: &[u32], count| {
            let mut builder = WriteSetBuilder::new();
            for number in numbers {
                builder.append_data(b"rows");
                let header = Header::part(1, 50 + u64::from(*number), 50, *number);
                let part = builder.take_part(9).finish(&header, None);
                state.entry(u64::from(*number) + 3, part, Rules::default()).unwrap();
            }
            let parts = Some(PartsOf { stream: 50, count, bytes: 4 * numbers.len() as u64 });
            let last = builder
                .finish(&Header { parts, ..Header::transaction(1, 90 + u64::from(count), 1) });
            match state.entry(9, last, Rules::default()) {
                Ok(Sequencing::WriteSet(write_set, verdict, places)) => {
                    assert_eq!(write_set.header().parts, parts);
                    (verdict.outcome, places)
                }
                _ => panic!("no write set"),
            }
        };
        assert_eq!(verdicts(&[0, 1, 2], 3), (Outcome::Ok, Some(Box::from([3, 4, 5]))));
        assert_eq!(verdicts(&[0, 1], 4), (Outcome::Orphan, None));
        assert_eq!(verdicts(&[], 0), (Outcome::Ok, Some(Box::from([]))));
        assert!(state.parts.is_empty());
    }

    #[test]
    fn its_version_is_that_of_the_newest_level() {
        assert_eq!(VERSION, quorate_consensus::level::NEWEST.sequenced);
    }

    #[test]
    fn a_snapshot_of_the_first_version_is_read() {
        let mut state = Sequenced::beginning(Certifier::new(16).limits(), 7);
        state.view(&[1, 2]);
        let bytes = state.snapshot();
        let votes = state.votes.encode().len();
        let (head, rest) = bytes.split_at(MAGIC.len() + 1);
        assert_eq!(head[4], VERSION_WITHOUT_PARTS);
        let (votes, rest) = rest.split_at(4 + votes);
        assert_eq!(rest[..4], [0; 4], "no transfers");
        let first = [&head[..4], &[1], votes, &rest[4..]].concat();
        assert_eq!(Sequenced::restore(&first).unwrap().snapshot(), bytes);
    }
}
