//! What the library reaches in the server that loaded it beside the wsrep interface: the variables
//! behind `read_only`, the text of a client's error, and those who wait for the server's wsrep state.
//! The interface has none of them.
//!
//! They are found by name among what the server's executable exports for its plugins, and are used
//! only if they are what they have to be: `read_only` and `opt_readonly` are one byte each, in the
//! executable that has the server's own wsrep variables. Otherwise (another kind of server)
//! nothing is touched, and the caller says so.
//!
//! The bytes are stored directly because `SET GLOBAL read_only` takes the global read lock: it would
//! wait for the very transactions that wait for the group. Nothing depends on the lock here: a
//! write that the server lets pass is refused when it is to be certified.

use libc::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

/// `ER_LOCK_DEADLOCK`: clients retry, and the server keeps the text that comes with it.
const DEADLOCK: c_uint = 1213;
/// `ER_ERROR_DURING_COMMIT`: the server overrides it with nothing else.
const ERROR_DURING_COMMIT: c_uint = 1180;
const AS_ERROR: c_ulong = 0;

/// The server's `read_only`.
#[derive(Clone, Copy)]
pub struct ReadOnly {
    /// What `SELECT @@read_only` shows.
    shown: &'static AtomicU8,
    /// What statements look at.
    checked: &'static AtomicU8,
}

impl ReadOnly {
    /// `None`: this process is no server, or one whose `read_only` is something else.
    pub fn find() -> Option<ReadOnly> {
        let byte = |name| {
            let address = variable(name, 1)?.cast::<u8>();
            // SAFETY: a variable of one byte of the executable, which is never unloaded. The server
            // reads and writes it without a lock, so atomic access is the most that can be done.
            Some(unsafe { AtomicU8::from_ptr(address) })
        };
        Some(ReadOnly { shown: byte(c"read_only")?, checked: byte(c"opt_readonly")? })
    }

    pub fn get(self) -> bool {
        self.checked.load(Ordering::Relaxed) != 0
    }

    pub fn set(self, on: bool) {
        self.shown.store(on.into(), Ordering::Relaxed);
        self.checked.store(on.into(), Ordering::Relaxed);
    }
}

/// Gives the statement that runs on this thread (a client's session) an error with this text, if the
/// server can be told; otherwise it will have one of the server's own words.
pub fn raise_deadlock(text: &str) {
    message(DEADLOCK, AS_ERROR, text);
}

/// As [`raise_deadlock`], with the error of an outcome that nobody knows.
pub fn raise_unknown(text: &str) {
    message(ERROR_DURING_COMMIT, AS_ERROR, text);
}

/// Tells the session on this thread; `flags` are the server's.
pub(super) fn message(code: c_uint, flags: c_ulong, text: &str) {
    type Printf = unsafe extern "C" fn(c_uint, *const c_char, c_ulong, ...);
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let Some(address) = function(c"my_printf_error") else { return };
    // SAFETY: the server's function of this name has had this signature for decades; the thread is
    // a session's, in a call that the server made.
    unsafe {
        let print: Printf = std::mem::transmute(address);
        print(code, c"%s".as_ptr(), flags, text.as_ptr());
    }
}

/// Wakes whoever waits in the server for a change of its wsrep state, to look again.
///
/// An applier that hears of a view without this node waits there until the sessions have ended their
/// streaming transactions; a session that ends one because a fragment failed takes it off the list
/// without telling (`convert_streaming_client_to_applier`), and the applier would wait for ever.
pub fn wake_state_waiters() {
    /// `mysql_cond_t`: the condition, and what instruments it.
    #[repr(C)]
    struct Condition {
        plain: libc::pthread_cond_t,
        _instrument: *mut c_void,
    }
    static FOUND: OnceLock<Option<usize>> = OnceLock::new();
    let find = || variable(c"COND_wsrep_server_state", size_of::<Condition>() as u64);
    if let Some(address) = FOUND.get_or_init(|| find().map(|at| at as usize)) {
        // SAFETY: a condition of the executable, which is never unloaded; the server has initialised
        // it before it loads a provider. Waking too many is allowed: they look again.
        unsafe { libc::pthread_cond_broadcast(*address as *mut libc::pthread_cond_t) };
    }
}

/// Asks this process to end, as an operator would: the server's signal thread shuts it down.
pub fn shut_down() {
    // SAFETY: a signal to the own process.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}

/// The address of a variable of the server's executable that has `size` bytes.
pub(super) fn variable(name: &CStr, size: u64) -> Option<*mut c_void> {
    variable_of(name, |found| found == size)
}

/// As [`variable`], of a size that `fits`.
pub(super) fn variable_of(name: &CStr, fits: impl Fn(u64) -> bool) -> Option<*mut c_void> {
    let address = function(name)?;
    fits(described(address)?.size).then_some(address)
}

/// The address of a function (or variable) of the server's executable.
pub(super) fn function(name: &CStr) -> Option<*mut c_void> {
    symbol(name).filter(|at| in_server(*at))
}

/// Whether the address is in the object that has the server's wsrep variables.
fn in_server(address: *mut c_void) -> bool {
    let base = |at| described(at).map(|found| found.base);
    symbol(c"wsrep_local_index").is_some_and(|own| base(own) == base(address))
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a lookup by name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

struct Described {
    /// Where the object that has it is loaded.
    base: usize,
    size: u64,
}

fn described(address: *mut c_void) -> Option<Described> {
    const RTLD_DL_SYMENT: c_int = 1;
    let mut entry: *mut c_void = std::ptr::null_mut();
    // SAFETY: all zero is a valid value of this plain structure; the loader fills it, and gives back
    // a pointer to an entry of a symbol table, which lives as long as the object.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr1(address, &mut info, &mut entry, RTLD_DL_SYMENT) == 0 || entry.is_null() {
            return None;
        }
        let size = (*entry.cast::<libc::Elf64_Sym>()).st_size;
        Some(Described { base: info.dli_fbase as usize, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process is no server: there is nothing to find, and nothing happens.
    #[test]
    fn a_process_that_is_no_server_is_left_alone() {
        assert!(ReadOnly::find().is_none());
        raise_deadlock("nobody is told");
        wake_state_waiters();
    }

    #[test]
    fn symbols_are_found_with_their_sizes() {
        let environ = symbol(c"environ").unwrap();
        assert_eq!(described(environ).unwrap().size, 8);
        assert!(symbol(c"no_such_thing_anywhere").is_none());
    }
}
