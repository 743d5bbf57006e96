//! The server's raw arguments as values, and back. For the calls of this room only.

use crate::abi::*;
use crate::provider::Provider;
use libc::{c_char, size_t};
use quorate_node::fate::trx::Handle;
use quorate_node::host::{Answer, Meta};
use quorate_node::node::Node;
use quorate_node::session::Ordered;
use quorate_node::start::Position;
use std::ffi::CStr;
use std::sync::Arc;

/// The provider behind a table.
///
/// # Safety
/// `w` is a table filled by [`super::wsrep_loader`].
pub unsafe fn provider<'a>(w: W) -> Option<&'a Provider> {
    // SAFETY: `ctx` is null or a `Box<Provider>` made by `init`, alive until `free`.
    unsafe { (*w).ctx.cast::<Provider>().as_ref() }
}

/// Its node.
///
/// # Safety
/// As [`provider`].
pub unsafe fn node<'a>(w: W) -> Option<&'a Arc<Node>> {
    // SAFETY: by contract.
    unsafe { provider(w) }.map(|provider| &provider.node)
}

/// # Safety
/// `ptr` is null or a NUL-terminated string.
pub unsafe fn text(ptr: *const c_char) -> String {
    if ptr.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(ptr) }.to_string_lossy().into_owned()
}

/// # Safety
/// `buf` is null or valid, and its `ptr` null or valid for `len` bytes, through `'a`.
pub unsafe fn bytes<'a>(buf: *const wsrep_buf_t) -> &'a [u8] {
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
pub unsafe fn items<'a, T>(ptr: *const T, len: size_t) -> &'a [T] {
    if ptr.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: by contract.
    unsafe { std::slice::from_raw_parts(ptr, len) }
}

/// # Safety
/// `key` is a valid key through `'a`.
pub unsafe fn key_parts<'a>(key: &wsrep_key_t) -> Vec<&'a [u8]> {
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
pub unsafe fn handle<'a>(h: *const wsrep_ws_handle_t) -> Option<&'a Handle> {
    // SAFETY: `opaque` points to a live `Handle`.
    unsafe { h.as_ref()?.opaque.cast::<Handle>().as_ref() }
}

/// As [`handle`], counted; looks a local transaction up by its id where the handle is new.
///
/// # Safety
/// See the module's invariants.
pub unsafe fn owned_handle(node: &Node, h: *const wsrep_ws_handle_t) -> Option<Arc<Handle>> {
    // SAFETY: a non-null `opaque` came from `Arc::as_ptr` of a live `Arc<Handle>`.
    unsafe {
        let h = h.as_ref()?;
        if h.opaque.is_null() {
            return node.transactions().get(h.trx_id);
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
pub unsafe fn local_handle(node: &Node, h: *mut wsrep_ws_handle_t) -> Option<Arc<Handle>> {
    // SAFETY: by contract.
    unsafe {
        if let Some(found) = owned_handle(node, h) {
            (*h).opaque = Arc::as_ptr(&found).cast_mut().cast();
            return Some(found);
        }
        let h = h.as_mut()?;
        let made = node.transactions().get_or_create(h.trx_id);
        h.opaque = Arc::as_ptr(&made).cast_mut().cast();
        Some(made)
    }
}

pub fn position(gtid: &wsrep_gtid_t) -> Position {
    Position { uuid: u128::from_be_bytes(gtid.uuid.data), seqno: gtid.seqno }
}

pub fn gtid(position: Option<Position>) -> wsrep_gtid_t {
    match position {
        Some(p) => wsrep_gtid_t { uuid: raw_uuid(p.uuid), seqno: p.seqno },
        None => wsrep_gtid_t { uuid: raw_uuid(0), seqno: SEQNO_UNDEFINED },
    }
}

/// Writes what is known of an ordered write set.
///
/// # Safety
/// `out` is null or writable.
pub unsafe fn write_meta(
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

pub fn raw_uuid(id: u128) -> wsrep_uuid_t {
    wsrep_uuid_t { data: id.to_be_bytes() }
}

pub fn raw_meta(meta: &Meta) -> wsrep_trx_meta_t {
    wsrep_trx_meta_t {
        gtid: wsrep_gtid_t { uuid: raw_uuid(meta.history), seqno: meta.seqno },
        stid: wsrep_stid_t { node: raw_uuid(meta.origin), trx: meta.trx_id, conn: meta.conn_id },
        depends_on: meta.depends_on,
    }
}

/// What the interface calls an answer.
///
/// An unknown outcome is `Broken`, which has to be `NODE_FAIL`: the transaction ends, and the server keeps
/// the error that its session has been told already. `CONN_FAIL` would become an error that is final where
/// a brute-force abort is pending (1213, and an autocommit statement would be tried again) and for a DDL
/// (1205).
pub fn code(answer: Answer) -> wsrep_status_t {
    match answer {
        Answer::Done => status::OK,
        Answer::Failed => status::TRX_FAIL,
        Answer::Replay => status::BF_ABORT,
        Answer::Refused => status::CONN_FAIL,
        Answer::TooLarge => status::SIZE_EXCEEDED,
        Answer::Missing => status::TRX_MISSING,
        Answer::NotAllowed => status::NOT_ALLOWED,
        Answer::Broken => status::NODE_FAIL,
    }
}
