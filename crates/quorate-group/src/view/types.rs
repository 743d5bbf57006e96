//! Who is here, as an entry of the log.
//!
//! Invariants, kept by [`View::advance`] on every member alike:
//! - views are numbered without gaps: an entry whose number is not the current one plus one was
//!   proposed against an older view and is ignored, so a duplicate or an old leader's does no harm;
//! - a view lists only members of the configuration in force at its log index.

use bytes::Bytes;
use quorate_consensus::{level, Config, MemberId, LEVEL};
use quorate_wire::{BodyReader, BodyWriter, PeerIdentity, WireError};

/// Who is here, in join order; the same on every member at the same log index.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct View {
    /// Counts views since the group was made.
    pub number: u64,
    pub members: Vec<ViewMember>,
    /// With a single primary: who that was when the view was made.
    pub primary: Option<MemberId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ViewMember {
    pub id: MemberId,
    pub incarnation: u32,
    pub name: String,
    /// Client address.
    pub incoming: String,
    /// Group address.
    pub addr: String,
}

const VERSION: u8 = 1;
/// With a single primary, whose id stands at the end.
const VERSION_WITH_PRIMARY: u8 = 2;
const _: () = assert!(VERSION_WITH_PRIMARY == level::NEWEST.view);
/// Least bytes of an encoded member.
const MEMBER_LEAST: usize = 16 + 4 + 3 * 2;

impl View {
    /// The view after a committed entry, or `None` if the entry counts for nothing.
    pub(crate) fn advance(
        &self,
        entry: &Bytes,
        config: &Config,
    ) -> Result<Option<View>, WireError> {
        let mut next = View::decode(entry.clone())?;
        if Some(next.number) != self.number.checked_add(1) {
            return Ok(None);
        }
        next.members.retain(|member| config.members.contains_key(&member.id));
        Ok(Some(next))
    }

    /// What is other than in the view before, and why members are gone.
    pub(crate) fn in_words(&self, before: &View, why_gone: impl Fn(MemberId) -> String) -> String {
        let old = |id| before.members.iter().find(|member| member.id == id);
        let mut changes: Vec<String> = Vec::new();
        for member in &self.members {
            match old(member.id) {
                None => changes.push(format!("{} is there", member.name)),
                Some(was) if was.incarnation != member.incarnation => {
                    changes.push(format!("{} was started anew", member.name));
                }
                Some(_) => {}
            }
        }
        for gone in &before.members {
            if !self.members.iter().any(|member| member.id == gone.id) {
                changes.push(format!("{} is gone: {}", gone.name, why_gone(gone.id)));
            }
        }
        if self.primary != before.primary {
            let name = |id| self.members.iter().find(|member| Some(member.id) == id);
            let primary = name(self.primary).map_or("every member", |member| &member.name);
            changes.push(format!("{primary} takes writes"));
        }
        if changes.is_empty() {
            changes.push("the same members".to_owned());
        }
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        format!("view {} of {}; {}", self.number, names.join(", "), changes.join("; "))
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BodyWriter::default();
        out.u8(if self.primary.is_some() { VERSION_WITH_PRIMARY } else { VERSION });
        out.u64(self.number);
        out.u32(self.members.len() as u32);
        for member in &self.members {
            out.u128(member.id.0);
            out.u32(member.incarnation);
            out.text(&member.name);
            out.text(&member.incoming);
            out.text(&member.addr);
        }
        if let Some(primary) = self.primary {
            out.u128(primary.0);
        }
        out.finish().to_bytes()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<View, WireError> {
        let mut body = BodyReader::new(bytes, "view");
        let version = body.u8()?;
        if ![VERSION, VERSION_WITH_PRIMARY].contains(&version) {
            return Err(WireError::Newer(format!(
                "its layout has version {version}: {}",
                level::upgrade(LEVEL + 1)
            )));
        }
        let number = body.u64()?;
        let count = body.count(MEMBER_LEAST)?;
        let members = (0..count).map(|_| read_member(&mut body)).collect::<Result<_, _>>()?;
        let primary = match version {
            VERSION_WITH_PRIMARY => Some(MemberId(body.u128()?)),
            _ => None,
        };
        body.end()?;
        Ok(View { number, members, primary })
    }
}

impl From<PeerIdentity> for ViewMember {
    fn from(identity: PeerIdentity) -> Self {
        Self {
            id: identity.member,
            incarnation: identity.incarnation,
            name: identity.name,
            incoming: identity.incoming,
            addr: identity.addr,
        }
    }
}

fn read_member(body: &mut BodyReader) -> Result<ViewMember, WireError> {
    Ok(ViewMember {
        id: MemberId(body.u128()?),
        incarnation: body.u32()?,
        name: body.text()?,
        incoming: body.text()?,
        addr: body.text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::{MemberInfo, MemberRole};

    fn member(id: u128) -> ViewMember {
        ViewMember { id: MemberId(id), incarnation: 1, name: format!("n{id}"), ..<_>::default() }
    }

    fn config(ids: &[u128]) -> Config {
        let info = MemberInfo::new(MemberRole::Voter, "a:1", "");
        let members = ids.iter().map(|id| (MemberId(*id), info.clone())).collect();
        Config { members, ..Config::default() }
    }

    #[test]
    fn only_the_next_number_counts_and_strangers_are_left_out() {
        let current = View { number: 4, members: vec![member(1)], primary: None };
        let primary = Some(MemberId(2));
        let next = View { number: 5, members: vec![member(2), member(1), member(3)], primary };
        let advanced = |view: &View| view.advance(&next.encode(), &config(&[1, 2])).unwrap();
        let seen = advanced(&current).unwrap();
        assert_eq!(seen, View { number: 5, members: vec![member(2), member(1)], primary });
        assert_eq!(advanced(&seen), None);
        let last = View { number: u64::MAX, members: Vec::new(), primary: None };
        let wrapped = View { number: 0, ..last.clone() };
        assert_eq!(last.advance(&wrapped.encode(), &config(&[1])).unwrap(), None, "there is none");
        let newer = current.advance(&Bytes::from_static(b"\xff"), &config(&[1])).unwrap_err();
        assert!(newer.to_string().contains("run a release on this node"), "{newer}");
    }
}
