//! The client's session that runs on this thread: who it is, and a word for it beside the server's own.
//! The interface has neither.
//!
//! The server exports for its plugins, by C names that have been the same from 10.2 to 11.8, whose thread
//! this is, the number of its connection, the account and the host. They are asked on the session's own
//! thread only, which is the one that changes what they point to; what they give is copied before the
//! call returns. A server that lacks any of them is asked nothing, and there is less to show.

use super::server::{function, message};
use crate::operator::Session;
use libc::{c_char, c_uint, c_ulong, c_void, size_t};
use std::ffi::CStr;
use std::sync::OnceLock;

/// `ER_WRONG_ARGUMENTS`, with which the server ends a `SET` that was refused.
const WRONG_ARGUMENTS: c_uint = 1210;
/// `ER_UNKNOWN_ERROR`, with which the server says what it has no number for.
const UNKNOWN_ERROR: c_uint = 1105;
/// `ME_WARNING`: not an error.
const AS_WARNING: c_ulong = 2048;

type Thd = *mut c_void;
type CurrentThd = unsafe extern "C" fn() -> Thd;
type Number = unsafe extern "C" fn(Thd) -> c_ulong;
type Measured = unsafe extern "C" fn(Thd, *mut size_t) -> *const c_char;
type Plain = unsafe extern "C" fn(Thd) -> *const c_char;

#[derive(Clone, Copy)]
struct Functions {
    current: CurrentThd,
    number: Number,
    user: Measured,
    user_host: Measured,
    address: Plain,
    host: Plain,
}

impl Functions {
    fn find() -> Option<Functions> {
        let address = function(c"_current_thd")?;
        let [number, user, user_host] =
            [c"thd_get_thread_id", c"thd_priv_user", c"thd_priv_host"].map(function);
        let [ip, host] = [c"thd_client_ip", c"thd_client_host"].map(function);
        // SAFETY: the server's functions of these names have had these signatures since 10.2.
        unsafe {
            Some(Functions {
                current: std::mem::transmute::<*mut c_void, CurrentThd>(address),
                number: std::mem::transmute::<*mut c_void, Number>(number?),
                user: std::mem::transmute::<*mut c_void, Measured>(user?),
                user_host: std::mem::transmute::<*mut c_void, Measured>(user_host?),
                address: std::mem::transmute::<*mut c_void, Plain>(ip?),
                host: std::mem::transmute::<*mut c_void, Plain>(host?),
            })
        }
    }
}

/// What is known of the session on this thread.
pub fn current() -> Session {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    let Some(ask) = *FOUND.get_or_init(Functions::find) else { return Session::default() };
    // SAFETY: the functions take what the first of them gives for this very thread, and give back null or
    // C strings that live as long as nothing else runs on it.
    unsafe {
        let thd = (ask.current)();
        if thd.is_null() {
            return Session::default();
        }
        let (mut length, mut host_length) = (0, 0);
        let user = copied((ask.user)(thd, &mut length));
        let user_host = copied((ask.user_host)(thd, &mut host_length));
        // The account of nobody (a thread of the server's own) is empty.
        let account =
            user.zip(user_host).filter(|(user, host)| !(user.is_empty() && host.is_empty()));
        let host = copied((ask.address)(thd)).or_else(|| {
            // By the socket there is no address, and the host says so.
            copied((ask.host)(thd)).filter(|host| host != "localhost")
        });
        Session {
            connection: Some((ask.number)(thd)),
            account: account.map(|(user, host)| format!("{user}@{host}")),
            host: host.filter(|host| !host.is_empty()),
        }
    }
}

/// Leaves the session a warning, for `SHOW WARNINGS`.
pub fn warn(text: &str) {
    message(WRONG_ARGUMENTS, AS_WARNING, text);
}

/// Leaves the session a warning about what it did, for `SHOW WARNINGS`.
pub fn note(text: &str) {
    message(UNKNOWN_ERROR, AS_WARNING, text);
}

/// # Safety
/// `text` is null or a C string that lives through the call.
unsafe fn copied(text: *const c_char) -> Option<String> {
    // SAFETY: by contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process is no server: there is nobody, and nobody is told anything.
    #[test]
    fn a_process_that_is_no_server_has_no_sessions() {
        let nobody = current();
        assert!(nobody.connection.is_none() && nobody.account.is_none() && nobody.host.is_none());
        warn("nobody is told");
        note("nobody is told");
    }

    #[test]
    fn what_the_server_shows_is_copied() {
        let text = c"10.0.0.9";
        // SAFETY: null, and a string that lives through the call.
        unsafe {
            assert_eq!(copied(std::ptr::null()), None);
            assert_eq!(copied(text.as_ptr()).as_deref(), Some("10.0.0.9"));
        }
    }
}
