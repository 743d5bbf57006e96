//! Who is to be in the next view, as a pure function of what the leader knows.

use super::types::{View, ViewMember};
use quorate_consensus::{Config, MemberId, MemberRole, Primaries};
use std::collections::BTreeMap;

/// What the leader knows of a member's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Here(ViewMember),
    Gone,
    /// Not heard of for a while, but not long enough; or not yet since this member leads.
    Unclear,
}

/// The view to propose, if it is not `current`: who is here, those of `current` in its order
/// first. A member whose process restarted has left and joined again. `refresh` asks for a new
/// number even if nobody came or went. With a single primary it says that
/// `leader` is it. Loggers are in no view: they have no database.
pub(crate) fn next_view(
    current: &View,
    config: &Config,
    leader: MemberId,
    presence: &BTreeMap<MemberId, Presence>,
    refresh: bool,
) -> Option<View> {
    let has_data =
        |id: &MemberId| config.members.get(id).is_some_and(|info| info.role != MemberRole::Logger);
    let mut members: Vec<ViewMember> = Vec::new();
    for old in current.members.iter().filter(|old| has_data(&old.id)) {
        match presence.get(&old.id) {
            Some(Presence::Here(now)) if now.incarnation == old.incarnation => {
                members.push(now.clone());
            }
            Some(Presence::Here(_) | Presence::Gone) => {}
            Some(Presence::Unclear) | None => members.push(old.clone()),
        }
    }
    for id in config.members.keys().filter(|id| has_data(id)) {
        let listed = members.iter().any(|member| member.id == *id);
        if let (false, Some(Presence::Here(now))) = (listed, presence.get(id)) {
            members.push(now.clone());
        }
    }
    let primary = (config.rules.primaries == Primaries::Single).then_some(leader);
    if members == current.members && primary == current.primary && !refresh {
        return None;
    }
    Some(View { number: current.number.checked_add(1)?, members, primary })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::MemberInfo;

    fn member(id: u128, incarnation: u32) -> ViewMember {
        ViewMember { id: MemberId(id), incarnation, ..ViewMember::default() }
    }

    fn voters(ids: &[u128]) -> Config {
        let info =
            |id: u128| MemberInfo::new(MemberRole::Voter, format!("host{id}:1"), format!("n{id}"));
        let members = ids.iter().map(|id| (MemberId(*id), info(*id))).collect();
        Config { members, ..Config::default() }
    }

    #[test]
    fn views_keep_their_order_and_restarted_members_join_again() {
        let members = vec![member(9, 1), member(2, 1), member(5, 1)];
        let current = View { number: 3, members, ..View::default() };
        let presence = |list: &[(u128, Presence)]| {
            list.iter().map(|(id, presence)| (MemberId(*id), presence.clone())).collect()
        };
        let config = voters(&[2, 5, 7, 9]);

        let same = presence(&[(9, Presence::Unclear), (5, Presence::Here(member(5, 1)))]);
        assert_eq!(next_view(&current, &config, MemberId(2), &same, false), None);
        let refreshed = next_view(&current, &config, MemberId(2), &same, true).unwrap();
        assert_eq!(refreshed, View { number: 4, ..current.clone() });

        let moved = presence(&[
            (2, Presence::Gone),
            (7, Presence::Here(member(7, 1))),
            (9, Presence::Here(member(9, 2))),
        ]);
        let next = next_view(&current, &config, MemberId(2), &moved, false).unwrap();
        assert_eq!(next.members, [member(5, 1), member(7, 1), member(9, 2)]);

        let removed =
            next_view(&current, &voters(&[2, 5]), MemberId(2), &BTreeMap::new(), false).unwrap();
        assert_eq!(removed.members, [member(2, 1), member(5, 1)]);
    }

    #[test]
    fn a_view_names_the_single_primary_and_follows_it() {
        let members = vec![member(2, 1), member(5, 1)];
        let current = View { number: 3, members, ..View::default() };
        let mut config = voters(&[2, 5]);
        let next = |current: &View, config: &Config, leader| {
            next_view(current, config, MemberId(leader), &BTreeMap::new(), false)
        };
        assert_eq!(next(&current, &config, 2), None);
        config.rules.primaries = Primaries::Single;
        let named = next(&current, &config, 2).unwrap();
        assert_eq!(named, View { number: 4, primary: Some(MemberId(2)), ..current });
        assert_eq!(next(&named, &config, 2), None);
        assert_eq!(next(&named, &config, 5).unwrap().primary, Some(MemberId(5)));
        config.rules.primaries = Primaries::Multi;
        assert_eq!(next(&named, &config, 5).unwrap().primary, None);
    }
}
