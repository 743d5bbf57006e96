//! What the server is shown of the group's views.

use crate::host::{HostMember, HostView, ViewStatus};
use crate::link::{node_uuid, Link};
use crate::local::NodeConfig;
use quorate_live::{View, ViewMember};

/// A group view as the server knows views.
pub fn host_view(config: &NodeConfig, link: &Link, seqno: i64, view: &View) -> HostView {
    let members = host_members(view);
    let own = link.node.to_be_bytes();
    HostView {
        uuid: link.history.to_be_bytes(),
        seqno,
        number: view.number as i64,
        status: ViewStatus::Primary,
        my_index: members.iter().position(|m| m.id == own).map_or(-1, |i| i as i32),
        members,
        proto_ver: config.proto_ver,
    }
}

/// Without a quorum: whom this node can reach, itself at least.
pub fn non_primary_view(config: &NodeConfig, link: &Link, seqno: i64) -> HostView {
    let mut members = link.group.reachable();
    if members.is_empty() {
        members.push(ViewMember {
            id: link.member,
            incarnation: link.incarnation,
            name: config.name.clone(),
            incoming: config.incoming.clone(),
            addr: String::new(),
        });
    }
    let view = View { number: 0, members, ..View::default() };
    HostView { status: ViewStatus::NonPrimary, number: -1, ..host_view(config, link, seqno, &view) }
}

/// The last one of a connection, whose end is at `seqno`.
pub fn final_view(config: &NodeConfig, link: &Link, seqno: i64) -> HostView {
    HostView {
        uuid: link.history.to_be_bytes(),
        seqno,
        number: -1,
        status: ViewStatus::Disconnected,
        my_index: -1,
        members: Vec::new(),
        proto_ver: config.proto_ver,
    }
}

/// This process, as servers know members.
pub fn own_member(config: &NodeConfig, link: &Link) -> HostMember {
    let (name, incoming) = (config.name.clone(), config.incoming.clone());
    HostMember { id: link.node.to_be_bytes(), name, incoming }
}

/// `view`, with this process in it; in the order of ids, as the server counts.
pub fn joined_by(view: &HostView, own: HostMember) -> HostView {
    let own_id = own.id;
    let others = view.members.iter().filter(|member| member.id != own_id);
    let mut members: Vec<HostMember> = others.cloned().chain([own]).collect();
    members.sort_by_key(|member| member.id);
    let my_index = members.iter().position(|member| member.id == own_id);
    HostView { my_index: my_index.map_or(-1, |at| at as i32), members, ..view.clone() }
}

pub fn refused(what: &str) -> String {
    format!("the server refused {what}: the node cannot go on; see the lines above, mend it and restart the node")
}

/// The members in the order of their ids. A server that recovers a view from a state transfer
/// finds its index, hence its `auto_increment_offset`, in that
/// order; in any other, two servers could take the same. A single primary comes first, which gives it
/// the index 0: the others write nothing, so their offsets do not matter.
fn host_members(view: &View) -> Vec<HostMember> {
    let shown = |m: &ViewMember| HostMember {
        id: node_uuid(m.id, m.incarnation).to_be_bytes(),
        name: m.name.clone(),
        incoming: m.incoming.clone(),
    };
    let mut members: Vec<_> = view.members.iter().collect();
    members.sort_by_key(|m| (view.primary != Some(m.id), node_uuid(m.id, m.incarnation)));
    members.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_consensus::MemberId;

    #[test]
    fn servers_see_members_in_the_order_of_their_ids_behind_a_single_primary() {
        let member = |id, name: &str| ViewMember {
            id: MemberId(id),
            name: name.to_string(),
            ..ViewMember::default()
        };
        let names = |primary| {
            let members = vec![member(9, "first"), member(3, "second"), member(4, "third")];
            let shown = host_members(&View { number: 1, members, primary });
            shown.into_iter().map(|m| m.name).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["second", "third", "first"]);
        assert_eq!(names(Some(MemberId(9))), ["first", "second", "third"]);
    }
}
