//! What the server may look up in the library beside the function table: its optional services.
//!
//! Of those that libgalera exports, `wsrep_certify_v1` is left out: it wants a callback at the
//! moment a write set gets its place in the order, which here is in the log of another node.

use crate::abi::*;
use crate::options::{Effect, Kind, Options, SPECS};
use libc::{c_char, c_int, c_void};
use parking_lot::Mutex;
use std::ffi::CString;

type AllowlistCallback =
    unsafe extern "C" fn(*mut c_void, c_int, *const wsrep_buf_t) -> wsrep_status_t;

/// `wsrep_allowlist_service_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllowlistService {
    callback: Option<AllowlistCallback>,
    context: *mut c_void,
}

// SAFETY: the interface allows the question from any thread; the context is only handed back.
unsafe impl Send for AllowlistService {}

static ALLOWLIST: Mutex<Option<AllowlistService>> = Mutex::new(None);

/// The server has a list of the addresses that members may come from (`wsrep_allowlist`); required by the
/// loader.
///
/// # Safety
/// `service` is null or a filled service table, valid until the service is taken back.
#[no_mangle]
pub unsafe extern "C" fn wsrep_init_allowlist_service_v1(
    service: *const AllowlistService,
) -> wsrep_status_t {
    // SAFETY: by contract.
    *ALLOWLIST.lock() = unsafe { service.as_ref() }.filter(|s| s.callback.is_some()).copied();
    status::OK
}

/// # Safety
/// Called by the server.
#[no_mangle]
pub unsafe extern "C" fn wsrep_deinit_allowlist_service_v1() {
    *ALLOWLIST.lock() = None;
}

/// Whether the server's list has nothing against members at this address.
pub fn admits(address: &str) -> bool {
    const BY_ADDRESS: c_int = 0;
    let service = *ALLOWLIST.lock();
    let Some(AllowlistService { callback: Some(callback), context }) = service else { return true };
    // The server reads it as a C string.
    let Ok(text) = CString::new(address) else { return false };
    let value = wsrep_buf_t { ptr: text.as_ptr().cast(), len: address.len() };
    // SAFETY: the server takes its service back after `free`, which joins the threads that ask; the text
    // lives through the call.
    unsafe { callback(context, BY_ADDRESS, &value) == status::OK }
}

/// Isolates all nodes of this process from their groups, or lets them go on. The server calls it
/// in its handler of fatal signals, so that a dying node does not linger; it only stores a flag.
/// Returns 0, or 1 if there is no such mode.
#[no_mangle]
pub extern "C" fn wsrep_node_isolation_mode_set_v1(mode: c_int) -> c_int {
    const NOT_ISOLATED: c_int = 0;
    const FORCE_DISCONNECT: c_int = 2;
    if !(NOT_ISOLATED..=FORCE_DISCONNECT).contains(&mode) {
        return 1;
    }
    quorate_live::isolate_process(mode != NOT_ISOLATED);
    0
}

type EventCallback = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// `wsrep_event_service_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EventService {
    callback: Option<EventCallback>,
    context: *mut c_void,
}

// SAFETY: the interface allows events from any thread; the context is only handed back.
unsafe impl Send for EventService {}

static EVENTS: Mutex<Option<EventService>> = Mutex::new(None);

/// The server wants to hear of progress.
///
/// # Safety
/// `service` is null or a filled service table, valid until the service is taken back.
#[no_mangle]
pub unsafe extern "C" fn wsrep_init_event_service_v1(service: *const EventService) -> c_int {
    // SAFETY: by contract.
    match unsafe { service.as_ref() } {
        Some(service) if service.callback.is_some() => {
            *EVENTS.lock() = Some(*service);
            0
        }
        _ => libc::EINVAL,
    }
}

/// # Safety
/// Called by the server.
#[no_mangle]
pub unsafe extern "C" fn wsrep_deinit_event_service_v1() {
    *EVENTS.lock() = None;
}

/// Tells the server, if it listens. `json` is a JSON value.
pub fn event(name: &str, json: &str) {
    let service = EVENTS.lock();
    let Some(EventService { callback: Some(callback), context }) = *service else { return };
    let (Ok(name), Ok(json)) = (CString::new(name), CString::new(json)) else { return };
    // SAFETY: the service was not taken back, for its lock is held; strings live through the call.
    unsafe { callback(context, name.as_ptr(), json.as_ptr()) }
}

#[repr(C)]
union ParameterValue {
    boolean: bool,
    integer: i64,
    string: *const c_char,
}

/// `wsrep_parameter_t`.
#[repr(C)]
pub struct Parameter {
    flags: c_int,
    name: *const c_char,
    value: ParameterValue,
}

type ParameterCallback = unsafe extern "C" fn(*const Parameter, *mut c_void) -> wsrep_status_t;
type GetParameters =
    unsafe extern "C" fn(W, Option<ParameterCallback>, *mut c_void) -> wsrep_status_t;

/// `wsrep_config_service_v1_t`.
#[repr(C)]
pub struct ConfigService {
    get_parameters: GetParameters,
}

/// The server wants to know all options, with their types.
///
/// # Safety
/// `service` is null or writable.
#[no_mangle]
pub unsafe extern "C" fn wsrep_init_config_service_v1(service: *mut ConfigService) -> c_int {
    if service.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: by contract.
    unsafe { service.write(ConfigService { get_parameters }) }
    0
}

/// # Safety
/// Called by the server.
#[no_mangle]
pub unsafe extern "C" fn wsrep_deinit_config_service_v1() {}

unsafe extern "C" fn get_parameters(
    w: W,
    callback: Option<ParameterCallback>,
    context: *mut c_void,
) -> wsrep_status_t {
    // SAFETY: the server passes its filled table.
    let provider = unsafe { super::convert::provider(w) };
    quorate_node::node::guard(provider.map(|p| &*p.node), status::FATAL, || {
        let Some(callback) = callback else { return status::FATAL };
        let options = provider.map_or_else(Options::default, |n| n.options.lock().clone());
        for spec in SPECS {
            let (Ok(name), Ok(value)) =
                (CString::new(spec.name), CString::new(options.text(spec.name)))
            else {
                return status::FATAL;
            };
            let (kind, value) = match spec.kind {
                Kind::Bool if spec.effect != Effect::Command => {
                    (TYPE_BOOL, ParameterValue { boolean: options.flag(spec.name) })
                }
                Kind::Integer => {
                    (TYPE_INTEGER, ParameterValue { integer: options.integer(spec.name) })
                }
                _ => (0, ParameterValue { string: value.as_ptr() }),
            };
            let fixed = if spec.effect == Effect::Start { READ_ONLY } else { 0 };
            let parameter = Parameter { flags: kind | fixed, name: name.as_ptr(), value };
            // SAFETY: the strings live through the call, which copies them.
            if unsafe { callback(&parameter, context) } != status::OK {
                return status::FATAL;
            }
        }
        status::OK
    })
}

const READ_ONLY: c_int = 1 << 1;
const TYPE_BOOL: c_int = 1 << 2;
const TYPE_INTEGER: c_int = 1 << 3;
