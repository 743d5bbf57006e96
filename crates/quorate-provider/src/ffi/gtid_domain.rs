//! The server's `wsrep_gtid_domain_id`, and what it gives GTIDs with (`wsrep_gtid_mode=ON`).
//!
//! The server has it twice: the variable, and a copy at the beginning of the object that counts its
//! GTIDs, which only a state transfer, a new cluster, a start position and `SET GLOBAL` write. It is
//! set as `SET GLOBAL` does it: the variable, and then the server's own function for its change.

use super::server::{function, variable, variable_of};
use libc::{c_int, c_void};
use quorate_node::host::GtidDomain;
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering};

/// `wsrep_gtid_domain_id_update(sys_var *, THD *, enum_var_type)`: looks at none of them.
type Update = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> bool;

/// `OPT_GLOBAL` of `enum_var_type`.
const GLOBAL: c_int = 2;

#[derive(Clone, Copy)]
pub struct Variables {
    mode: &'static AtomicU8,
    configured: &'static AtomicU32,
    used: &'static AtomicU32,
    update: Update,
}

impl Variables {
    /// `None`: this process is no server, or one that has it otherwise.
    pub fn find() -> Option<Variables> {
        let mode = variable(c"wsrep_gtid_mode", 1)?.cast::<u8>();
        let configured = variable(c"wsrep_gtid_domain_id", 4)?.cast::<u32>();
        // The id, the server's id, and more.
        let used = variable_of(c"wsrep_gtid_server", |size| size >= 8)?.cast::<u32>();
        let update = function(c"_Z27wsrep_gtid_domain_id_updateP7sys_varP3THD13enum_var_type")?;
        // SAFETY: variables of these sizes of the executable, which is never unloaded; the server reads
        // and writes them without a lock, so atomic access is the most that can be done. The mangled
        // name says the function's arguments; `bool` is what all functions of its kind return.
        unsafe {
            Some(Variables {
                mode: AtomicU8::from_ptr(mode),
                configured: AtomicU32::from_ptr(configured),
                used: AtomicU32::from_ptr(used),
                update: std::mem::transmute::<*mut c_void, Update>(update),
            })
        }
    }

    /// `None`: replicated transactions have no domain of their own.
    pub fn get(self) -> Option<GtidDomain> {
        (self.mode.load(Ordering::Relaxed) != 0).then(|| GtidDomain {
            configured: self.configured.load(Ordering::Relaxed),
            used: self.used.load(Ordering::Relaxed),
        })
    }

    pub fn set(self, id: u32) {
        self.configured.store(id, Ordering::Relaxed);
        // SAFETY: the function copies the variable, and looks at none of its arguments.
        unsafe { (self.update)(std::ptr::null_mut(), std::ptr::null_mut(), GLOBAL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_no_server_has_none() {
        assert!(Variables::find().is_none());
    }
}
