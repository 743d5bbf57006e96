//! Whom an order names, and whom to turn to.

use quorate_consensus::{Config, MemberId, MemberInfo};

/// The member of this name, or with this id.
pub(super) fn find<'a>(
    config: &'a Config,
    name: &str,
) -> Result<(MemberId, &'a MemberInfo), String> {
    let mut found =
        config.members.iter().filter(|(id, m)| m.name == name || id.to_string() == name);
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
