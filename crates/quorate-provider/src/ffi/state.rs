//! Calls about the node's state: positions, transfers, pauses, statistics.

use super::convert::*;
use super::session;
use crate::abi::*;
use crate::operator::stats::{self, Value};
use libc::c_int;
use quorate_node::node::guard;
use quorate_node::start::Position;
use std::ffi::CString;

pub unsafe extern "C" fn sync_wait(
    w: W,
    upto: *const wsrep_gtid_t,
    seconds: c_int,
    out: *mut wsrep_gtid_t,
) -> wsrep_status_t {
    // SAFETY: a filled table; `upto` and `out` are null or valid.
    unsafe {
        let Some(node) = node(w) else { return status::CONN_FAIL };
        guard(Some(node), status::CONN_FAIL, || {
            let answer = node.sync_wait(upto.as_ref().map(position), seconds);
            if !out.is_null() {
                out.write(gtid(node.last_committed()));
            }
            code(answer)
        })
    }
}

pub unsafe extern "C" fn last_committed_id(w: W, out: *mut wsrep_gtid_t) -> wsrep_status_t {
    // SAFETY: a filled table; `out` is valid.
    unsafe {
        let last = node(w).and_then(|n| guard(Some(n), None, || n.last_committed()));
        if !out.is_null() {
            out.write(gtid(last));
        }
        status::OK
    }
}

pub unsafe extern "C" fn sst_sent(w: W, _gtid: *const wsrep_gtid_t, code: c_int) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::CONN_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.state_sent(code);
        status::OK
    })
}

pub unsafe extern "C" fn sst_received(
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
            if node.state_received(at.uuid, at.seqno, code) || code != 0 {
                status::OK
            } else {
                status::NODE_FAIL
            }
        })
    }
}

pub unsafe extern "C" fn stats_get(w: W) -> *mut wsrep_stats_var {
    // SAFETY: a filled table.
    let Some(provider) = (unsafe { provider(w) }) else { return std::ptr::null_mut() };
    guard(Some(&provider.node), std::ptr::null_mut(), || {
        let c = |s: &str| CString::new(s).unwrap_or_default().into_raw().cast_const();
        let mut vars: Vec<wsrep_stats_var> = stats::stats(provider, session::current().connection)
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

pub unsafe extern "C" fn stats_free(_w: W, vars: *mut wsrep_stats_var) {
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

pub unsafe extern "C" fn stats_reset(w: W) {
    // SAFETY: a filled table.
    if let Some(node) = unsafe { node(w) } {
        guard(Some(node), (), || node.reset_counters());
    }
}

pub unsafe extern "C" fn pause(w: W) -> wsrep_seqno_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return SEQNO_UNDEFINED };
    guard(Some(node), SEQNO_UNDEFINED, || node.pause())
}

pub unsafe extern "C" fn resume(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.resume();
        status::OK
    })
}

pub unsafe extern "C" fn desync(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.desync();
        status::OK
    })
}

pub unsafe extern "C" fn resync(w: W) -> wsrep_status_t {
    // SAFETY: a filled table.
    let Some(node) = (unsafe { node(w) }) else { return status::NODE_FAIL };
    guard(Some(node), status::NODE_FAIL, || {
        node.resync();
        status::OK
    })
}
