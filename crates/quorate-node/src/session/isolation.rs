//! Total order isolation: DDL runs alone, at the same place in the order on every node.

use crate::fate::trx::{Handle, Phase, Trx};
use crate::host::Answer;
use crate::session::{Ordered, Sessions};
use crate::start::failed::Past;
use crate::start::isolated::action;
use crate::sync;
use quorate_certify::{flags, KeyType, Kind};
use std::sync::Arc;

impl Sessions {
    /// Orders the action and blocks until it may run. With an `Ordered` and a failure, the caller
    /// still ends it.
    pub fn begin_isolated(
        &self,
        conn_id: u64,
        keys: &[Vec<&[u8]>],
        action: &[&[u8]],
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        let Some(link) = self.local.link().filter(|l| l.open_for_writes()) else {
            return (Answer::Refused, None);
        };
        let Some(term) = self.primary.writing_term() else {
            self.primary.say_not_primary();
            return (Answer::Refused, None);
        };
        let handle = Arc::new(Handle::Local(Trx::new(u64::MAX)));
        let Some(trx) = handle.local() else { return (Answer::Broken, None) };
        let mut state = trx.lock();
        keys.iter().for_each(|k| state.builder.append_key(k, KeyType::Exclusive));
        let tables = named_tables(keys);
        action.iter().for_each(|a| state.builder.append_data(a));
        state.builder.append_data(&action::trailer(&tables));
        if !self.local.counters.allows(&state.builder, 0) {
            return (Answer::TooLarge, None);
        }
        let mut header = self.proposals.header(
            &link,
            Kind::WRITE_SET,
            ws_flags | flags::ISOLATION,
            u64::MAX,
            conn_id,
        );
        header.term = term;
        let data = state.builder.finish(&header);
        state.phase = Phase::Sending;
        drop(state);
        sync::point("before_replicate_sync");
        if let Err(refused) = self.proposals.send(&link, header.serial, &handle, data) {
            return (refused, None);
        }
        let Some(fate) = link.await_fate(trx, &header) else {
            return (self.gave_up(header.flags), None);
        };
        trx.lock().commit_entered = true;
        sync::point("after_replicate_sync");
        sync::point("local_monitor_master_enter_sync");
        sync::point("apply_monitor_master_enter_sync");
        let waited = self.local.apply.wait(fate.seqno - 1);
        sync::point("commit_monitor_master_enter_sync");
        let entered = waited.and_then(|()| self.local.commit.enter_isolated(fate.seqno));
        if self.withdrawal.in_order(entered).is_none() {
            return (self.outcome_unknown(), None);
        }
        if fate.certified {
            self.records.isolated_begins(fate.seqno, &tables);
        }
        self.isolated.insert(conn_id, handle.clone());
        let ordered = Ordered { seqno: fate.seqno, depends_on: fate.depends_on };
        let code = if fate.certified { Answer::Done } else { Answer::Failed };
        (code, Some(ordered))
    }

    /// The action has run (or was given up): everybody else goes on.
    pub fn end_isolated(&self, conn_id: u64, error: &[u8]) -> Answer {
        let Some(handle) = self.isolated.remove(conn_id) else {
            return Answer::Refused;
        };
        let Some(trx) = handle.local() else { return Answer::Broken };
        let (seqno, certified) = {
            let state = trx.lock();
            (state.seqno(), state.fate.as_ref().is_some_and(|fate| fate.certified))
        };
        // What failed certification was executed nowhere: there is nothing to vote on.
        let stays = error.is_empty() || !certified || self.votes.fails(seqno, error, false);
        let is_noted = || matches!(self.records.past(seqno), Past::Error(_));
        let is_known = error.is_empty() || !certified || is_noted();
        if is_known {
            // Else the next start goes by the tables, as after a crash.
            self.records.isolated_is_done(seqno);
        }
        let left = self.local.commit.leave(seqno).and_then(|()| self.local.apply.leave(seqno));
        let left = self.withdrawal.in_order(left);
        self.note_end();
        if certified && left.is_some() {
            self.await_others(seqno);
        }
        // A lost vote has been said by then, and has halted the orders; the session's action is over.
        match left {
            None if stays => Answer::Broken,
            _ => Answer::Done,
        }
    }

    /// As if `conn_id` had begun this.
    #[cfg(test)]
    pub fn put_isolated(&self, conn_id: u64, trx: Trx) {
        self.isolated.insert(conn_id, Arc::new(Handle::Local(trx)));
    }
}

/// Databases and tables among the keys of an isolated action.
fn named_tables(keys: &[Vec<&[u8]>]) -> Vec<(String, String)> {
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    keys.iter().filter(|k| k.len() >= 2).map(|k| (text(k[0]), text(k[1]))).collect()
}
