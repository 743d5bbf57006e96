//! Sync points: named places where a test of the server can hold a thread (`dbug=d,NAME`), see that
//! it is there ([`waiters`]) and let it go (`signal=NAME`). The names are Galera's,
//! at the equivalent places, so that the server's debug tests find them.
//!
//! Only in libraries built with the feature `sync-points`; in others nothing of it is left.

#[cfg(feature = "sync-points")]
pub use enabled::{point, take_commands, waiters};

/// A place to be held at. Never under a lock.
#[cfg(not(feature = "sync-points"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

#[cfg(feature = "sync-points")]
mod enabled {
    use parking_lot::{Condvar, Mutex};
    use std::collections::HashSet;

    struct Points {
        armed: HashSet<String>,
        /// Who is held: the point, and a number that tells waiters of one point apart.
        held: Vec<(String, u64)>,
        next: u64,
    }

    static POINTS: Mutex<Option<Points>> = Mutex::new(None);
    static RELEASED: Condvar = Condvar::new();

    /// A place to be held at. Never under a lock.
    pub fn point(name: &'static str) {
        let mut points = POINTS.lock();
        let Some(state) = points.as_mut().filter(|state| state.armed.contains(name)) else {
            return;
        };
        let number = state.next;
        state.next += 1;
        state.held.push((name.to_string(), number));
        let is_held = |points: &Option<Points>| {
            points.as_ref().is_some_and(|state| state.held.iter().any(|(_, n)| *n == number))
        };
        while is_held(&points) {
            RELEASED.wait(&mut points);
        }
    }

    /// Takes `dbug` and `signal` out of an option string, and does what they say.
    pub fn take_commands(text: &str) -> String {
        let mut rest = Vec::new();
        for part in text.split(';') {
            match part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                Some(("dbug", value)) => arm(value),
                Some(("signal", name)) => release(name),
                _ => rest.push(part),
            }
        }
        rest.join(";")
    }

    /// `d,NAME,...` arms these points and no others; empty: none. Who is held stays held.
    fn arm(value: &str) {
        let names = value.strip_prefix("d,").unwrap_or_default();
        let armed = names.split(',').filter(|n| !n.is_empty()).map(str::to_string).collect();
        let mut points = POINTS.lock();
        match points.as_mut() {
            Some(state) => state.armed = armed,
            None => *points = Some(Points { armed, held: Vec::new(), next: 0 }),
        }
    }

    fn release(name: &str) {
        if let Some(state) = POINTS.lock().as_mut() {
            state.held.retain(|(held, _)| held != name);
        }
        RELEASED.notify_all();
    }

    /// The points at which threads are held, in the order of names.
    pub fn waiters() -> String {
        let points = POINTS.lock();
        let held = points.iter().flat_map(|state| &state.held);
        let mut names: Vec<&str> = held.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.join(" ")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_thread_is_held_seen_and_let_go() {
            point("test_a");
            assert_eq!(take_commands("dbug=d,test_a; base_port=1"), " base_port=1");
            let held = std::thread::spawn(|| point("test_a"));
            while waiters().is_empty() {
                std::thread::yield_now();
            }
            assert_eq!(waiters(), "test_a");
            assert_eq!(take_commands("dbug="), "");
            point("test_a");
            take_commands("signal=test_a");
            held.join().unwrap();
            assert_eq!(waiters(), "");
        }
    }
}
