//! The function table as a server uses it, without a server: load, init, options, statistics, free.

use libc::{c_char, c_int, c_void};
use quorate::abi::*;
use quorate::ffi::wsrep_loader;
use std::ffi::{CStr, CString};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn logger(_level: c_int, text: *const c_char) {
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    LOG.lock().unwrap().push(text);
}

unsafe extern "C" fn connected(_: *mut c_void, _view: *const c_void) -> wsrep_cb_status_t {
    CB_SUCCESS
}

unsafe extern "C" fn view(
    _: *mut c_void,
    _applier: *mut c_void,
    _view: *const c_void,
    _state: *const c_char,
    _bytes: usize,
) -> wsrep_cb_status_t {
    CB_SUCCESS
}

unsafe extern "C" fn synced(_: *mut c_void) -> wsrep_cb_status_t {
    CB_SUCCESS
}

struct Table(Box<std::mem::MaybeUninit<wsrep_t>>);

impl Table {
    fn load() -> Self {
        let mut table = Table(Box::new(std::mem::MaybeUninit::zeroed()));
        assert_eq!(unsafe { wsrep_loader(table.ptr()) }, 0);
        table
    }

    fn ptr(&mut self) -> W {
        self.0.as_mut_ptr()
    }

    fn init(&mut self, options: &str) -> wsrep_status_t {
        self.init_in(Path::new("/nowhere"), options)
    }

    fn init_in(&mut self, dir: &Path, options: &str) -> wsrep_status_t {
        let c = |s: &str| CString::new(s).unwrap();
        let dir = c(dir.to_str().unwrap());
        let (name, address, options) = (c("n1"), c("127.0.0.1"), c(options));
        let state = wsrep_gtid_t { uuid: wsrep_uuid_t::default(), seqno: -1 };
        let args = wsrep_init_args {
            app_ctx: std::ptr::null_mut(),
            node_name: name.as_ptr(),
            node_address: address.as_ptr(),
            node_incoming: address.as_ptr(),
            data_dir: dir.as_ptr(),
            options: options.as_ptr(),
            proto_ver: 4,
            state_id: &state,
            state: std::ptr::null(),
            logger_cb: Some(logger),
            connected_cb: Some(connected),
            view_cb: Some(view),
            sst_request_cb: None,
            encrypt_cb: std::ptr::null(),
            apply_cb: None,
            unordered_cb: std::ptr::null(),
            sst_donate_cb: None,
            synced_cb: Some(synced),
        };
        let w = self.ptr();
        unsafe { ((*w).init)(w, &args) }
    }

    fn connect(&mut self, url: &str) -> wsrep_status_t {
        let c = |s: &str| CString::new(s).unwrap();
        let (cluster, url, donor, w) = (c("c"), c(url), c(""), self.ptr());
        unsafe { ((*w).connect)(w, cluster.as_ptr(), url.as_ptr(), donor.as_ptr(), true) }
    }

    /// With one applier, which ends with the connection.
    fn connect_and_leave(&mut self, url: &str) {
        assert_eq!(self.connect(url), status::OK, "{url}");
        let w = self.ptr();
        let (address, recv) = (w.expose_provenance(), unsafe { (*w).recv });
        let applier = std::thread::spawn(move || unsafe {
            recv(std::ptr::with_exposed_provenance_mut(address), std::ptr::null_mut())
        });
        assert_eq!(unsafe { ((*w).disconnect)(w) }, status::OK);
        assert_eq!(applier.join().unwrap(), status::OK);
    }

    fn options(&mut self) -> String {
        let w = self.ptr();
        unsafe {
            let raw = ((*w).options_get)(w);
            let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
            libc::free(raw.cast::<c_void>());
            text
        }
    }

    fn free(&mut self) {
        let w = self.ptr();
        unsafe { ((*w).free)(w) }
    }
}

#[test]
fn the_table_has_no_holes_and_says_its_version() {
    let mut table = Table::load();
    let words = unsafe { std::slice::from_raw_parts(table.ptr().cast::<usize>(), 43) };
    assert!(words.iter().all(|w| *w != 0), "a null pointer in the table");
    let w = table.ptr();
    assert_eq!(unsafe { CStr::from_ptr((*w).version) }.to_bytes(), b"26");
    assert_eq!(unsafe { ((*w).capabilities)(w) }, cap::ALL);
}

#[test]
fn options_and_statistics_live_from_init_to_free_and_free_may_come_twice() {
    let mut table = Table::load();
    assert!(table.options().contains("base_port = 4567; "));
    assert_eq!(table.init("base_port=5001; gcache.size=1G"), status::OK);
    assert!(table.options().contains("base_port = 5001; "));
    assert!(LOG.lock().unwrap().iter().any(|l| l.contains("ignored: gcache.size")));

    let w = table.ptr();
    let set = |text: &str| unsafe { ((*w).options_set)(w, CString::new(text).unwrap().as_ptr()) };
    assert_eq!(set("repl.max_ws_size=1M"), status::OK);
    assert_eq!(set(""), status::OK);
    assert_eq!(set("no.such_option=1"), status::NODE_FAIL);
    assert_eq!(set("quorate.dir=/elsewhere"), status::NODE_FAIL);

    unsafe {
        let vars = ((*w).stats_get)(w);
        let first = CStr::from_ptr((*vars).name).to_str().unwrap().to_string();
        ((*w).stats_free)(w, vars);
        assert_eq!(first, "local_state_uuid");
    }
    table.free();
    table.free();
}

/// By `SET GLOBAL wsrep_cluster_address`: what `wsrep_provider_options` refuses while the server runs.
#[test]
fn once_connected_an_address_changes_nothing_that_is_read_at_the_start() {
    let dir = std::env::temp_dir().join(format!("quorate-address-{}", std::process::id()));
    let (data, log) = (dir.join("data"), dir.join("log"));
    std::fs::create_dir_all(&data).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut table = Table::load();
    assert_eq!(table.init_in(&data, &format!("base_port={port}")), status::OK);
    // The first one may say all, and so may the next if that was wrong.
    let inside = format!("gcomm://?quorate.dir={}", data.join("log").display());
    assert_eq!(table.connect(&inside), status::NODE_FAIL);
    let first = format!("gcomm://?quorate.dir={}&pc.weight=2", log.display());
    table.connect_and_leave(&first);
    let before = table.options();
    let others = [("socket.dynamic", "yes"), ("quorate.insecure", "yes"), ("quorate.dir", "/x")];
    for (name, value) in others {
        let address = format!("gcomm://?pc.weight=3&{name}={value}");
        assert_eq!(table.connect(&address), status::NODE_FAIL);
        assert_eq!(table.options(), before, "nothing was changed");
        let told = format!("Node 'n1' cannot join: wsrep_cluster_address: '{name}' is '");
        assert!(LOG.lock().unwrap().iter().any(|line| line.starts_with(&told)), "{told}");
    }
    table.connect_and_leave(&format!("{first}&base_port={port}&pc.weight=3"));
    assert!(table.options().contains("pc.weight = 3;"));
    table.free();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Before the node is connected; a server that calls it at another time is told no.
#[test]
fn a_key_of_the_servers_is_taken() {
    let mut table = Table::load();
    let key = wsrep_buf_t { ptr: b"a key".as_ptr().cast(), len: 5 };
    let w = table.ptr();
    assert_eq!(unsafe { ((*w).enc_set_key)(w, &key) }, status::NODE_FAIL, "there is no node");
    assert_eq!(table.init(""), status::OK);
    let w = table.ptr();
    assert_eq!(unsafe { ((*w).enc_set_key)(w, &key) }, status::OK);
    let empty = wsrep_buf_t { ptr: std::ptr::null(), len: 0 };
    assert_eq!(unsafe { ((*w).enc_set_key)(w, &empty) }, status::NOT_ALLOWED);
    table.free();
}

#[test]
fn an_unknown_option_refuses_to_start_and_names_it() {
    let mut table = Table::load();
    assert_eq!(table.init("gcache.sise=1G"), status::NODE_FAIL);
    let log = LOG.lock().unwrap();
    assert!(log.iter().any(|l| l.contains("'gcache.sise'") && l.contains("'gcache.size'")));
    drop(log);
    table.free();
}

#[test]
fn without_a_group_calls_answer_and_do_not_block() {
    let mut table = Table::load();
    assert_eq!(table.init(""), status::OK);
    let w = table.ptr();
    let mut handle = wsrep_ws_handle_t { trx_id: 7, opaque: std::ptr::null_mut() };
    let data = b"row";
    let buf = wsrep_buf_t { ptr: data.as_ptr().cast(), len: data.len() };
    let mut meta = std::mem::MaybeUninit::<wsrep_trx_meta_t>::zeroed();
    unsafe {
        assert_eq!(((*w).append_data)(w, &mut handle, &buf, 1, 0, true), status::OK);
        let code = ((*w).certify)(w, 1, &mut handle, 65, meta.as_mut_ptr());
        assert_eq!(code, status::CONN_FAIL);
        assert_eq!(meta.assume_init().gtid.seqno, SEQNO_UNDEFINED);
        assert_eq!(((*w).release)(w, &mut handle), status::OK);
        assert!(handle.opaque.is_null());
        let mut victim_seqno = 0;
        assert_eq!(((*w).abort_certification)(w, 5, 7, &mut victim_seqno), status::OK);
        assert_eq!(victim_seqno, -1);
        assert_eq!(((*w).disconnect)(w), status::OK);
    }
    table.free();
}

/// Galera's names: servers, proxies and dashboards look for them.
const STATUS: &str = "local_state_uuid protocol_version protocol_application protocol_replicator \
    protocol_GCS last_committed replicated replicated_bytes repl_keys repl_keys_bytes \
    repl_data_bytes repl_other_bytes received received_bytes local_commits local_cert_failures \
    local_replays local_send_queue local_send_queue_max local_send_queue_min \
    local_send_queue_avg local_recv_queue local_recv_queue_max local_recv_queue_min \
    local_recv_queue_avg local_cached_downto flow_control_paused_ns flow_control_paused \
    flow_control_sent flow_control_recv flow_control_active flow_control_requested \
    cert_deps_distance apply_oooe apply_oool apply_window apply_waits commit_oooe commit_oool \
    commit_window local_state local_state_comment cert_index_size causal_reads cert_interval \
    open_transactions open_connections incoming_addresses cluster_weight desync_count \
    evs_delayed evs_evict_list evs_repl_latency evs_state gcomm_uuid gmcast_segment";

#[test]
fn all_status_variables_are_there_before_a_connection_too() {
    let mut table = Table::load();
    assert_eq!(table.init(""), status::OK);
    let w = table.ptr();
    let mut found = Vec::new();
    unsafe {
        let vars = ((*w).stats_get)(w);
        let mut at = vars;
        while !(*at).name.is_null() {
            let name = CStr::from_ptr((*at).name).to_str().unwrap().to_string();
            match (*at).kind {
                var_type::STRING => assert!(!(*at).value.string.is_null(), "{name}"),
                var_type::DOUBLE => assert!((*at).value.double.is_finite(), "{name}"),
                kind => assert_eq!(kind, var_type::INT64, "{name}"),
            }
            found.push(name);
            at = at.add(1);
        }
        ((*w).stats_free)(w, vars);
    }
    for name in STATUS.split_whitespace() {
        assert!(found.iter().any(|f| f == name), "wsrep_{name} is missing");
    }
    table.free();
}

static PARAMETERS: Mutex<Vec<(String, c_int)>> = Mutex::new(Vec::new());

/// As the server's `wsrep_parameter_t`.
#[repr(C)]
struct Parameter {
    flags: c_int,
    name: *const c_char,
    value: u64,
}

unsafe extern "C" fn parameter(p: *const Parameter, _context: *mut c_void) -> wsrep_status_t {
    let name = unsafe { CStr::from_ptr((*p).name) }.to_str().unwrap().to_string();
    PARAMETERS.lock().unwrap().push((name, unsafe { (*p).flags }));
    status::OK
}

#[test]
fn the_server_can_list_the_options_with_their_types() {
    type Get = unsafe extern "C" fn(
        W,
        unsafe extern "C" fn(*const Parameter, *mut c_void) -> wsrep_status_t,
        *mut c_void,
    ) -> wsrep_status_t;
    let mut table = Table::load();
    assert_eq!(table.init("base_port=5002"), status::OK);
    let mut service: Option<Get> = None;
    unsafe {
        let slot = std::ptr::from_mut(&mut service).cast();
        assert_eq!(quorate::ffi::services::wsrep_init_config_service_v1(slot), 0);
        let get = service.expect("filled");
        assert_eq!(get(table.ptr(), parameter, std::ptr::null_mut()), status::OK);
        quorate::ffi::services::wsrep_deinit_config_service_v1();
    }
    let listed = PARAMETERS.lock().unwrap();
    let flags = |name: &str| listed.iter().find(|(n, _)| n == name).map(|(_, flags)| *flags);
    assert_eq!(flags("base_port"), Some(1 << 1 | 1 << 3), "read-only, a number");
    assert_eq!(flags("pc.ignore_sb"), Some(1 << 2));
    assert_eq!(flags("evs.suspect_timeout"), Some(0));
    drop(listed);
    table.free();
}

#[test]
fn only_modes_that_there_are_isolate() {
    assert_eq!(quorate::ffi::services::wsrep_node_isolation_mode_set_v1(3), 1);
    assert_eq!(quorate::ffi::services::wsrep_node_isolation_mode_set_v1(0), 0);
}
