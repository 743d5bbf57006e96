//! Whom an order names, and whom to turn to.

use quorate_consensus::{Config, MemberId, MemberInfo};

/// The member with this id, or else of this name: members name themselves, and could call themselves by an id.
pub(super) fn find<'a>(
    config: &'a Config,
    name: &str,
) -> Result<(MemberId, &'a MemberInfo), String> {
    let by_id = config.members.iter().find(|(id, _)| id.to_string() == name);
    if let Some((id, info)) = by_id {
        return Ok((*id, info));
    }
    let mut found = config.members.iter().filter(|(_, info)| info.name == name);
    match (found.next(), found.next()) {
        (Some((id, info)), None) => Ok((*id, info)),
        (Some(_), Some(_)) => Err(format!("several members are called {name}: give the id")),
        (None, _) => {
            let names: Vec<_> = config.members.values().map(|info| info.name.as_str()).collect();
            Err(format!("no member is called {name}; there are {}", names.join(", ")))
        }
    }
}

pub(super) fn not_leading(config: &Config, leader: Option<MemberId>) -> String {
    match leader.and_then(|leader| config.members.get(&leader)) {
        Some(info) => format!("it does not lead; ask {} at {}, which does", info.name, info.addr),
        None => "the group has no leader at the moment".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::MemberRole;

    #[test]
    fn nobody_hides_behind_anothers_id() {
        let (first, second) = (MemberId(1), MemberId(2));
        let named = |name: String| MemberInfo::new(MemberRole::Voter, "a:1", &name);
        let members = [
            (first, named(second.to_string())),
            (second, named(first.to_string())),
            (MemberId(3), named("c".into())),
            (MemberId(4), named("c".into())),
        ];
        let config = Config { members: members.into(), ..Config::default() };
        for id in [first, second] {
            assert_eq!(find(&config, &id.to_string()).unwrap().0, id);
        }
        assert!(find(&config, "c").unwrap_err().contains("give the id"));
        assert!(find(&config, "d").unwrap_err().contains("no member is called d"));
    }
}
