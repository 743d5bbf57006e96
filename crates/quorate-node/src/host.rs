//! The server, seen from the node.

use crate::fate::trx::Handle;
use std::sync::Arc;

/// What the node asks of its server. Only [`Host::log`] may be called from any thread. The others
/// belong to the applier thread (or, for [`Host::apply`], the replaying client thread) whose context
/// they take. An error is the server's word that it cannot go on. What a server may lack does nothing.
#[allow(clippy::result_unit_err, reason = "the interface says no more than that it failed")]
pub trait Host: Send + Sync {
    fn log(&self, level: Level, message: &str);

    /// Whether a member may come from this address.
    fn admits(&self, _address: &str) -> bool {
        true
    }

    fn connected(&self, view: &HostView) -> Result<(), ()>;
    fn view(&self, ctx: HostCtx, view: &HostView) -> Result<(), ()>;
    /// Makes ready to receive the state of another server; returns the request that its donor is handed,
    /// empty if this server is not to be sent any.
    fn state_request(&self) -> Result<Vec<u8>, ()>;
    /// Starts to send the state that this request asks for, at the position given.
    fn donate(
        &self,
        ctx: HostCtx,
        request: &[u8],
        uuid: [u8; 16],
        seqno: i64,
        bypass: bool,
    ) -> Result<(), ()>;
    fn synced(&self) -> Result<(), ()>;
    /// Applies one write set; `Ok(true)` if this thread is to leave the loop.
    fn apply(&self, ctx: HostCtx, call: &ApplyCall<'_>) -> Result<bool, ()>;

    /// Refuses what the session of this thread asks for, with this text. The error is final.
    fn refuse(&self, _text: &str) {}

    /// Tells the session of this thread, with this text, that nobody knows the outcome.
    fn tell_unknown(&self, _text: &str) {}

    /// Leaves the session of this thread a warning beside its success.
    fn warn(&self, _text: &str) {}

    /// Wakes whoever waits in the server until sessions have ended their streaming transactions.
    fn wake_waiters(&self) {}

    /// Tells whoever watches the server; `json` is a JSON value.
    fn event(&self, _name: &str, _json: &str) {}

    /// Asks the server to shut down, as an operator would.
    fn shut_down(&self) {}

    /// Whether the server is read-only; None: it has nothing of that kind that can be switched.
    fn read_only(&self) -> Option<bool> {
        None
    }

    fn set_read_only(&self, _on: bool) {}

    /// Where GTIDs of replicated transactions have a domain of their own: which one. None: they have
    /// none, or the server cannot be asked.
    fn gtid_domain(&self) -> Option<GtidDomain> {
        None
    }

    /// Has replicated transactions get GTIDs of this domain from now on.
    fn set_gtid_domain(&self, _id: u32) {}
}

/// The domain id of the GTIDs of replicated transactions, as this server has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GtidDomain {
    /// The variable; 0 where nothing is configured.
    pub configured: u32,
    /// What GTIDs are written with; 0 where the server has not learnt one yet.
    pub used: u32,
}

/// How much a line in the server's log matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Error,
    Warn,
    Info,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewStatus {
    Primary,
    NonPrimary,
    /// The connection has ended.
    Disconnected,
}

/// How a call of the server's about a write set went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Done,
    /// It failed certification, or is a fragment that was aborted: to be rolled back.
    Failed,
    /// It was aborted after it had been certified: to be rolled back and replayed.
    Replay,
    /// Nothing was ordered, nor will be.
    Refused,
    TooLarge,
    /// There is no such transaction.
    Missing,
    /// What was asked to be aborted goes on.
    NotAllowed,
    /// The node cannot say, or cannot go on.
    Broken,
}

/// What an ordered write set is known by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    pub history: u128,
    pub seqno: i64,
    pub depends_on: i64,
    /// The process that proposed it.
    pub origin: u128,
    pub trx_id: u64,
    pub conn_id: u64,
}

/// A thread context of the server only handed back to it.
#[derive(Clone, Copy)]
pub struct HostCtx(pub usize);

/// What a view looks like to the server.
#[derive(Clone, Debug)]
pub struct HostView {
    pub uuid: [u8; 16],
    pub seqno: i64,
    /// Configuration number, -1 unless primary.
    pub number: i64,
    pub status: ViewStatus,
    pub my_index: i32,
    pub members: Vec<HostMember>,
    pub proto_ver: i32,
}

#[derive(Clone, Debug)]
pub struct HostMember {
    pub id: [u8; 16],
    pub name: String,
    pub incoming: String,
}

/// A write set on its way to the server.
pub struct ApplyCall<'a> {
    pub handle: &'a Arc<Handle>,
    pub trx_id: u64,
    pub flags: u32,
    pub data: &'a [u8],
    pub meta: Meta,
}

/// A host that takes nothing in, but for `read_only` where that can be switched, and being stopped.
#[cfg(test)]
#[derive(Default)]
pub struct Deaf {
    pub read_only: Option<Box<dyn Fn(bool) + Send + Sync>>,
    pub shut_down: Option<Box<dyn Fn() + Send + Sync>>,
}

#[cfg(test)]
impl Host for Deaf {
    fn log(&self, _level: Level, _message: &str) {}
    fn read_only(&self) -> Option<bool> {
        self.read_only.as_ref().map(|_switch| false)
    }
    fn set_read_only(&self, read_only: bool) {
        if let Some(switch) = &self.read_only {
            switch(read_only);
        }
    }
    fn shut_down(&self) {
        self.shut_down.iter().for_each(|stop| stop());
    }
    fn connected(&self, _view: &HostView) -> Result<(), ()> {
        Err(())
    }
    fn view(&self, _ctx: HostCtx, _view: &HostView) -> Result<(), ()> {
        Err(())
    }
    fn state_request(&self) -> Result<Vec<u8>, ()> {
        Err(())
    }
    fn donate(
        &self,
        _ctx: HostCtx,
        _request: &[u8],
        _uuid: [u8; 16],
        _seqno: i64,
        _bypass: bool,
    ) -> Result<(), ()> {
        Err(())
    }
    fn synced(&self) -> Result<(), ()> {
        Err(())
    }
    fn apply(&self, _ctx: HostCtx, _call: &ApplyCall<'_>) -> Result<bool, ()> {
        Err(())
    }
}
