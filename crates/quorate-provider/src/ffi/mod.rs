//! The function table: C calls in, safe calls out. `unsafe` is in this room, and nowhere else.
//!
//! Invariants:
//! - no panic leaves this room: each entry runs under [`guard`], which withdraws the node, and answers
//!   with a status;
//! - `ctx` is null or a pointer that owns a `Provider`;
//! - a write-set handle's `opaque` is null or points to a [`Handle`] that the transaction table
//!   (local) or the applying thread (remote) keeps alive through the call.

mod callbacks;
mod convert;
mod gtid_domain;
mod server;
pub mod services;
mod session;
mod state;
mod writes;

use self::convert::*;
use self::state::*;
use self::writes::*;
use crate::abi::*;
use crate::connect::{self, address, ConnectArgs};
use crate::ffi::callbacks::Callbacks;
use crate::operator;
use crate::options::Options;
use crate::provider::Provider;
use libc::{c_char, c_int, c_void};
use quorate_node::applier::ApplierEnd;
use quorate_node::host::{Host, HostCtx, Level};
use quorate_node::node::guard;
use quorate_node::node::NodeConfig;
use quorate_node::settings::Words;
use std::ffi::{CStr, CString};
use std::path::PathBuf;

static NAME: &CStr = c"Quorate";
/// Galera's form first: the server's test suites and some tools parse it.
static VERSION: &CStr = match CStr::from_bytes_with_nul(
    concat!("26.4.23(quorate-", env!("CARGO_PKG_VERSION"), ")\0").as_bytes(),
) {
    Ok(v) => v,
    Err(_) => panic!("the version is a C string"),
};
/// As MariaDB's users know these things.
const WORDS: Words = Words {
    start_position: "--wsrep_start_position",
    recover: "'mariadbd --wsrep-recover'",
    options: "wsrep_provider_options",
    found: "galera_new_cluster",
    reconnect: "SET GLOBAL wsrep_cluster_address = @@wsrep_cluster_address",
    primary_shown: "wsrep_local_index = 0 or wsrep_quorate_role",
    transfer_method: "wsrep_sst_method",
    transfer_methods: "mariabackup or rsync",
    gtid_domain: "wsrep_gtid_domain_id",
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

unsafe extern "C" fn init(w: W, args: *const wsrep_init_args) -> wsrep_status_t {
    guard(None, status::FATAL, || {
        // SAFETY: the server passes valid arguments that live through the call.
        unsafe {
            let Some(args) = args.as_ref() else { return status::FATAL };
            let host = Callbacks::new(args);
            let mut options = Options::default();
            if let Err(e) = options.set(&text(args.options), false) {
                host.log(Level::Error, &e.to_string());
                return status::NODE_FAIL;
            }
            if !options.ignored.is_empty() {
                let line = format!(
                    "Provider options without a meaning for Quorate, ignored: {}",
                    options.ignored.join(", ")
                );
                host.log(Level::Info, &line);
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
                words: WORDS,
            };
            let made = Provider::new(Box::new(host), config, options, !args.encrypt_cb.is_null());
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
            let provider = Box::from_raw(ctx.cast::<Provider>());
            guard(Some(&provider.node), (), || provider.free());
        }
    }
}

unsafe extern "C" fn capabilities(_w: W) -> wsrep_cap_t {
    cap::ALL
}

unsafe extern "C" fn options_set(w: W, conf: *const c_char) -> wsrep_status_t {
    // SAFETY: a filled table and a C string.
    let (Some(provider), conf) = (unsafe { (provider(w), text(conf)) }) else {
        return status::NODE_FAIL;
    };
    guard(Some(&provider.node), status::NODE_FAIL, || {
        match operator::change_options(provider, &conf, &session::current()) {
            Ok(warnings) => {
                for warning in warnings {
                    provider.info(&warning);
                    session::note(&warning);
                }
                status::OK
            }
            Err(reason) => {
                provider.error(&reason);
                session::warn(&reason);
                status::NODE_FAIL
            }
        }
    })
}

unsafe extern "C" fn options_get(w: W) -> *mut c_char {
    // SAFETY: a filled table.
    let provider = unsafe { provider(w) };
    guard(provider.map(|p| &*p.node), std::ptr::null_mut(), || {
        let rendered =
            provider.map_or_else(|| Options::default().render(), |n| n.options.lock().render());
        let c = CString::new(rendered).unwrap_or_default();
        // SAFETY: strdup copies a C string into memory that the server frees.
        unsafe { libc::strdup(c.as_ptr()) }
    })
}

/// MariaDB 10.11 gives wsrep-lib no encryption service, so it never calls this; servers that do call it between
/// `init` and `connect`.
unsafe extern "C" fn enc_set_key(w: W, key: *const wsrep_buf_t) -> wsrep_status_t {
    // SAFETY: a filled table and a buffer that lives through the call.
    let (Some(provider), key) = (unsafe { (provider(w), bytes(key)) }) else {
        return status::NODE_FAIL;
    };
    guard(Some(&provider.node), status::NODE_FAIL, || match provider.take_key(key) {
        Ok(()) => status::OK,
        Err(e) => {
            provider.error(&e.to_string());
            status::NOT_ALLOWED
        }
    })
}

unsafe extern "C" fn connect(
    w: W,
    cluster: *const c_char,
    url: *const c_char,
    donor: *const c_char,
    bootstrap: bool,
) -> wsrep_status_t {
    // SAFETY: a filled table and C strings.
    let (provider, cluster, url, donor) =
        unsafe { (provider(w), text(cluster), text(url), text(donor)) };
    let Some(provider) = provider else { return status::NODE_FAIL };
    guard(Some(&provider.node), status::FATAL, || {
        let args = ConnectArgs { cluster: &cluster, url: &url, donor: &donor, bootstrap };
        match connect::connect(provider, &args) {
            Ok(()) => status::OK,
            Err(e) => {
                provider.error(&format!("Node '{}' cannot join: {e}", provider.config().name));
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
    let end = guard(Some(node), ApplierEnd::Failed, || {
        node.run_applier(HostCtx(ctx.expose_provenance()))
    });
    if end == ApplierEnd::Done {
        return status::OK;
    }
    guard(Some(node), (), || {
        node.info(match end {
            ApplierEnd::FailedForNow => "This server stops now, for the reason given above; a service manager that restarts servers which ended abnormally may start it again",
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
        if end == ApplierEnd::Failed {
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

unsafe extern "C" fn free_connection(_w: W, _conn: wsrep_conn_id_t) -> wsrep_status_t {
    status::OK
}

unsafe extern "C" fn not_implemented() -> wsrep_status_t {
    status::NOT_IMPLEMENTED
}

unsafe extern "C" fn is_locked() -> bool {
    false
}
