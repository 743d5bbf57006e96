//! The function table as a server uses it, without a server: load, init, options, statistics, free.

use libc::{c_char, c_int, c_void};
use quorate::abi::*;
use quorate::ffi::wsrep_loader;
use std::ffi::{CStr, CString};
use std::sync::Mutex;

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn logger(_level: c_int, text: *const c_char) {
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    LOG.lock().unwrap().push(text);
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
        let c = |s: &str| CString::new(s).unwrap();
        let (name, address, dir, options) = (c("n1"), c("127.0.0.1"), c("/nowhere"), c(options));
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
            connected_cb: None,
            view_cb: None,
            sst_request_cb: None,
            encrypt_cb: std::ptr::null(),
            apply_cb: None,
            unordered_cb: std::ptr::null(),
            sst_donate_cb: None,
            synced_cb: None,
        };
        let w = self.ptr();
        unsafe { ((*w).init)(w, &args) }
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
