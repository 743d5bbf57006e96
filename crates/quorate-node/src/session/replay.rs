//! A local transaction that gave way to one with priority, once more.

use super::Sessions;
use crate::fate::trx::{Handle, Phase};
use crate::host::{Answer, ApplyCall, HostCtx};
use crate::whole_data::{whole_data, Unreadable};
use std::sync::Arc;

impl Sessions {
    /// Applies the write set of a local transaction that was aborted after it was certified.
    pub fn replay(&self, handle: &Arc<Handle>, ctx: HostCtx) -> Answer {
        let Some(trx) = handle.local() else { return Answer::Missing };
        let mut state = trx.lock();
        let Some(fate) = state.fate.clone() else { return Answer::Refused };
        if !fate.certified {
            state.phase = Phase::Aborting;
            return Answer::Failed;
        }
        let conn_id = state.conn_id;
        state.phase = Phase::Replaying;
        drop(state);
        self.local.counters.local_replay();
        let waited = self.local.apply.wait(fate.depends_on);
        let waited = waited.and_then(|()| self.local.commit.wait_left(fate.seqno - 1));
        if self.withdrawal.in_order(waited).is_none() {
            return self.outcome_unknown();
        }
        let Some(link) = self.local.link() else { return Answer::Broken };
        let data = match whole_data(&self.local, &link, link.node, &fate) {
            Ok(data) => data,
            // It was whole when this node proposed it.
            Err(Unreadable::Here(why) | Unreadable::Everywhere(why)) => {
                self.withdrawal.cannot_read(fate.seqno, &why);
                return self.outcome_unknown();
            }
        };
        let call = ApplyCall {
            handle,
            trx_id: trx.id,
            flags: fate.flags,
            data: &data,
            meta: link.meta(&fate, link.node, trx.id, conn_id),
        };
        match self.local.host.apply(ctx, &call) {
            Ok(_) => Answer::Done,
            Err(()) => {
                self.withdrawal.inconsistent(&format!(
                    "replaying the local transaction {} (seqno {}) failed",
                    trx.id, fate.seqno
                ));
                Answer::Broken
            }
        }
    }
}
