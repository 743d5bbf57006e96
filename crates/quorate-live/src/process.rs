//! What holds for all members of the process.

use std::sync::atomic::{AtomicBool, Ordering};

/// Settable in a signal handler.
static ISOLATED: AtomicBool = AtomicBool::new(false);

/// Cuts off all members of this process (or lets them go on). Async-signal-safe: it only stores a
/// flag, which each member notices within a quarter of a heartbeat interval.
pub fn isolate_process(isolated: bool) {
    ISOLATED.store(isolated, Ordering::SeqCst);
}

pub(crate) fn is_isolated() -> bool {
    ISOLATED.load(Ordering::SeqCst)
}
