//! What a thread can wait for: locks, conditions, time and other threads. All of the node's code takes
//! them from here, and from nowhere else.
//!
//! In the product these are `parking_lot`'s and the standard library's, by other names. Built with
//! `--cfg simulated` (only the node's simulation is, see `quorate-node-sim`) they have the same
//! interface on top of a scheduler that runs one thread at a time, chosen from a seed, and whose clock
//! is moved by the simulation: so that what the node does when its threads meet can be replayed.
//!
//! Not here: atomics, which wait for nothing, and the library's own locks, one a process, which are held
//! for a moment and never while anything is awaited.

#[cfg(not(simulated))]
mod real;
#[cfg(simulated)]
pub mod simulated;

#[cfg(not(simulated))]
pub use real::{catch, now, spawn, unix_nanos, Condvar, JoinHandle, Mutex, MutexGuard, RwLock};
#[cfg(simulated)]
pub use simulated::{
    catch, now, spawn, unix_nanos, Condvar, JoinHandle, Mutex, MutexGuard, RwLock,
};
