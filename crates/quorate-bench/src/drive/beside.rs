//! Threads that do something for as long as something else goes on.
//!
//! Invariant: they are told that it is over however it ends. A scope waits for its threads even while a panic
//! unwinds it, and those that were not told would keep it waiting for ever.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs `act`, and each of `jobs` in a thread of its own beside it. The flag that a job is given is set once
/// `act` has ended; what the jobs give back is in their order. A panic of any of them goes on here.
pub(crate) fn beside<J, R, T>(
    jobs: impl IntoIterator<Item = J>,
    act: impl FnOnce() -> T,
) -> (T, Vec<R>)
where
    J: FnOnce(&AtomicBool) -> R + Send,
    R: Send,
{
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        let act_ends = SetAtDrop(over);
        let start = |job: J| scope.spawn(move || job(over));
        let running: Vec<_> = jobs.into_iter().map(start).collect();
        let acted = act();
        drop(act_ends);
        let join = |job: thread::ScopedJoinHandle<'_, R>| {
            job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (acted, running.into_iter().map(join).collect())
    })
}

struct SetAtDrop<'a>(&'a AtomicBool);

impl Drop for SetAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Goes on until it is over, and says its number.
    fn job(number: u32) -> impl FnOnce(&AtomicBool) -> u32 + Send {
        move |over| {
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            number
        }
    }

    #[test]
    fn jobs_end_with_what_they_go_on_beside() {
        assert_eq!(beside([job(1), job(2)], || "done"), ("done", vec![1, 2]));
    }

    #[test]
    fn a_panic_ends_the_jobs_and_goes_on() {
        let (ended, end) = channel();
        thread::spawn(move || {
            let panicked = catch_unwind(|| beside([job(1), job(2)], || panic!("no clients")));
            ended.send(panicked.is_err()).unwrap();
        });
        let panicked = end.recv_timeout(Duration::from_secs(60));
        assert!(panicked.expect("the jobs go on for ever"), "the panic is lost");
    }
}
