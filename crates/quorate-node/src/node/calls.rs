//! What a host may call, part by part. See the parts for what they do.

use super::Node;
use crate::applier::ApplierEnd;
use crate::counters::Counters;
use crate::fate::trx::{Handle, TrxTable};
use crate::gtid_domain;
use crate::host::{Answer, HostCtx};
use crate::link::Link;
use crate::local::{LocalState, NodeConfig};
use crate::order::queue::Queued;
use crate::session::Ordered;
use crate::settings::Settings;
use crate::start::{Position, UnusableNote};
use std::sync::Arc;
use std::time::Duration;

/// The node as such.
impl Node {
    pub fn config(&self) -> &NodeConfig {
        &self.local.config
    }

    pub fn counters(&self) -> &Counters {
        &self.local.counters
    }

    /// Begins to count anew.
    pub fn reset_counters(&self) {
        self.local.counters.reset();
        if let Some(link) = self.local.link() {
            link.flow.reset();
        }
    }

    pub fn local_state(&self) -> LocalState {
        self.local.state()
    }

    /// The connection to the group, while there is one.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.local.link()
    }

    /// The last seqno up to which everything is visible here.
    pub fn last_applied(&self) -> i64 {
        self.local.apply.last_left()
    }

    /// The last seqno that has left commit order.
    pub fn last_left_commit_order(&self) -> i64 {
        self.local.commit.last_left()
    }

    /// How many events wait to be applied.
    pub fn queued(&self) -> Queued {
        self.local.queue.queued()
    }

    /// How old, by the clock of its origin, the first write set is that is ordered and not applied. A database
    /// that is still to come from another node lags behind nothing.
    pub fn lag(&self) -> Duration {
        self.local.lag()
    }

    /// The operator has changed something.
    pub fn configure(&self, settings: Settings) {
        self.local.configure(settings);
        self.transfer.let_ddl_run_if_told();
        self.exit.settings_changed();
    }

    /// Runs `body` on a thread of its own, which is waited for before the node is freed: so it must end when the
    /// connection to the group does.
    pub fn helper(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.helpers.spawn(name, body)
    }

    pub fn error(&self, text: &str) {
        self.local.error(text);
    }

    pub fn warn(&self, text: &str) {
        self.local.warn(text);
    }

    pub fn info(&self, text: &str) {
        self.local.info(text);
    }

    /// Before the server takes in anything of the group. `founding`: it is told to begin a cluster.
    pub fn settle_gtid_domain(&self, founding: bool) -> Result<(), UnusableNote> {
        gtid_domain::settle(&self.local, founding)
    }
}

/// Sessions.
impl Node {
    /// The transactions that have begun and were not released.
    pub fn transactions(&self) -> &TrxTable {
        self.sessions.transactions()
    }

    pub fn append_data(&self, handle: &Handle, data: &[u8]) {
        self.sessions.append_data(handle, data);
    }

    pub fn certify(
        &self,
        handle: &Arc<Handle>,
        conn_id: u64,
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        self.sessions.certify(handle, conn_id, ws_flags)
    }

    pub fn commit_order_enter(&self, handle: &Handle) -> Answer {
        self.sessions.commit_order_enter(handle)
    }

    pub fn commit_order_leave(&self, handle: &Handle, error: &[u8]) -> Answer {
        self.sessions.commit_order_leave(handle, error)
    }

    pub fn release(&self, handle: &Handle) -> Answer {
        self.sessions.release(handle)
    }

    pub fn replay(&self, handle: &Arc<Handle>, ctx: HostCtx) -> Answer {
        self.sessions.replay(handle, ctx)
    }

    pub fn abort(&self, by_seqno: i64, victim: u64) -> (Answer, i64) {
        self.sessions.abort(by_seqno, victim)
    }

    pub fn rollback_fragment(&self, trx_id: u64) -> Answer {
        self.sessions.rollback_fragment(trx_id)
    }

    pub fn outcome_unknown(&self) -> Answer {
        self.sessions.outcome_unknown()
    }

    pub fn begin_isolated(
        &self,
        conn_id: u64,
        keys: &[Vec<&[u8]>],
        action: &[&[u8]],
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        self.sessions.begin_isolated(conn_id, keys, action, ws_flags)
    }

    pub fn end_isolated(&self, conn_id: u64, error: &[u8]) -> Answer {
        self.sessions.end_isolated(conn_id, error)
    }

    pub fn sync_wait(&self, upto: Option<Position>, seconds: i32) -> Answer {
        self.sessions.sync_wait(upto, seconds)
    }

    pub fn last_committed(&self) -> Option<Position> {
        self.sessions.last_committed()
    }
}

/// Appliers, state transfers, and holding still.
impl Node {
    pub fn run_applier(&self, ctx: HostCtx) -> ApplierEnd {
        self.appliers.run(ctx)
    }

    pub fn state_received(&self, uuid: u128, seqno: i64, code: i32) -> bool {
        self.transfer.received(uuid, seqno, code)
    }

    pub fn state_sent(&self, code: i32) {
        self.transfer.sent(code);
    }

    pub fn pause(&self) -> i64 {
        self.pause.pause()
    }

    pub fn resume(&self) {
        self.pause.resume();
    }

    pub fn desync(&self) {
        self.catch_up.desync();
    }

    pub fn resync(&self) {
        self.catch_up.resync();
    }

    pub fn desync_count(&self) -> u32 {
        self.catch_up.desync_count()
    }
}
