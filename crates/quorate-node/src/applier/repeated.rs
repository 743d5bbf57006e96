//! DDL that the database has executed already, though its position says otherwise.

use super::Appliers;
use crate::host::{HostCtx, HostView};
use crate::link::Link;
use crate::local::LocalState;
use crate::views::{self, refused};

impl Appliers {
    /// In the place of DDL that is not repeated. Where all streaming transactions end with it, a view that
    /// equals the one before has the server do that.
    pub(super) fn pass_over_ddl(
        &self,
        ctx: HostCtx,
        link: &Link,
        seqno: i64,
    ) -> Result<(), String> {
        self.votes.excuse(seqno);
        self.local.info(&format!("The DDL of seqno {seqno} was executed before the restart"));
        let last = self.shown.lock().clone();
        let Some(last) = last.filter(|_| link.severed.ends_all(seqno)) else { return Ok(()) };
        let equal = HostView { seqno: seqno - 1, ..last };
        self.show(ctx, &equal, "a view that ends streaming transactions")?;
        if self.local.state() == LocalState::Undefined {
            let cut_off = views::non_primary_view(&self.local.config, link, seqno - 1);
            self.local.host.view(ctx, &cut_off).map_err(|()| refused("a non-primary view"))?;
        }
        Ok(())
    }
}
