//! Who talks to whom, and in which version: the first packets of a connection.
//!
//! The side that dials says [`Hello`]; the other answers [`Welcome`] or [`Refusal`]. The layout of
//! `Hello` up to the version range, and that of `Refusal`, never change, so that any two versions
//! can tell each other why they do not talk.

use crate::body::{BodyReader, BodyWriter};
use crate::error::WireError;
use quorate_consensus::level::NEWEST;
use quorate_consensus::{Charter, KeyId, Level, MemberId};

/// Oldest and newest protocol this build speaks.
pub const PROTOCOL_MIN: u16 = 2;
pub const PROTOCOL_MAX: u16 = 2;
const _: () = assert!(PROTOCOL_MAX == NEWEST.protocol);

/// What the dialling side wants of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Want {
    /// Carry this member's packets to the other side.
    Peer = 0,
    /// Ask for admission to the group: one request, one answer.
    Join = 1,
    /// Ask how this member is: one request, one answer. Needs no group.
    Status = 2,
    /// Give orders, and ask how things are, as an operator: requests and answers, and nothing that a member
    /// says. Needs no group.
    Operator = 3,
}

/// One process of one member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PeerIdentity {
    pub member: MemberId,
    pub incarnation: u32,
    /// 0: belongs to no group yet.
    pub group: u128,
    /// That group's.
    pub charter: Charter,
    /// The lowest and the highest feature level that it knows.
    pub levels: (Level, Level),
    pub group_name: String,
    /// Node name.
    pub name: String,
    /// Group address, `host:port`.
    pub addr: String,
    /// Client address.
    pub incoming: String,
    /// What the connection has shown, not what was said on it: it does not travel.
    pub key: KeyId,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    pub versions: (u16, u16),
    pub want: Want,
    pub from: PeerIdentity,
    /// The member this connection is meant for; refused by any other.
    pub expects: Option<MemberId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The version both speak from now on.
    pub version: u16,
    pub from: PeerIdentity,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RefusalCode {
    Version = 1,
    /// Another group id or name.
    OtherGroup = 2,
    /// Not the member that was expected at this address.
    OtherMember = 3,
    /// The dialler reached itself.
    Yourself = 4,
    /// Not now (closing, too many connections): try again.
    Busy = 5,
    /// An incarnation or identity that cannot be right.
    Stale = 6,
    /// Cut off by its operator (`gmcast.isolate`). Whoever answers so has forsworn to go on
    /// without the others.
    Isolated = 7,
    /// An older state of a member: a restored image, or a copy of its directory.
    RolledBack = 8,
    /// One side encrypts its connections, the other one does not. It is said in the clear, so it proves
    /// nothing but that somebody is there.
    Security = 9,
    /// Who dials is not let in as what it wants to be: an operator that has no right here, or one that wants
    /// to be heard as a member.
    Forbidden = 10,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub code: RefusalCode,
    /// For the log of the refused side.
    pub text: String,
}

impl Hello {
    /// The newest version that both sides speak.
    pub fn agree(&self) -> Result<u16, Refusal> {
        let version = self.versions.1.min(PROTOCOL_MAX);
        if version >= self.versions.0.max(PROTOCOL_MIN) {
            return Ok(version);
        }
        let text = format!(
            "no common protocol version: the dialling member speaks {} to {}, this one {} to {}; \
             upgrade the older of the two",
            self.versions.0, self.versions.1, PROTOCOL_MIN, PROTOCOL_MAX
        );
        Err(Refusal { code: RefusalCode::Version, text })
    }

    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u16(self.versions.0);
        out.u16(self.versions.1);
        out.u8(self.want as u8);
        self.from.encode(out);
        out.u128(self.expects.map_or(0, |id| id.0));
    }

    /// Fields that a later version appends are skipped, so that it can be refused by name.
    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        let versions = (body.u16()?, body.u16()?);
        let want = match body.u8()? {
            0 => Want::Peer,
            1 => Want::Join,
            2 => Want::Status,
            3 => Want::Operator,
            value => return Err(WireError::BadValue { what: "hello", value: value.into() }),
        };
        let from = PeerIdentity::decode(body)?;
        let expects = Some(MemberId(body.u128()?)).filter(|id| id.0 != 0);
        body.rest();
        Ok(Self { versions, want, from, expects })
    }
}

impl Welcome {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u16(self.version);
        self.from.encode(out);
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        Ok(Self { version: body.u16()?, from: PeerIdentity::decode(body)? })
    }
}

impl Refusal {
    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u8(self.code as u8);
        out.text(&self.text);
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        let code = match body.u8()? {
            1 => RefusalCode::Version,
            2 => RefusalCode::OtherGroup,
            3 => RefusalCode::OtherMember,
            4 => RefusalCode::Yourself,
            5 => RefusalCode::Busy,
            6 => RefusalCode::Stale,
            7 => RefusalCode::Isolated,
            8 => RefusalCode::RolledBack,
            9 => RefusalCode::Security,
            10 => RefusalCode::Forbidden,
            value => return Err(WireError::BadValue { what: "refusal", value: value.into() }),
        };
        Ok(Self { code, text: body.text()? })
    }
}

/// Bytes of a name, an address or a zone: those of all members are in each configuration.
pub const NAME_MAX: usize = 255;

impl PeerIdentity {
    pub fn check_names(&self) -> Result<(), Refusal> {
        if [&self.name, &self.addr, &self.incoming].iter().all(|text| text.len() <= NAME_MAX) {
            return Ok(());
        }
        let text =
            format!("the name and the addresses of a node have at most {NAME_MAX} bytes each");
        Err(Refusal { code: RefusalCode::Stale, text })
    }

    /// Whether it can be in a group that works at `level` (0: this is none yet).
    pub fn check_level(&self, level: Level) -> Result<(), Refusal> {
        let (lowest, highest) = self.levels;
        if level == 0 || (lowest..=highest).contains(&level) {
            return Ok(());
        }
        let node = &self.name;
        let remedy = if highest < level {
            format!("its release is too old: install one on node {node} that knows level {level}")
        } else {
            format!(
                "its release is too new: first run a release on all other nodes that knows level \
                 {lowest}; the group goes there by itself"
            )
        };
        let text = format!(
            "the group works at level {level}, node {node} knows the levels {lowest} to {highest}: \
             {remedy}"
        );
        Err(Refusal { code: RefusalCode::Version, text })
    }

    pub(crate) fn encode(&self, out: &mut BodyWriter) {
        out.u128(self.member.0);
        out.u32(self.incarnation);
        out.u128(self.group);
        self.charter.0.iter().for_each(|field| out.u64(*field));
        out.u16(self.levels.0);
        out.u16(self.levels.1);
        out.text(&self.group_name);
        out.text(&self.name);
        out.text(&self.addr);
        out.text(&self.incoming);
    }

    pub(crate) fn decode(body: &mut BodyReader) -> Result<Self, WireError> {
        Ok(Self {
            member: MemberId(body.u128()?),
            incarnation: body.u32()?,
            group: body.u128()?,
            charter: read_charter(body)?,
            levels: (body.u16()?, body.u16()?),
            group_name: body.text()?,
            name: body.text()?,
            addr: body.text()?,
            incoming: body.text()?,
            key: KeyId::default(),
        })
    }
}

fn read_charter(body: &mut BodyReader) -> Result<Charter, WireError> {
    let mut charter = Charter::default();
    for field in &mut charter.0 {
        *field = body.u64()?;
    }
    Ok(charter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(versions: (u16, u16)) -> Hello {
        Hello { versions, want: Want::Peer, from: PeerIdentity::default(), expects: None }
    }

    #[test]
    fn the_newest_common_version_is_chosen() {
        assert_eq!(hello((2, 7)).agree(), Ok(2));
        assert_eq!(hello((0, 2)).agree(), Ok(2));
    }

    #[test]
    fn a_member_too_old_or_too_new_for_the_group_is_told_what_to_run() {
        let peer = PeerIdentity { levels: (2, 4), name: "n7".into(), ..PeerIdentity::default() };
        for level in [0, 2, 3, 4] {
            assert_eq!(peer.check_level(level), Ok(()));
        }
        let told = |level| peer.check_level(level).unwrap_err().text;
        assert!(told(5).contains("too old") && told(5).contains("node n7 that knows level 5"));
        assert!(told(1).contains("too new") && told(1).contains("knows level 2"));
    }

    #[test]
    fn long_names_are_refused_whatever_they_name() {
        let long = || "x".repeat(NAME_MAX + 1);
        let peer = PeerIdentity::default;
        assert_eq!(PeerIdentity { name: "x".repeat(NAME_MAX), ..peer() }.check_names(), Ok(()));
        for each in [
            PeerIdentity { name: long(), ..peer() },
            PeerIdentity { addr: long(), ..peer() },
            PeerIdentity { incoming: long(), ..peer() },
        ] {
            assert!(each.check_names().is_err());
        }
    }

    #[test]
    fn a_refusal_names_both_ranges() {
        let refusal = hello((5, 9)).agree().unwrap_err();
        assert_eq!(refusal.code, RefusalCode::Version);
        assert!(refusal.text.contains("5 to 9") && refusal.text.contains("2 to 2"));
    }
}
