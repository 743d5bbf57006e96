//! The node's interface, as a server calls it. What each call answers is noted, so that a test can say
//! which answers a sweep has seen.

use crate::oracle::Oracle;
use simulated_node::applier::ApplierEnd;
use simulated_node::fate::trx::Handle;
use simulated_node::host::{Answer, HostCtx};
use simulated_node::node::Node as Real;
use simulated_node::session::Ordered;
use simulated_node::start::resume::Start;
use simulated_node::start::Position;
use std::ops::Deref;
use std::sync::Arc;

/// One call that answers something, and the answer's name.
pub type Answered = (&'static str, &'static str);

/// A node, and who notes what it answers.
pub struct Node {
    real: Arc<Real>,
    oracle: Arc<Oracle>,
}

impl Deref for Node {
    type Target = Real;

    fn deref(&self) -> &Real {
        &self.real
    }
}

impl Node {
    pub fn new(real: Arc<Real>, oracle: Arc<Oracle>) -> Arc<Self> {
        Arc::new(Self { real, oracle })
    }

    fn note(&self, call: &'static str, answer: Answer) -> Answer {
        self.oracle.answered((call, name(answer)));
        answer
    }

    pub fn certify(
        &self,
        handle: &Arc<Handle>,
        conn_id: u64,
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        let (answer, ordered) = self.real.certify(handle, conn_id, ws_flags);
        (self.note("certify", answer), ordered)
    }

    pub fn commit_order_enter(&self, handle: &Handle) -> Answer {
        let call = match handle {
            Handle::Local(_) => "commit_order_enter, of a session",
            Handle::Remote(_) => "commit_order_enter, of an applier",
        };
        self.note(call, self.real.commit_order_enter(handle))
    }

    pub fn commit_order_leave(&self, handle: &Handle, error: &[u8]) -> Answer {
        let call = match (handle, error.is_empty()) {
            (Handle::Local(_), _) => "commit_order_leave, of a session",
            (Handle::Remote(_), true) => "commit_order_leave, of an applier",
            (Handle::Remote(_), false) => "commit_order_leave, with an error",
        };
        self.note(call, self.real.commit_order_leave(handle, error))
    }

    pub fn release(&self, handle: &Handle) -> Answer {
        self.note("release", self.real.release(handle))
    }

    pub fn replay(&self, handle: &Arc<Handle>, ctx: HostCtx) -> Answer {
        self.note("replay", self.real.replay(handle, ctx))
    }

    pub fn abort(&self, bf_seqno: i64, victim: u64) -> (Answer, i64) {
        let (answer, seqno) = self.real.abort(bf_seqno, victim);
        (self.note("abort", answer), seqno)
    }

    pub fn rollback_fragment(&self, trx_id: u64) -> Answer {
        self.note("rollback_fragment", self.real.rollback_fragment(trx_id))
    }

    pub fn begin_isolated(
        &self,
        conn_id: u64,
        keys: &[Vec<&[u8]>],
        action: &[&[u8]],
        ws_flags: u32,
    ) -> (Answer, Option<Ordered>) {
        let (answer, ordered) = self.real.begin_isolated(conn_id, keys, action, ws_flags);
        (self.note("begin_isolated", answer), ordered)
    }

    pub fn end_isolated(&self, conn_id: u64, error: &[u8]) -> Answer {
        self.note("end_isolated", self.real.end_isolated(conn_id, error))
    }

    pub fn sync_wait(&self, upto: Option<Position>, seconds: i32) -> Answer {
        self.note("sync_wait", self.real.sync_wait(upto, seconds))
    }

    pub fn last_committed(&self) -> Option<Position> {
        let at = self.real.last_committed();
        self.oracle.answered(("last_committed", if at.is_some() { "a position" } else { "none" }));
        at
    }

    pub fn pause(&self) -> i64 {
        let at = self.real.pause();
        self.oracle.answered(("pause", if at >= 0 { "a position" } else { "an error" }));
        at
    }

    pub fn run_applier(&self, ctx: HostCtx) -> ApplierEnd {
        let end = self.real.run_applier(ctx);
        let answer = match end {
            ApplierEnd::Done => "Done",
            ApplierEnd::Failed => "Failed",
            ApplierEnd::FailedForNow => "FailedForNow",
        };
        self.oracle.answered(("run_applier", answer));
        end
    }

    pub fn state_received(&self, uuid: u128, seqno: i64, code: i32) -> bool {
        let good = self.real.state_received(uuid, seqno, code);
        let call = if code == 0 { "state_received" } else { "state_received, with an error" };
        self.oracle.answered((call, if good { "yes" } else { "no" }));
        good
    }
}

/// Where a start continues is not asked of a node, but decided for it.
pub fn name_of(start: &Start) -> &'static str {
    match start {
        Start::Continue { .. } => "Continue",
        Start::Fetch { .. } => "Fetch",
        Start::Refuse(_) => "Refuse",
    }
}

fn name(answer: Answer) -> &'static str {
    match answer {
        Answer::Done => "Done",
        Answer::Failed => "Failed",
        Answer::Replay => "Replay",
        Answer::Refused => "Refused",
        Answer::TooLarge => "TooLarge",
        Answer::Missing => "Missing",
        Answer::NotAllowed => "NotAllowed",
        Answer::Broken => "Broken",
    }
}

/// What a node can answer, but not here, and why.
#[cfg(test)]
pub const NEVER: &[(Answered, &str)] = &[
    (("certify", "Missing"), "a session certifies its own transaction only"),
    (("replay", "Missing"), "a session replays its own transaction only"),
    (("replay", "Refused"), "only what was ordered is replayed"),
    (("end_isolated", "Refused"), "only what has begun is ended"),
    (
        ("end_isolated", "Broken"),
        "while DDL runs, and has no error, only a panic or a violated order halts the node",
    ),
    (
        ("resume", "Refuse"),
        "no database of another group is put under a log: `starts.rs` has every such case",
    ),
    (("last_committed", "none"), "nobody asks before the connection, nor after it"),
    (("state_received, with an error", "yes"), "an error is never a state"),
];

/// What has to be seen in a sweep.
#[cfg(test)]
pub const SEEN: &[(&str, &[&str])] = &[
    ("certify", &["Done", "Failed", "Replay", "Refused", "TooLarge", "Broken"]),
    ("commit_order_enter, of a session", &["Done", "Replay", "Failed", "Broken"]),
    ("commit_order_enter, of an applier", &["Done", "Broken"]),
    ("commit_order_leave, of a session", &["Done"]),
    ("commit_order_leave, of an applier", &["Done"]),
    ("commit_order_leave, with an error", &["Done", "Broken"]),
    ("release", &["Done"]),
    ("replay", &["Done"]),
    ("rollback_fragment", &["Done", "Refused"]),
    ("abort", &["Done", "NotAllowed"]),
    ("begin_isolated", &["Done", "Failed", "Broken"]),
    ("end_isolated", &["Done"]),
    ("sync_wait", &["Done", "Failed", "Missing"]),
    ("last_committed", &["a position"]),
    ("pause", &["a position"]),
    ("run_applier", &["Done", "FailedForNow"]),
    ("state_received", &["yes", "no"]),
    ("state_received, with an error", &["no"]),
    ("resume", &["Continue", "Fetch"]),
];

/// What takes more seeds than a test has time for: a sweep with `--coverage` shows it.
#[cfg(test)]
pub const RARE: &[(&str, &[&str])] = &[
    ("commit_order_leave, of a session", &["Broken"]),
    ("commit_order_leave, of an applier", &["Broken"]),
    ("release", &["Replay"]),
    ("replay", &["Broken", "Failed"]),
    ("begin_isolated", &["Refused", "TooLarge"]),
    ("sync_wait", &["Refused"]),
    ("pause", &["an error"]),
    ("run_applier", &["Failed"]),
];
