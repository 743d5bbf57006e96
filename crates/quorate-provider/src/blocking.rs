//! What a thread can wait for: locks, conditions, time and other threads. All of the node's code takes
//! them from here, and from nowhere else, so that a simulation can put its own in their place. The
//! exceptions are the library's own locks, one a process, which are held for a moment and never while
//! anything is awaited.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
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
