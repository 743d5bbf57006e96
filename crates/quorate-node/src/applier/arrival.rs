//! The first words to the server on each connection: who it is and where it stands, or that it
//! needs a state transfer.
//!
//! Invariant: the server is told of every view of the log after its position, in order, whether it
//! is in it or not, and first of the view that holds at its position. The server rolls back the
//! streaming transactions (its own, and those it applies for others) that a view ends, by comparing
//! it with the one before; all servers do the same at the same place only if they compare the same
//! pairs, and the group's verdicts on later fragments count on that (`quorate_certify::Members`).
//!
//! Two details of the server follow from this. After a reconnection it still remembers the last
//! view of the connection before, which would look like the first half of an equal pair; so the
//! view of its position is preceded by one with this process in addition, which ends nothing: it
//! has no streaming transactions yet. And a view without its own process makes it roll back its
//! own open streaming transactions, which is right: the others do.

use super::Appliers;
use crate::host::{HostCtx, HostMember, HostView};
use crate::link::Link;
use crate::local::LocalState;
use crate::start::resume::check_confirmed;
use crate::views::{self, joined_by, refused};
use crate::withdraw::Stop;

impl Appliers {
    /// False: the connection is being closed, and the server was told nothing, or has no state.
    pub fn introduce(&self, ctx: HostCtx, link: &Link) -> Result<bool, Stop> {
        let first = link.progress.wait_first_view(|| link.closing());
        let Some((seqno, view)) = first else { return Ok(false) };
        if link.start().is_some_and(|at| !self.votes.settles_last_error(link, at)) {
            if link.closing() {
                return Ok(false);
            }
            self.local.info("The group has another result than this node on its last write set: it needs a state transfer");
            link.needs_transfer();
        }
        if link.start().is_some() && link.severed.may_go_on() {
            self.local.info("DDL ran right before this node stopped, and the database may have transactions open that ended with it, or not: it needs a state transfer");
            link.needs_transfer();
        }
        match link.announce_start() {
            Some(start) => {
                check_confirmed(start, self.records.last_isolated(), seqno)
                    .inspect_err(|_| self.records.note_refused(link, start))?;
                self.records.forget_refused();
                self.records.note_group(link)?;
                let own = views::host_view(&self.local.config, link, start, &view);
                let at_start = view_at_start(&own, &link.progress.start_members());
                let member = || views::own_member(&self.local.config, link);
                let with_self =
                    at_start.as_ref().map_or_else(|| own.clone(), |v| joined_by(v, member()));
                self.local.host.connected(&with_self).map_err(|()| refused("the connection"))?;
                for shown in std::iter::once(with_self).chain(at_start) {
                    self.show(ctx, &shown, "the first view")?;
                }
                self.local.set_state(LocalState::Joined);
                self.catch_up.say_missed(start, seqno);
                self.catch_up.set_target(seqno);
                Ok(true)
            }
            None => {
                let at = views::host_view(&self.local.config, link, seqno, &view);
                self.local.host.connected(&at).map_err(|()| refused("the connection"))?;
                self.local.set_state(LocalState::Joiner);
                self.records.note_transfer(link)?;
                let position = self.transfer.receive(link)?;
                if position.is_none() {
                    return Ok(false);
                }
                // First: what is noted may be of the place where the new state will stand one day.
                self.records.forget_refused();
                self.records.note_group(link)?;
                link.state_received();
                self.local.set_state(LocalState::Joined);
                self.catch_up.set_target(seqno.max(link.progress.seqno()));
                Ok(true)
            }
        }
    }
}

/// The view that holds where the database stands; `None` before the group's first. The log keeps
/// the members' ids; who of them is still there has its name in `own`.
fn view_at_start(own: &HostView, members: &[u128]) -> Option<HostView> {
    let member = |id: &u128| {
        let id = id.to_be_bytes();
        own.members.iter().find(|m| m.id == id).cloned().unwrap_or_else(|| HostMember {
            id,
            name: String::new(),
            incoming: String::new(),
        })
    };
    let members: Vec<HostMember> = members.iter().map(member).collect();
    (!members.is_empty()).then(|| HostView { my_index: -1, members, ..own.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(ids: &[u128], my_index: i32) -> HostView {
        let members = ids.iter().map(|id| HostMember {
            id: id.to_be_bytes(),
            name: format!("n{id}"),
            incoming: String::new(),
        });
        HostView {
            uuid: [0; 16],
            seqno: 9,
            number: 4,
            status: crate::host::ViewStatus::Primary,
            my_index,
            members: members.collect(),
            proto_ver: 4,
        }
    }

    #[test]
    fn a_returning_process_is_no_half_of_an_equal_pair() {
        let own = view(&[1, 22], 1);
        let names = |v: &HostView| v.members.iter().map(|m| m.name.clone()).collect::<Vec<_>>();
        let at_start = view_at_start(&own, &[1, 33]).unwrap();
        assert_eq!((at_start.my_index, names(&at_start)), (-1, vec!["n1".into(), "".into()]));
        let with_self = joined_by(&at_start, own.members[1].clone());
        assert_eq!((with_self.my_index, &names(&with_self)[1]), (1, &"n22".to_string()));
        assert_eq!(with_self.members.len(), 3);
        assert!(view_at_start(&own, &[]).is_none(), "before the first view");
    }
}
