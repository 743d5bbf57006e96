//! Total order isolation: DDL runs alone, at the same place in the order on every node.

use crate::abi::{status, wsrep_status_t};
use crate::blocking::Mutex;
use crate::isolated::action;
use crate::node::Node;
use crate::replicate::Ordered;
use crate::sync;
use crate::trx::{Handle, Phase, Trx};
use quorate_certify::{flags, KeyType, Kind};
use std::collections::HashMap;
use std::sync::Arc;

/// Isolated actions under way, by connection.
pub struct ToiTable(Mutex<HashMap<u64, Arc<Handle>>>);

impl ToiTable {
    pub fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl Node {
    /// Orders the action and blocks until it may run. With an `Ordered` and a failure, the caller
    /// still ends it.
    pub fn toi_start(
        &self,
        conn_id: u64,
        keys: &[Vec<&[u8]>],
        action: &[&[u8]],
        ws_flags: u32,
    ) -> (wsrep_status_t, Option<Ordered>) {
        let Some(link) = self.link().filter(|l| l.open_for_writes()) else {
            return (status::CONN_FAIL, None);
        };
        let Some(term) = self.writing_term() else {
            self.say_not_primary();
            return (status::CONN_FAIL, None);
        };
        let handle = Arc::new(Handle::Local(Trx::new(u64::MAX)));
        let Some(trx) = handle.local() else { return (status::FATAL, None) };
        let mut state = trx.lock();
        keys.iter().for_each(|k| state.builder.append_key(k, KeyType::Exclusive));
        let tables = named_tables(keys);
        action.iter().for_each(|a| state.builder.append_data(a));
        state.builder.append_data(&action::trailer(&tables));
        if !self.counters.allows(&state.builder) {
            return (status::SIZE_EXCEEDED, None);
        }
        let mut header =
            self.header(&link, Kind::WRITE_SET, ws_flags | flags::ISOLATION, u64::MAX, conn_id);
        header.term = term;
        let data = state.builder.finish(&header);
        state.phase = Phase::Sending;
        drop(state);
        sync::point("before_replicate_sync");
        if let Err(refused) = self.send(&link, header.serial, &handle, data) {
            return (refused, None);
        }
        let Some(fate) = link.await_fate(trx, &header) else {
            return (self.gave_up(header.flags), None);
        };
        trx.lock().commit_entered = true;
        sync::point("after_replicate_sync");
        sync::point("local_monitor_master_enter_sync");
        sync::point("apply_monitor_master_enter_sync");
        let waited = self.apply.wait(fate.seqno - 1);
        sync::point("commit_monitor_master_enter_sync");
        let entered = waited.and_then(|()| self.commit.enter_isolated(fate.seqno));
        if self.in_order(entered).is_none() {
            return (self.outcome_unknown(), None);
        }
        if fate.certified {
            self.isolated_begins(fate.seqno, &tables);
        }
        self.toi.0.lock().insert(conn_id, handle.clone());
        let ordered = Ordered { seqno: fate.seqno, depends_on: fate.depends_on };
        let code = if fate.certified { status::OK } else { status::TRX_FAIL };
        (code, Some(ordered))
    }

    /// Notes that an isolated action is about to run on this node's data.
    pub fn isolated_begins(&self, seqno: i64, tables: &[(String, String)]) {
        let history = self.link().map_or(0, |l| l.history);
        self.noted(seqno, self.isolated.begun(history, seqno, tables));
    }

    /// Notes that it has run.
    pub fn isolated_is_done(&self, seqno: i64) {
        let history = self.link().map_or(0, |l| l.history);
        self.noted(seqno, self.isolated.done(history, seqno));
    }

    fn noted(&self, seqno: i64, result: std::io::Result<()>) {
        if let Err(e) = result {
            self.warn(&format!(
                "The DDL of seqno {seqno} could not be noted in the data directory ({e}); \
                 should this node crash right now, it may execute it twice"
            ));
        }
    }

    /// The action has run (or was given up): everybody else goes on.
    pub fn toi_end(&self, conn_id: u64, error: &[u8]) -> wsrep_status_t {
        let Some(handle) = self.toi.0.lock().remove(&conn_id) else {
            return status::CONN_FAIL;
        };
        let Some(trx) = handle.local() else { return status::FATAL };
        let (seqno, certified) = {
            let state = trx.lock();
            (state.seqno(), state.fate.as_ref().is_some_and(|fate| fate.certified))
        };
        // What failed certification was executed nowhere: there is nothing to vote on. A lost vote
        // has been said by then, and the node is on its way out; the session's action is over.
        if !error.is_empty() && certified {
            let _stays = self.fails(seqno, error);
        }
        self.isolated_is_done(seqno);
        let left = self.commit.leave(seqno).and_then(|()| self.apply.leave(seqno));
        match self.in_order(left) {
            Some(()) => status::OK,
            None => status::NODE_FAIL,
        }
    }
}

/// Databases and tables among the keys of an isolated action.
fn named_tables(keys: &[Vec<&[u8]>]) -> Vec<(String, String)> {
    let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    keys.iter().filter(|k| k.len() >= 2).map(|k| (text(k[0]), text(k[1]))).collect()
}
