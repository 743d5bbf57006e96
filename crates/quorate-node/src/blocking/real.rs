//! The operating system's threads, locks and clocks.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::panic::{catch_unwind, AssertUnwindSafe};
pub use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time for deadlines: never goes back.
#[inline]
pub fn now() -> Instant {
    Instant::now()
}

/// The wall clock, in nanoseconds since 1970; 0 if it stands before that.
pub fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Runs `call`, whatever panics in it.
pub fn catch<T>(call: impl FnOnce() -> T) -> std::thread::Result<T> {
    catch_unwind(AssertUnwindSafe(call))
}

/// Starts a thread.
///
/// # Errors
/// The operating system has no room for it.
pub fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(body)
}
