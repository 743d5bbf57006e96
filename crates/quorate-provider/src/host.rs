//! The server, seen from the node.

use crate::abi::wsrep_trx_meta_t;
use crate::trx::Handle;
use libc::c_int;
use std::sync::Arc;

/// What the node asks of its server. Only [`Host::log`] may be called from any thread. The others
/// belong to the recv thread (or, for [`Host::apply`], the replaying client thread) whose context
/// they take. An error is the server's word that it cannot go on.
#[allow(clippy::result_unit_err, reason = "the interface says no more than that it failed")]
pub trait Host: Send + Sync {
    fn log(&self, level: c_int, message: &str);
    fn connected(&self, view: &HostView) -> Result<(), ()>;
    fn view(&self, ctx: HostCtx, view: &HostView) -> Result<(), ()>;
    /// Starts the joiner's script; returns its request (`method NUL address NUL`).
    fn sst_request(&self) -> Result<Vec<u8>, ()>;
    /// Starts the donor's script for this request, at the position given.
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
}

/// A thread context of the server (`recv_ctx` or `trx_ctx`), only handed back to it.
#[derive(Clone, Copy)]
pub struct HostCtx(pub usize);

/// What a view looks like to the server.
#[derive(Clone, Debug)]
pub struct HostView {
    pub uuid: [u8; 16],
    pub seqno: i64,
    /// Configuration number, -1 unless primary.
    pub number: i64,
    pub status: c_int,
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
    pub meta: wsrep_trx_meta_t,
}
