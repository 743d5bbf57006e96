//! DDL that the database has executed already, though its position says otherwise.

use super::Appliers;
use crate::host::{HostCtx, HostMember, HostView};
use crate::link::Link;
use crate::local::LocalState;
use crate::views::{self, refused};

impl Appliers {
    /// In the place of DDL that is not repeated. Where streaming transactions ended with it, a view without
    /// their processes has the server do that; these are back in the next one.
    pub(super) fn pass_over_ddl(
        &self,
        ctx: HostCtx,
        link: &Link,
        seqno: i64,
    ) -> Result<(), String> {
        self.votes.excuse(seqno);
        self.local.info(&format!("The DDL of seqno {seqno} was executed before the restart"));
        let ended = link.severed.ended_by(seqno);
        let last = self.shown.lock().clone();
        let Some(last) = last.filter(|_| !ended.is_empty()) else { return Ok(()) };
        let last = HostView { seqno: seqno - 1, ..last };
        let stays = |member: &&HostMember| !ended.contains(&u128::from_be_bytes(member.id));
        let members = last.members.iter().filter(stays).cloned().collect();
        // With this process in it, so that it is not empty.
        let own = views::own_member(&self.local.config, link);
        let without = views::joined_by(&HostView { members, ..last.clone() }, own);
        for shown in [without, last] {
            self.show(ctx, &shown, "a view that ends streaming transactions")?;
        }
        if self.local.state() == LocalState::Undefined {
            let cut_off = views::non_primary_view(&self.local.config, link, seqno - 1);
            self.local.host.view(ctx, &cut_off).map_err(|()| refused("a non-primary view"))?;
        }
        Ok(())
    }
}
