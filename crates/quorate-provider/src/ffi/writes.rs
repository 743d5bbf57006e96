//! Calls of sessions and appliers about a write set, or about an isolated action.

use super::convert::*;
use crate::abi::*;
use libc::{c_int, c_void, size_t};
use quorate_certify::KeyType;
use quorate_node::host::HostCtx;
use quorate_node::node::{guard, Node};

pub unsafe extern "C" fn certify(
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
            let (answer, ordered) = node.certify(&found, conn_id, flags);
            write_meta(node, meta, (*h).trx_id, conn_id, ordered);
            code(answer)
        })
    }
}

pub unsafe extern "C" fn commit_order_enter(
    w: W,
    h: *const wsrep_ws_handle_t,
    _meta: *const wsrep_trx_meta_t,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || match handle(h) {
            Some(found) => code(node.commit_order_enter(found)),
            None => status::TRX_MISSING,
        })
    }
}

pub unsafe extern "C" fn commit_order_leave(
    w: W,
    h: *const wsrep_ws_handle_t,
    _meta: *const wsrep_trx_meta_t,
    error: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || match handle(h) {
            Some(found) => code(node.commit_order_leave(found, bytes(error))),
            None => status::TRX_MISSING,
        })
    }
}

pub unsafe extern "C" fn release(w: W, h: *mut wsrep_ws_handle_t) -> wsrep_status_t {
    // SAFETY: as in `certify`; the count taken keeps the transaction alive while it leaves the table.
    unsafe {
        let Some(node) = node(w) else { return status::OK };
        guard(Some(node), status::FATAL, || {
            if h.is_null() || (*h).opaque.is_null() {
                return status::OK;
            }
            let Some(found) = owned_handle(node, h) else { return status::OK };
            let answer = node.release(&found);
            if node.transactions().get((*h).trx_id).is_none() {
                (*h).opaque = std::ptr::null_mut();
            }
            code(answer)
        })
    }
}

pub unsafe extern "C" fn replay_trx(
    w: W,
    h: *const wsrep_ws_handle_t,
    ctx: *mut c_void,
) -> wsrep_status_t {
    // SAFETY: as in `certify`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard_outcome(node, || match owned_handle(node, h) {
            Some(found) => code(node.replay(&found, HostCtx(ctx.expose_provenance()))),
            None => status::TRX_MISSING,
        })
    }
}

pub unsafe extern "C" fn abort_certification(
    w: W,
    bf_seqno: wsrep_seqno_t,
    victim: wsrep_trx_id_t,
    victim_seqno: *mut wsrep_seqno_t,
) -> wsrep_status_t {
    // SAFETY: a filled table; `victim_seqno` is the caller's, passed uninitialised.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || {
            let (answer, seqno) = node.abort(bf_seqno, victim);
            if !victim_seqno.is_null() {
                victim_seqno.write(seqno);
            }
            quorate_node::sync::point("abort_trx_end");
            code(answer)
        })
    }
}

pub unsafe extern "C" fn rollback(
    w: W,
    trx: wsrep_trx_id_t,
    _data: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::FATAL, || code(node.rollback_fragment(trx)))
}

pub unsafe extern "C" fn append_key(
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

pub unsafe extern "C" fn append_data(
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
            if data_type == ORDERED {
                items(data, count).iter().for_each(|b| node.append_data(&found, bytes(b)));
            }
            status::OK
        })
    }
}

pub unsafe extern "C" fn to_execute_start(
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
            let (answer, ordered) = node.begin_isolated(conn_id, &keys, &action, flags);
            write_meta(node, meta, TRX_ID_UNDEFINED, conn_id, ordered);
            code(answer)
        })
    }
}

pub unsafe extern "C" fn to_execute_end(
    w: W,
    conn_id: wsrep_conn_id_t,
    error: *const wsrep_buf_t,
) -> wsrep_status_t {
    // SAFETY: as in `append_key`.
    unsafe {
        let Some(node) = node(w) else { return status::NODE_FAIL };
        guard(Some(node), status::FATAL, || code(node.end_isolated(conn_id, bytes(error))))
    }
}

/// As [`guard`], for a call in which a session waits for the outcome of what it proposed: after a
/// panic nobody here knows it.
fn guard_outcome(node: &Node, call: impl FnOnce() -> wsrep_status_t) -> wsrep_status_t {
    let answer = guard(Some(node), None, || Some(call()));
    answer.unwrap_or_else(|| guard(Some(node), status::NODE_FAIL, || code(node.outcome_unknown())))
}
