//! All state that follows from the log, as one: verdicts and votes. Members with the same log have
//! the same, whether they have a database or not, and a snapshot is the whole of it.

use crate::vote_message::{VoteAct, VoteMessage};
use crate::votes::{Answer, Decision, Votes};
use crate::{Certifier, Kind, Limits, ParseError, Seqno, Verdict, WriteSet};
use bytes::Bytes;

/// ```text
/// magic "qseq", version u8 = 1, votes length u32, votes, certifier snapshot
/// ```
const MAGIC: &[u8; 4] = b"qseq";
const VERSION: u8 = 1;

/// What a log entry turned out to be.
pub enum Sequencing {
    WriteSet(WriteSet, Verdict),
    Vote(WriteSet, VoteMessage, Answer),
    /// A message between members that changes nothing here.
    Message(WriteSet),
}

pub struct Sequenced {
    pub certifier: Certifier,
    pub votes: Votes,
}

impl Sequenced {
    /// Before the first entry of a group whose history stands at `position` (see `genesis`).
    pub fn beginning(limits: Limits, position: i64) -> Self {
        let certifier = Certifier::starting_at(limits, position);
        Self { certifier, votes: Votes::default() }
    }

    /// The next entry. One that cannot be read is passed over by every member alike.
    pub fn entry(&mut self, data: Bytes) -> Result<Sequencing, ParseError> {
        let write_set = WriteSet::parse(data)?;
        let header = write_set.header();
        if header.kind == Kind::WRITE_SET {
            let verdict = self.certifier.sequence(&write_set);
            return Ok(Sequencing::WriteSet(write_set, verdict));
        }
        let vote = (header.kind == Kind::VOTE).then(|| VoteMessage::decode(&write_set.payload()));
        let Some(message) = vote.flatten() else { return Ok(Sequencing::Message(write_set)) };
        let answer = match message.act {
            VoteAct::Cast(ballot) => {
                self.votes.cast(message.seqno, header.origin, ballot, message.policy)
            }
            VoteAct::Close => self.votes.close(message.seqno, header.origin),
        };
        Ok(Sequencing::Vote(write_set, message, answer))
    }

    /// The next view: its seqno, and the votes that it ends.
    pub fn view(&mut self, members: &[u128]) -> (Seqno, Vec<Decision>) {
        let seqno = self.certifier.sequence_view(members.iter().copied());
        (seqno, self.votes.view(members.iter().copied()))
    }

    pub fn snapshot(&self) -> Bytes {
        let votes = self.votes.encode();
        let mut out = Vec::from(&MAGIC[..]);
        out.push(VERSION);
        out.extend_from_slice(&(votes.len() as u32).to_le_bytes());
        out.extend_from_slice(&votes);
        out.extend_from_slice(&self.certifier.snapshot());
        Bytes::from(out)
    }

    /// The state that [`Self::snapshot`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, String> {
        let damaged =
            || format!("a snapshot of {} bytes is damaged: start from another", bytes.len());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (version, rest) = rest.split_first().ok_or_else(damaged)?;
        if *version != VERSION {
            return Err(format!(
                "a snapshot has version {version}, this member reads {VERSION}: a newer member wrote it; upgrade this one"
            ));
        }
        let (len, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (votes, rest) =
            rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(damaged)?;
        Ok(Self {
            certifier: Certifier::restore(rest).map_err(|e| e.to_string())?,
            votes: Votes::decode(votes).ok_or_else(damaged)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_whole_state_and_damage_is_refused() {
        let mut state = Sequenced { certifier: Certifier::new(16), votes: Votes::default() };
        state.view(&[1, 2, 3]);
        state.votes.cast(1, 2, crate::votes::Ballot::Error(5), 0);
        let bytes = state.snapshot();
        let again = Sequenced::restore(&bytes).unwrap();
        assert_eq!((again.certifier.seqno(), &again.votes), (1, &state.votes));
        assert_eq!(again.snapshot(), bytes);
        for cut in 0..bytes.len() {
            assert!(Sequenced::restore(&bytes[..cut]).is_err());
        }
    }
}
