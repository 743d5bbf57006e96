//! The function table: C calls in, safe calls out. The only `unsafe` beside `abi.rs` and `host.rs`.
//!
//! Invariants:
//! - no panic leaves this file: each entry runs under [`guard`], which withdraws the node, and answers
//!   with a status;
//! - `ctx` is null or a pointer that owns one count of an `Arc<Node>`;
//! - a write-set handle's `opaque` is null or points to a [`Handle`] that the transaction table
//!   (local) or the applying thread (remote) keeps alive through the call.

use crate::abi::*;
use crate::address;
use crate::callbacks::Callbacks;
use crate::connect::ConnectArgs;
use crate::host::{Host, HostCtx};
use crate::node::{Node, NodeConfig, Position};
use crate::options::Options;
use crate::replicate::{raw_uuid, Ordered};
use crate::session::RecvEnd;
use crate::stats::Value;
use crate::trx::Handle;
use crate::withdraw::guard;
use libc::{c_char, c_int, c_void, size_t};
use quorate_certify::KeyType;
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::sync::Arc;

static NAME: &CStr = c"Quorate";
/// Galera's form first: the server's test suites and some tools parse it.
static VERSION: &CStr = match CStr::from_bytes_with_nul(
    concat!("26.4.23(quorate-", env!("CARGO_PKG_VERSION"), ")\0").as_bytes(),
) {
    Ok(v) => v,
    Err(_) => panic!("the version is a C string"),
};
static VENDOR: &CStr = c"The Quorate authors";

/// Checked by the server's loader and by its test suites.
#[no_mangle]
pub static wsrep_interface_version: SyncPtr = SyncPtr(INTERFACE_VERSION.as_ptr().cast());

/// A pointer to a constant string, which any thread may read.
#[repr(transparent)]
pub struct SyncPtr(*const c_char);
// SAFETY: it points to a constant.
unsafe impl Sync for SyncPtr {}

/// Fills the server's table. Returns 0.
///
/// # Safety
/// `w` is null or points to a `wsrep_t` of interface version 26 that nobody else uses yet.
#[no_mangle]
pub unsafe extern "C" fn wsrep_loader(w: W) -> c_int {
    if w.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: by contract `w` is writable and of this layout; `dlh` is the loader's own.
    unsafe {
        let dlh = (*w).dlh;
        w.write(wsrep_t {
            version: INTERFACE_VERSION.as_ptr().cast(),
            init,
            capabilities,
            options_set,
            options_get,
            enc_set_key,
            connect,
            disconnect,
            recv,
            assign_read_view,
            certify,
            commit_order_enter,
            commit_order_leave,
            release,
            replay_trx,
            abort_certification,
            rollback,
            append_key,
            append_data,
            sync_wait,
            last_committed_id,
            free_connection,
            to_execute_start,
            to_execute_end,
            preordered_collect: not_implemented,
            preordered_commit: not_implemented,
            sst_sent,
            sst_received,
            snapshot: not_implemented,
            stats_get,
            stats_free,
            stats_reset,
            pause,
            resume,
            desync,
            resync,
            lock: not_implemented,
            unlock: not_implemented,
            is_locked,
            provider_name: NAME.as_ptr(),
            provider_version: VERSION.as_ptr(),
            provider_vendor: VENDOR.as_ptr(),
            free,
            dlh,
            ctx: std::ptr::null_mut(),
        });
    }
    0
}

/// As [`guard`], for a call in which a session waits for the outcome of what it proposed: after a
/// panic nobody here knows it.
fn guard_outcome(node: &Node, call: impl FnOnce() -> wsrep_status_t) -> wsrep_status_t {
    let answer = guard(Some(node), None, || Some(call()));
    answer.unwrap_or_else(|| guard(Some(node), status::NODE_FAIL, || node.outcome_unknown()))
}

/// The node behind a table.
///
/// # Safety
/// `w` is a table filled by [`wsrep_loader`].
pub(crate) unsafe fn node<'a>(w: W) -> Option<&'a Arc<Node>> {
    // SAFETY: `ctx` is null or a `Box<Arc<Node>>` made by `init`, alive until `free`.
    unsafe { (*w).ctx.cast::<Arc<Node>>().as_ref() }
}

/// # Safety
/// `ptr` is null or a NUL-terminated string.
unsafe fn text(ptr: *const c_char) -> String {
    if ptr.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(ptr) }.to_string_lossy().into_owned()
}

/// # Safety
/// `buf` is null or valid, and its `ptr` null or valid for `len` bytes, through `'a`.
unsafe fn bytes<'a>(buf: *const wsrep_buf_t) -> &'a [u8] {
    // SAFETY: by contract.
    unsafe {
        match buf.as_ref() {
            Some(b) if !b.ptr.is_null() && b.len > 0 => {
                std::slice::from_raw_parts(b.ptr.cast::<u8>(), b.len)
            }
            _ => &[],
        }
    }
}

/// # Safety
/// `ptr` is null or valid for `len` items through `'a`.
unsafe fn items<'a, T>(ptr: *const T, len: size_t) -> &'a [T] {
    if ptr.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: by contract.
    unsafe { std::slice::from_raw_parts(ptr, len) }
}

/// # Safety
/// `key` is a valid key through `'a`.
unsafe fn key_parts<'a>(key: &wsrep_key_t) -> Vec<&'a [u8]> {
    // SAFETY: by contract.
    unsafe {
        items(key.key_parts, key.key_parts_num)
            .iter()
            .map(|b| bytes(std::ptr::from_ref(b)))
            .collect()
    }
}

/// The handle of a call, if its transaction is known.
///
/// # Safety
/// See the module's invariants.
unsafe fn handle<'a>(h: *const wsrep_ws_handle_t) -> Option<&'a Handle> {
    // SAFETY: `opaque` points to a live `Handle`.
    unsafe { h.as_ref()?.opaque.cast::<Handle>().as_ref() }
}

/// As [`handle`], counted; looks a local transaction up by its id where the handle is new.
///
/// # Safety
/// See the module's invariants.
unsafe fn owned_handle(node: &Node, h: *const wsrep_ws_handle_t) -> Option<Arc<Handle>> {
    // SAFETY: a non-null `opaque` came from `Arc::as_ptr` of a live `Arc<Handle>`.
    unsafe {
        let h = h.as_ref()?;
        if h.opaque.is_null() {
            return node.trxs.get(h.trx_id);
        }
        let ptr = h.opaque.cast::<Handle>().cast_const();
        Arc::increment_strong_count(ptr);
        Some(Arc::from_raw(ptr))
    }
}

/// The local transaction of a handle, made at its first use.
///
/// # Safety
/// `h` is a valid handle; see the module's invariants.
unsafe fn local_handle(node: &Node, h: *mut wsrep_ws_handle_t) -> Option<Arc<Handle>> {
    // SAFETY: by contract.
    unsafe {
        if let Some(found) = owned_handle(node, h) {
            (*h).opaque = Arc::as_ptr(&found).cast_mut().cast();
            return Some(found);
        }
        let h = h.as_mut()?;
        let made = node.trxs.get_or_create(h.trx_id);
        h.opaque = Arc::as_ptr(&made).cast_mut().cast();
        Some(made)
    }
}

fn position(gtid: &wsrep_gtid_t) -> Position {
    Position { uuid: u128::from_be_bytes(gtid.uuid.data), seqno: gtid.seqno }
}

fn gtid(position: Option<Position>) -> wsrep_gtid_t {
    match position {
        Some(p) => wsrep_gtid_t { uuid: raw_uuid(p.uuid), seqno: p.seqno },
        None => wsrep_gtid_t { uuid: raw_uuid(0), seqno: SEQNO_UNDEFINED },
    }
}

unsafe extern "C" fn init(w: W, args: *const wsrep_init_args) -> wsrep_status_t {
    guard(None, status::FATAL, || {
        // SAFETY: the server passes valid arguments that live through the call.
        unsafe {
            let Some(args) = args.as_ref() else { return status::FATAL };
            let host = Callbacks::new(args);
            let mut options = Options::default();
            if let Err(e) = options.set(&text(args.options), false) {
                host.log(log_level::ERROR, &e.to_string());
                return status::NODE_FAIL;
            }
            if !options.ignored.is_empty() {
                let line = format!(
                    "Provider options without a meaning for Quorate, ignored: {}",
                    options.ignored.join(", ")
                );
                host.log(log_level::INFO, &line);
            }
            let start =
                args.state_id.as_ref().map(position).filter(|p| p.uuid != 0 && p.seqno >= 0);
            let config = NodeConfig {
                name: text(args.node_name),
                address: text(args.node_address),
                incoming: address::incoming(&text(args.node_incoming), &text(args.node_address)),
                data_dir: PathBuf::from(text(args.data_dir)),
                proto_ver: args.proto_ver,
                start,
            };
            let made = Arc::new(Node::new(Box::new(host), config, options));
            made.counters.configure(&made.options.lock());
            (*w).ctx = Box::into_raw(Box::new(made)).cast();
            status::OK
        }
    })
}

unsafe extern "C" fn free(w: W) {
    // SAFETY: called twice by the server; the second time `ctx` is null.
    unsafe {
        let ctx = std::mem::replace(&mut (*w).ctx, std::ptr::null_mut());
        if !ctx.is_null() {
            let node = Box::from_raw(ctx.cast::<Arc<Node>>());
            guard(Some(&node), (), || node.free());
        }
    }
}

unsafe extern "C" fn capabilities(_w: W) -> wsrep_cap_t {
    cap::ALL
}

unsafe extern "C" fn options_set(w: W, conf: *const c_char) -> wsrep_status_t {
    // SAFETY: a filled table and a C string.
    let (Some(node), conf) = (unsafe { (node(w), text(conf)) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || match node.change_options(&conf) {
        Ok(()) => status::OK,
        Err(reason) => {
            node.error(&reason);
            *node.counters.refusal.lock() = reason;
            status::NODE_FAIL
        }
    })
}

unsafe extern "C" fn options_get(w: W) -> *mut c_char {
    // SAFETY: a filled table.
    let node = unsafe { node(w) };
    guard(node.map(|n| &**n), std::ptr::null_mut(), || {
        let rendered =
            node.map_or_else(|| Options::default().render(), |n| n.options.lock().render());
        let c = CString::new(rendered).unwrap_or_default();
        // SAFETY: strdup copies a C string into memory that the server frees.
        unsafe { libc::strdup(c.as_ptr()) }
    })
}

unsafe extern "C" fn enc_set_key(_w: W, _key: *const wsrep_buf_t) -> wsrep_status_t {
    status::NOT_IMPLEMENTED
}

unsafe extern "C" fn connect(
    w: W,
    cluster: *const c_char,
    url: *const c_char,
    donor: *const c_char,
    bootstrap: bool,
) -> wsrep_status_t {
    // SAFETY: a filled table and C strings.
    let (node, cluster, url, donor) = unsafe { (node(w), text(cluster), text(url), text(donor)) };
    let Some(node) = node else { return status::NODE_FAIL };
    guard(Some(node), status::FATAL, || {
        let args = ConnectArgs { cluster: &cluster, url: &url, donor: &donor, bootstrap };
        match node.connect(&args) {
            Ok(()) => status::OK,
            Err(e) => {
                node.error(&format!("Node '{}' cannot join: {e}", node.config.name));
                status::NODE_FAIL
            }
        }
    })
}

unsafe extern "C" fn disconnect(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::OK };
    guard(Some(node), status::NODE_FAIL, || {
        node.disconnect();
        status::OK
    })
}

unsafe extern "C" fn recv(w: W, ctx: *mut c_void) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    let end = guard(Some(node), RecvEnd::Failed, || node.recv(HostCtx(ctx.expose_provenance())));
    if end == RecvEnd::Done {
        return status::OK;
    }
    guard(Some(node), (), || {
        node.info(match end {
            RecvEnd::FailedForNow => "This server stops now, for the reason given above; a service manager that restarts servers which ended abnormally may start it again",
            _ => "This server stops now, for the reason given above; its log and data are kept as they are",
        });
        node.free();
    });
    // The server has no way to be told that it must not go on: it would wait for ever, looking alive.
    // Galera aborts here. This ends it without a core, or, where another start may succeed, by a
    // signal: the services of Debian and others restart what ended so, and not what ended with a code.
    // SAFETY: ends the process; the data is as safe as after any crash. The handler for the signal is
    // the default one from here on, and no core is wanted of a server that is all right.
    unsafe {
        if end == RecvEnd::Failed {
            libc::_exit(1)
        }
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::abort()
    }
}

unsafe extern "C" fn assign_read_view(
    _w: W,
    _h: *mut wsrep_ws_handle_t,
    _gtid: *const wsrep_gtid_t,
) -> wsrep_status_t {
    status::NOT_IMPLEMENTED
}

/// Writes what is known of an ordered write set.
///
/// # Safety
/// `out` is null or writable.
unsafe fn write_meta(
    node: &Node,
    out: *mut wsrep_trx_meta_t,
    trx_id: u64,
    conn_id: u64,
    ordered: Option<Ordered>,
) {
    let link = node.link();
    let (history, own) = link.map_or((0, 0), |l| (l.history, l.node));
    let meta = wsrep_trx_meta_t {
        gtid: gtid(ordered.map(|o| Position { uuid: history, seqno: o.seqno })),
        stid: wsrep_stid_t { node: raw_uuid(own), trx: trx_id, conn: conn_id },
        depends_on: ordered.map_or(SEQNO_UNDEFINED, |o| o.depends_on),
    };
    if !out.is_null() {
        // SAFETY: by contract.
        unsafe { out.write(meta) }
    }
}

unsafe extern "C" fn certify(
    w: W,
    conn_id: wsrep_conn_id_t,
    h: *mut wsrep_ws_handle_t,
    flags: u32,
    meta: *mut wsrep_trx_meta_t,
) -> wsrep_status_t {
    // SAFETY: a filled table; the handle and meta are the server's, valid through the call.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || {
            let Some(found) = owned_handle(node, h) else {
                write_meta(node, meta, TRX_ID_UNDEFINED, conn_id, None);
                return status::OK; // nothing was written
            };
            let (code, ordered) = node.certify(&found, conn_id, flags);
            write_meta(node, meta, (*h).trx_id, conn_id, ordered);
            code
        })
    }
}

unsafe extern "C" fn commit_order_enter(
    w: W,
    h: *const wsrep_ws_handle_t,
    _meta: *const wsrep_trx_meta_t,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || match handle(h) {
            Some(found) => node.commit_order_enter(found),
            None => status::TRX_MISSING,
        })
    }
}

unsafe extern "C" fn commit_order_leave(
    w: W,
    h: *const wsrep_ws_handle_t,
    _meta: *const wsrep_trx_meta_t,
    error: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || match handle(h) {
            Some(found) => node.commit_order_leave(found, bytes(error)),
            None => status::TRX_MISSING,
        })
    }
}

unsafe extern "C" fn release(w: W, h: *mut wsrep_ws_handle_t) -> wsrep_status_t {
    // SAFETY: as in `certify`; the count taken keeps the transaction alive while it leaves the table.
    unsafe {
        let Some(node) = node(w) else { return status::OK };
        guard(Some(node), status::FATAL, || {
            if h.is_null() || (*h).opaque.is_null() {
                return status::OK;
            }
            let Some(found) = owned_handle(node, h) else { return status::OK };
            let code = node.release(&found);
            if node.trxs.get((*h).trx_id).is_none() {
                (*h).opaque = std::ptr::null_mut();
            }
            code
        })
    }
}

unsafe extern "C" fn replay_trx(
    w: W,
    h: *const wsrep_ws_handle_t,
    ctx: *mut c_void,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || match owned_handle(node, h) {
            Some(found) => node.replay(&found, HostCtx(ctx.expose_provenance())),
            None => status::TRX_MISSING,
        })
    }
}

unsafe extern "C" fn abort_certification(
    w: W,
    bf_seqno: wsrep_seqno_t,
    victim: wsrep_trx_id_t,
    victim_seqno: *mut wsrep_seqno_t,
) -> wsrep_status_t {
    // SAFETY: a filled table; `victim_seqno` is the caller's, passed uninitialised.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || {
            let (code, seqno) = node.abort_certification(bf_seqno, victim);
            if !victim_seqno.is_null() {
                victim_seqno.write(seqno);
            }
            crate::sync::point("abort_trx_end");
            code
        })
    }
}

unsafe extern "C" fn rollback(
    w: W,
    trx: wsrep_trx_id_t,
    _data: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::FATAL, || node.rollback_fragment(trx))
}

unsafe extern "C" fn append_key(
    w: W,
    h: *mut wsrep_ws_handle_t,
    keys: *const wsrep_key_t,
    count: size_t,
    key_type: c_int,
    _copy: bool,
) -> wsrep_status_t {
    // SAFETY: as in `certify`; keys are valid through the call and copied.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || {
            let Some(found) = local_handle(node, h) else { return status::TRX_MISSING };
            let (Some(trx), Some(kind)) = (found.local(), KeyType::from_wsrep(key_type as u32))
            else {
                return status::TRX_FAIL;
            };
            let mut state = trx.lock();
            for key in items(keys, count) {
                let mut parts: [&[u8]; 3] = [&[]; 3];
                let given = items(key.key_parts, key.key_parts_num.min(3));
                for (part, buf) in parts.iter_mut().zip(given) {
                    *part = bytes(buf);
                }
                state.builder.append_key(&parts[..given.len()], kind);
            }
            status::OK
        })
    }
}

unsafe extern "C" fn append_data(
    w: W,
    h: *mut wsrep_ws_handle_t,
    data: *const wsrep_buf_t,
    count: size_t,
    data_type: c_int,
    _copy: bool,
) -> wsrep_status_t {
    /// `WSREP_DATA_ORDERED`: the only type that is replicated.
    const ORDERED: c_int = 0;
    // SAFETY: as in `append_key`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || {
            let Some(found) = local_handle(node, h) else { return status::TRX_MISSING };
            let Some(trx) = found.local() else { return status::TRX_FAIL };
            if data_type == ORDERED {
                let mut state = trx.lock();
                items(data, count).iter().for_each(|b| state.builder.append_data(bytes(b)));
            }
            status::OK
        })
    }
}

unsafe extern "C" fn sync_wait(
    w: W,
    upto: *const wsrep_gtid_t,
    seconds: c_int,
    out: *mut wsrep_gtid_t,
) -> wsrep_status_t {
    // SAFETY: a filled table; `upto` and `out` are null or valid.
    unsafe {
        let Some(node) = node(w) else { return status::CONN_FAIL };
        guard(Some(node), status::CONN_FAIL, || {
            let code = node.sync_wait(upto.as_ref().map(position), seconds);
            if !out.is_null() {
                out.write(gtid(node.last_committed()));
            }
            code
        })
    }
}

unsafe extern "C" fn last_committed_id(w: W, out: *mut wsrep_gtid_t) -> wsrep_status_t {
    // SAFETY: a filled table; `out` is valid.
    unsafe {
        let last = node(w).and_then(|n| guard(Some(n), None, || n.last_committed()));
        if !out.is_null() {
            out.write(gtid(last));
        }
        status::OK
    }
}

unsafe extern "C" fn free_connection(_w: W, _conn: wsrep_conn_id_t) -> wsrep_status_t {
    status::OK
}

unsafe extern "C" fn to_execute_start(
    w: W,
    conn_id: wsrep_conn_id_t,
    keys: *const wsrep_key_t,
    keys_num: size_t,
    action: *const wsrep_buf_t,
    count: size_t,
    flags: u32,
    meta: *mut wsrep_trx_meta_t,
) -> wsrep_status_t {
    // SAFETY: as in `append_key`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || {
            let keys: Vec<Vec<&[u8]>> =
                items(keys, keys_num).iter().map(|k| key_parts(k)).collect();
            let action: Vec<&[u8]> =
                items(action, count).iter().map(|b| bytes(std::ptr::from_ref(b))).collect();
            let (code, ordered) = node.toi_start(conn_id, &keys, &action, flags);
            write_meta(node, meta, TRX_ID_UNDEFINED, conn_id, ordered);
            code
        })
    }
}

unsafe extern "C" fn to_execute_end(
    w: W,
    conn_id: wsrep_conn_id_t,
    error: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: as in `append_key`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || node.toi_end(conn_id, bytes(error)))
    }
}

unsafe extern "C" fn sst_sent(w: W, _gtid: *const wsrep_gtid_t, code: c_int) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::CONN_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.sst_sent(code);
        status::OK
    })
}

unsafe extern "C" fn sst_received(
    w: W,
    state_id: *const wsrep_gtid_t,
    _state: *const wsrep_buf_t,
    code: c_int,
) -> wsrep_status_t {
    // SAFETY: a filled table; the GTID is valid.
    unsafe {
        let Some(node) = node(w) else { return status::CONN_FAIL };
        guard(Some(node), status::NODE_FAIL, || {
            let at = state_id.as_ref().map_or(Position { uuid: 0, seqno: -1 }, position);
            if node.sst_received(at.uuid, at.seqno, code) || code != 0 {
                status::OK
            } else {
                status::NODE_FAIL
            }
        })
    }
}

unsafe extern "C" fn stats_get(w: W) -> *mut wsrep_stats_var {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return std::ptr::null_mut() };
    guard(Some(node), std::ptr::null_mut(), || {
        let c = |s: &str| CString::new(s).unwrap_or_default().into_raw().cast_const();
        let mut vars: Vec<wsrep_stats_var> = node
            .stats()
            .into_iter()
            .map(|(name, value)| {
                let (kind, value) = match value {
                    Value::Text(t) => (var_type::STRING, wsrep_var_value_t { string: c(&t) }),
                    Value::Int(v) => (var_type::INT64, wsrep_var_value_t { int64: v }),
                    Value::Double(v) => (var_type::DOUBLE, wsrep_var_value_t { double: v }),
                };
                wsrep_stats_var { name: c(name), kind, value }
            })
            .collect();
        vars.push(wsrep_stats_var {
            name: std::ptr::null(),
            kind: var_type::STRING,
            value: wsrep_var_value_t { string: std::ptr::null() },
        });
        Box::into_raw(vars.into_boxed_slice()).cast()
    })
}

unsafe extern "C" fn stats_free(_w: W, vars: *mut wsrep_stats_var) {
    if vars.is_null() {
        return;
    }
    // SAFETY: `vars` came from `stats_get`: a boxed slice ended by a null name, all strings ours.
    unsafe {
        let mut len = 0;
        while !(*vars.add(len)).name.is_null() {
            len += 1;
        }
        let slice = Box::from_raw(std::ptr::slice_from_raw_parts_mut(vars, len + 1));
        for var in slice.iter().filter(|v| !v.name.is_null()) {
            drop(CString::from_raw(var.name.cast_mut()));
            if var.kind == var_type::STRING && !var.value.string.is_null() {
                drop(CString::from_raw(var.value.string.cast_mut()));
            }
        }
    }
}

unsafe extern "C" fn stats_reset(w: W) {
    // SAFETY: a filled table.
    if let Some(node) = unsafe { node(w) } {
        guard(Some(node), (), || node.counters.reset());
    }
}

unsafe extern "C" fn pause(w: W) -> wsrep_seqno_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return i64::from(-libc::ENOTCONN) };
    guard(Some(node), i64::from(-libc::EIO), || node.pause())
}

unsafe extern "C" fn resume(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.resume();
        status::OK
    })
}

unsafe extern "C" fn desync(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.desync();
        status::OK
    })
}

unsafe extern "C" fn resync(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.resync();
        status::OK
    })
}

unsafe extern "C" fn not_implemented() -> wsrep_status_t {
    status::NOT_IMPLEMENTED
}

unsafe extern "C" fn is_locked() -> bool {
    false
}
