//! What members say in a vote, as log entries.

use crate::votes::Ballot;
use bytes::{Buf, BufMut, Bytes};

/// What a log entry of kind [`Kind::VOTE`](crate::Kind::VOTE) says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoteMessage {
    pub seqno: i64,
    pub policy: u8,
    pub act: VoteAct,
    /// The error, for humans.
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoteAct {
    Cast(Ballot),
    Close,
}

impl VoteMessage {
    pub fn encode(&self) -> Vec<u8> {
        let ballot = match self.act {
            VoteAct::Close => None,
            VoteAct::Cast(ballot) => Some(ballot),
        };
        let mut out = Vec::with_capacity(18 + self.text.len());
        out.put_i64_le(self.seqno);
        out.put_u8(self.policy);
        Ballot::put(ballot, &mut out);
        out.put_slice(self.text.as_bytes());
        out
    }

    pub fn decode(data: &Bytes) -> Option<Self> {
        let mut input = &data[..];
        let seqno = input.try_get_i64_le().ok()?;
        let policy = input.try_get_u8().ok()?;
        let act = Ballot::take(&mut input)?.map_or(VoteAct::Close, VoteAct::Cast);
        Some(Self { seqno, policy, act, text: String::from_utf8_lossy(input).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_the_log_and_garbage_is_refused() {
        let acts = [
            VoteAct::Close,
            VoteAct::Cast(Ballot::Abstain),
            VoteAct::Cast(Ballot::Success),
            VoteAct::Cast(Ballot::Error(7)),
            VoteAct::Cast(Ballot::Dissent(7)),
        ];
        for act in acts {
            let message = VoteMessage { seqno: 5, policy: 1, act, text: "1062;".into() };
            assert_eq!(VoteMessage::decode(&Bytes::from(message.encode())), Some(message));
        }
        assert_eq!(VoteMessage::decode(&Bytes::from_static(b"short")), None);
    }
}
