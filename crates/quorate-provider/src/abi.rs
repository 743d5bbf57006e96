//! The wsrep API, version 26, as raw types: sizes and order are the interface's, checked below.
//!
//! Nothing here has behaviour. `ffi.rs` fills the table, `host.rs` calls the callbacks.

#![allow(non_camel_case_types)]

use libc::{c_char, c_int, c_void, size_t};

pub type wsrep_seqno_t = i64;
pub type wsrep_trx_id_t = u64;
pub type wsrep_conn_id_t = u64;
pub type wsrep_cap_t = u32;
/// `enum wsrep_status`, see [`status`].
pub type wsrep_status_t = c_int;
/// `enum wsrep_cb_status`: 0 success, anything else failure.
pub type wsrep_cb_status_t = c_int;

pub const INTERFACE_VERSION: &[u8; 3] = b"26\0";
pub const SEQNO_UNDEFINED: wsrep_seqno_t = -1;
pub const TRX_ID_UNDEFINED: wsrep_trx_id_t = u64::MAX;
pub const CB_SUCCESS: wsrep_cb_status_t = 0;

/// Status codes of `enum wsrep_status`.
pub mod status {
    use super::wsrep_status_t;
    pub const OK: wsrep_status_t = 0;
    pub const WARNING: wsrep_status_t = 1;
    pub const TRX_MISSING: wsrep_status_t = 2;
    pub const TRX_FAIL: wsrep_status_t = 3;
    pub const BF_ABORT: wsrep_status_t = 4;
    pub const SIZE_EXCEEDED: wsrep_status_t = 5;
    pub const CONN_FAIL: wsrep_status_t = 6;
    pub const NODE_FAIL: wsrep_status_t = 7;
    pub const FATAL: wsrep_status_t = 8;
    pub const NOT_IMPLEMENTED: wsrep_status_t = 9;
    pub const NOT_ALLOWED: wsrep_status_t = 10;
}

/// Capability bits, those that this provider has.
pub mod cap {
    pub const MULTI_MASTER: u32 = 1;
    pub const CERTIFICATION: u32 = 1 << 1;
    pub const PARALLEL_APPLYING: u32 = 1 << 2;
    pub const TRX_REPLAY: u32 = 1 << 3;
    pub const ISOLATION: u32 = 1 << 4;
    pub const PAUSE: u32 = 1 << 5;
    pub const CAUSAL_READS: u32 = 1 << 6;
    pub const INCREMENTAL_WRITESET: u32 = 1 << 8;
    pub const STREAMING: u32 = 1 << 15;

    pub const ALL: u32 = MULTI_MASTER
        | CERTIFICATION
        | PARALLEL_APPLYING
        | TRX_REPLAY
        | ISOLATION
        | PAUSE
        | CAUSAL_READS
        | INCREMENTAL_WRITESET
        | STREAMING;
}

/// `wsrep_log_level_t`.
pub mod log_level {
    use libc::c_int;
    pub const FATAL: c_int = 0;
    pub const ERROR: c_int = 1;
    pub const WARN: c_int = 2;
    pub const INFO: c_int = 3;
    pub const DEBUG: c_int = 4;
}

/// `wsrep_uuid_t`: a union with a `size_t` for alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct wsrep_uuid_t {
    pub data: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_gtid_t {
    pub uuid: wsrep_uuid_t,
    pub seqno: wsrep_seqno_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_stid_t {
    pub node: wsrep_uuid_t,
    pub trx: wsrep_trx_id_t,
    pub conn: wsrep_conn_id_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_trx_meta_t {
    pub gtid: wsrep_gtid_t,
    pub stid: wsrep_stid_t,
    pub depends_on: wsrep_seqno_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_buf_t {
    pub ptr: *const c_void,
    pub len: size_t,
}

#[repr(C)]
pub struct wsrep_key_t {
    pub key_parts: *const wsrep_buf_t,
    pub key_parts_num: size_t,
}

#[repr(C)]
pub struct wsrep_ws_handle_t {
    pub trx_id: wsrep_trx_id_t,
    pub opaque: *mut c_void,
}

pub const MEMBER_NAME_LEN: usize = 32;
pub const INCOMING_LEN: usize = 256;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_member_info_t {
    pub id: wsrep_uuid_t,
    pub name: [u8; MEMBER_NAME_LEN],
    pub incoming: [u8; INCOMING_LEN],
}

/// `wsrep_view_status_t`.
pub mod view_status {
    use libc::c_int;
    pub const PRIMARY: c_int = 0;
    pub const NON_PRIMARY: c_int = 1;
    pub const DISCONNECTED: c_int = 2;
}

/// The fixed head of `wsrep_view_info_t`; `memb_num` members follow it directly.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct wsrep_view_head_t {
    pub state_id: wsrep_gtid_t,
    pub view: wsrep_seqno_t,
    pub status: c_int,
    pub capabilities: wsrep_cap_t,
    pub my_idx: c_int,
    pub memb_num: c_int,
    pub proto_ver: c_int,
}

pub type wsrep_log_cb_t = Option<unsafe extern "C" fn(c_int, *const c_char)>;
pub type wsrep_connected_cb_t =
    Option<unsafe extern "C" fn(*mut c_void, *const c_void) -> wsrep_cb_status_t>;
pub type wsrep_view_cb_t = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *const c_void,
        *const c_char,
        size_t,
    ) -> wsrep_cb_status_t,
>;
pub type wsrep_sst_request_cb_t =
    Option<unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut size_t) -> wsrep_cb_status_t>;
pub type wsrep_apply_cb_t = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const wsrep_ws_handle_t,
        u32,
        *const wsrep_buf_t,
        *const wsrep_trx_meta_t,
        *mut bool,
    ) -> wsrep_cb_status_t,
>;
pub type wsrep_sst_donate_cb_t = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *const wsrep_buf_t,
        *const wsrep_gtid_t,
        *const wsrep_buf_t,
        bool,
    ) -> wsrep_cb_status_t,
>;
pub type wsrep_synced_cb_t = Option<unsafe extern "C" fn(*mut c_void) -> wsrep_cb_status_t>;

#[repr(C)]
pub struct wsrep_init_args {
    pub app_ctx: *mut c_void,
    pub node_name: *const c_char,
    pub node_address: *const c_char,
    pub node_incoming: *const c_char,
    pub data_dir: *const c_char,
    pub options: *const c_char,
    pub proto_ver: c_int,
    pub state_id: *const wsrep_gtid_t,
    pub state: *const wsrep_buf_t,
    pub logger_cb: wsrep_log_cb_t,
    pub connected_cb: wsrep_connected_cb_t,
    pub view_cb: wsrep_view_cb_t,
    pub sst_request_cb: wsrep_sst_request_cb_t,
    pub encrypt_cb: *const c_void,
    pub apply_cb: wsrep_apply_cb_t,
    pub unordered_cb: *const c_void,
    pub sst_donate_cb: wsrep_sst_donate_cb_t,
    pub synced_cb: wsrep_synced_cb_t,
}

/// `enum wsrep_var_type`.
pub mod var_type {
    use libc::c_int;
    pub const STRING: c_int = 0;
    pub const INT64: c_int = 1;
    pub const DOUBLE: c_int = 2;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union wsrep_var_value_t {
    pub int64: i64,
    pub double: f64,
    pub string: *const c_char,
}

#[repr(C)]
pub struct wsrep_stats_var {
    pub name: *const c_char,
    pub kind: c_int,
    pub value: wsrep_var_value_t,
}

/// A slot of the function table whose arguments the provider never looks at.
pub type unused_fn = unsafe extern "C" fn() -> wsrep_status_t;

/// `struct wsrep_st`: 45 pointers. `W` is the table itself.
#[repr(C)]
pub struct wsrep_t {
    pub version: *const c_char,
    pub init: unsafe extern "C" fn(W, *const wsrep_init_args) -> wsrep_status_t,
    pub capabilities: unsafe extern "C" fn(W) -> wsrep_cap_t,
    pub options_set: unsafe extern "C" fn(W, *const c_char) -> wsrep_status_t,
    pub options_get: unsafe extern "C" fn(W) -> *mut c_char,
    pub enc_set_key: unsafe extern "C" fn(W, *const wsrep_buf_t) -> wsrep_status_t,
    pub connect: unsafe extern "C" fn(
        W,
        *const c_char,
        *const c_char,
        *const c_char,
        bool,
    ) -> wsrep_status_t,
    pub disconnect: unsafe extern "C" fn(W) -> wsrep_status_t,
    pub recv: unsafe extern "C" fn(W, *mut c_void) -> wsrep_status_t,
    pub assign_read_view:
        unsafe extern "C" fn(W, *mut wsrep_ws_handle_t, *const wsrep_gtid_t) -> wsrep_status_t,
    pub certify: unsafe extern "C" fn(
        W,
        wsrep_conn_id_t,
        *mut wsrep_ws_handle_t,
        u32,
        *mut wsrep_trx_meta_t,
    ) -> wsrep_status_t,
    pub commit_order_enter: unsafe extern "C" fn(
        W,
        *const wsrep_ws_handle_t,
        *const wsrep_trx_meta_t,
    ) -> wsrep_status_t,
    pub commit_order_leave: unsafe extern "C" fn(
        W,
        *const wsrep_ws_handle_t,
        *const wsrep_trx_meta_t,
        *const wsrep_buf_t,
    ) -> wsrep_status_t,
    pub release: unsafe extern "C" fn(W, *mut wsrep_ws_handle_t) -> wsrep_status_t,
    pub replay_trx:
        unsafe extern "C" fn(W, *const wsrep_ws_handle_t, *mut c_void) -> wsrep_status_t,
    pub abort_certification: unsafe extern "C" fn(
        W,
        wsrep_seqno_t,
        wsrep_trx_id_t,
        *mut wsrep_seqno_t,
    ) -> wsrep_status_t,
    pub rollback: unsafe extern "C" fn(W, wsrep_trx_id_t, *const wsrep_buf_t) -> wsrep_status_t,
    pub append_key: unsafe extern "C" fn(
        W,
        *mut wsrep_ws_handle_t,
        *const wsrep_key_t,
        size_t,
        c_int,
        bool,
    ) -> wsrep_status_t,
    pub append_data: unsafe extern "C" fn(
        W,
        *mut wsrep_ws_handle_t,
        *const wsrep_buf_t,
        size_t,
        c_int,
        bool,
    ) -> wsrep_status_t,
    pub sync_wait:
        unsafe extern "C" fn(W, *const wsrep_gtid_t, c_int, *mut wsrep_gtid_t) -> wsrep_status_t,
    pub last_committed_id: unsafe extern "C" fn(W, *mut wsrep_gtid_t) -> wsrep_status_t,
    pub free_connection: unsafe extern "C" fn(W, wsrep_conn_id_t) -> wsrep_status_t,
    pub to_execute_start: unsafe extern "C" fn(
        W,
        wsrep_conn_id_t,
        *const wsrep_key_t,
        size_t,
        *const wsrep_buf_t,
        size_t,
        u32,
        *mut wsrep_trx_meta_t,
    ) -> wsrep_status_t,
    pub to_execute_end:
        unsafe extern "C" fn(W, wsrep_conn_id_t, *const wsrep_buf_t) -> wsrep_status_t,
    pub preordered_collect: unused_fn,
    pub preordered_commit: unused_fn,
    pub sst_sent: unsafe extern "C" fn(W, *const wsrep_gtid_t, c_int) -> wsrep_status_t,
    pub sst_received:
        unsafe extern "C" fn(W, *const wsrep_gtid_t, *const wsrep_buf_t, c_int) -> wsrep_status_t,
    pub snapshot: unused_fn,
    pub stats_get: unsafe extern "C" fn(W) -> *mut wsrep_stats_var,
    pub stats_free: unsafe extern "C" fn(W, *mut wsrep_stats_var),
    pub stats_reset: unsafe extern "C" fn(W),
    pub pause: unsafe extern "C" fn(W) -> wsrep_seqno_t,
    pub resume: unsafe extern "C" fn(W) -> wsrep_status_t,
    pub desync: unsafe extern "C" fn(W) -> wsrep_status_t,
    pub resync: unsafe extern "C" fn(W) -> wsrep_status_t,
    pub lock: unused_fn,
    pub unlock: unused_fn,
    pub is_locked: unsafe extern "C" fn() -> bool,
    pub provider_name: *const c_char,
    pub provider_version: *const c_char,
    pub provider_vendor: *const c_char,
    pub free: unsafe extern "C" fn(W),
    pub dlh: *mut c_void,
    pub ctx: *mut c_void,
}

pub type W = *mut wsrep_t;

const _: () = {
    use std::mem::{offset_of, size_of};
    assert!(size_of::<wsrep_t>() == 360);
    assert!(size_of::<wsrep_init_args>() == 144);
    assert!(size_of::<wsrep_trx_meta_t>() == 64);
    assert!(size_of::<wsrep_stats_var>() == 24);
    assert!(size_of::<wsrep_member_info_t>() == 304);
    assert!(size_of::<wsrep_view_head_t>() == 56);
    assert!(offset_of!(wsrep_view_head_t, status) == 32);
    assert!(offset_of!(wsrep_view_head_t, proto_ver) == 48);
    assert!(offset_of!(wsrep_t, certify) == 80);
    assert!(offset_of!(wsrep_t, abort_certification) == 120);
    assert!(offset_of!(wsrep_t, to_execute_start) == 176);
    assert!(offset_of!(wsrep_t, stats_get) == 232);
    assert!(offset_of!(wsrep_t, free) == 336);
    assert!(offset_of!(wsrep_t, ctx) == 352);
};
