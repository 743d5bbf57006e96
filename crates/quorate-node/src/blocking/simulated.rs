//! Threads of which one runs at a time: which, says the simulation's [`Scheduler`].
//!
//! Invariants:
//! - a thread can be interrupted by another only inside a call of this module;
//! - who is woken looks again whether what it waits for has come, so waking too many changes nothing
//!   but the order;
//! - a thread whose process was killed is unwound by [`Scheduler::block`] and [`Scheduler::interrupt`];
//!   its guards give their locks back on the way, and nothing else of it runs.

use parking_lot as plain;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe, Location};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// A thread of the simulation.
pub type Task = usize;

/// Where in the code a thread waits.
pub type Place = &'static Location<'static>;

/// What runs the threads. It is one object a simulated world, known to the one thread of the
/// operating system on which that world runs.
pub trait Scheduler {
    fn current(&self) -> Task;
    /// Others may run before this returns.
    fn interrupt(&self);
    /// Others run until somebody wakes this thread or the deadline comes. Having been woken since the
    /// last time counts.
    fn block(&self, at: Place, until: Option<Instant>);
    fn wake(&self, task: Task);
    fn now(&self) -> Instant;
    fn unix_nanos(&self) -> u64;
    fn spawn(&self, name: String, body: Box<dyn FnOnce() + Send>);
}

thread_local! {
    static SCHEDULER: RefCell<Option<Rc<dyn Scheduler>>> = const { RefCell::new(None) };
}

/// From now on (until the next call) the locks of this thread of the operating system are that one's.
pub fn install(scheduler: Option<Rc<dyn Scheduler>>) {
    SCHEDULER.set(scheduler);
}

/// The scheduler of the world that runs here.
///
/// # Panics
/// Outside of a simulation: these locks have no meaning there.
pub fn scheduler() -> Rc<dyn Scheduler> {
    SCHEDULER.with_borrow(|installed| installed.clone()).expect("a simulated world runs here")
}

/// What unwinds a thread whose process was killed.
pub struct Killed;

/// Runs `call`, whatever panics in it; who is killed is not kept from ending.
pub fn catch<T>(call: impl FnOnce() -> T) -> std::thread::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| match panic.is::<Killed>() {
        true => resume_unwind(panic),
        false => panic,
    })
}

pub fn now() -> Instant {
    scheduler().now()
}

pub fn unix_nanos() -> u64 {
    scheduler().unix_nanos()
}

/// Who waits for something, in the order of arrival.
struct Waiting(plain::Mutex<VecDeque<Task>>);

impl Waiting {
    const fn new() -> Self {
        Self(plain::Mutex::new(VecDeque::new()))
    }

    fn add(&self, task: Task) {
        self.0.lock().push_back(task);
    }

    /// False if it was taken out already: it was woken.
    fn remove(&self, task: Task) -> bool {
        let mut tasks = self.0.lock();
        let before = tasks.len();
        tasks.retain(|waiting| *waiting != task);
        tasks.len() < before
    }

    fn contains(&self, task: Task) -> bool {
        self.0.lock().contains(&task)
    }

    fn wake_first(&self) -> bool {
        let first = self.0.lock().pop_front();
        first.inspect(|task| scheduler().wake(*task)).is_some()
    }

    fn wake_all(&self) -> usize {
        let all = std::mem::take(&mut *self.0.lock());
        all.iter().for_each(|task| scheduler().wake(*task));
        all.len()
    }
}

/// Blocks until `attempt` gives something.
#[track_caller]
fn acquire<G>(waiting: &Waiting, attempt: impl Fn() -> Option<G>) -> G {
    let (scheduler, at) = (scheduler(), Location::caller());
    scheduler.interrupt();
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
        waiting.add(scheduler.current());
        scheduler.block(at, None);
        waiting.remove(scheduler.current());
    }
}

pub struct Mutex<T> {
    data: plain::Mutex<T>,
    waiting: Waiting,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self { data: plain::Mutex::new(value), waiting: Waiting::new() }
    }

    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = acquire(&self.waiting, || self.data.try_lock());
        MutexGuard { lock: self, held: Some(held) }
    }

    /// The node's own tests look whether one is held.
    #[cfg(test)]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.data.try_lock().map(|held| MutexGuard { lock: self, held: Some(held) })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    /// `None` only while a condition is awaited.
    held: Option<plain::MutexGuard<'a, T>>,
}

impl<T> MutexGuard<'_, T> {
    /// Runs `body` without the lock.
    pub fn unlocked<R>(guard: &mut Self, body: impl FnOnce() -> R) -> R {
        guard.give_back();
        let result = body();
        guard.take_again();
        result
    }

    fn give_back(&mut self) {
        self.held = None;
        self.lock.waiting.wake_all();
    }

    #[track_caller]
    fn take_again(&mut self) {
        let lock = self.lock;
        self.held = Some(acquire(&lock.waiting, || lock.data.try_lock()));
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held while it can be reached")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held while it can be reached")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

pub struct Condvar {
    waiting: Waiting,
}

/// Whether a wait ended because its time was over.
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub const fn new() -> Self {
        Self { waiting: Waiting::new() }
    }

    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_for_notice(guard, None);
    }

    #[track_caller]
    pub fn wait_until<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult(!self.wait_for_notice(guard, Some(deadline)))
    }

    #[track_caller]
    fn wait_for_notice<T>(&self, guard: &mut MutexGuard<'_, T>, until: Option<Instant>) -> bool {
        let (scheduler, at) = (scheduler(), Location::caller());
        let me = scheduler.current();
        self.waiting.add(me);
        guard.give_back();
        loop {
            scheduler.block(at, until);
            let due = until.is_some_and(|deadline| scheduler.now() >= deadline);
            if due || !self.waiting.contains(me) {
                break;
            }
        }
        let noticed = !self.waiting.remove(me);
        guard.take_again();
        noticed
    }

    pub fn notify_one(&self) -> bool {
        self.waiting.wake_first()
    }

    pub fn notify_all(&self) -> usize {
        self.waiting.wake_all()
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

pub struct RwLock<T>(Mutex<T>);

/// Readers exclude each other here, which only makes more of them wait for a moment: none waits for
/// anything else while it has such a lock.
impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    #[track_caller]
    pub fn read(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    #[track_caller]
    pub fn write(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}

/// A thread that was started, and may have ended.
pub struct JoinHandle<T> {
    end: Arc<End>,
    result: std::marker::PhantomData<fn() -> T>,
}

struct End {
    reached: AtomicBool,
    waiting: Waiting,
}

/// Says that the thread has ended, however it does.
struct OnEnd(Arc<End>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.0.reached.store(true, Ordering::Release);
        self.0.waiting.wake_all();
    }
}

impl JoinHandle<()> {
    pub fn is_finished(&self) -> bool {
        self.end.reached.load(Ordering::Acquire)
    }

    /// # Errors
    /// None here: a panic ends the simulated world.
    pub fn join(self) -> std::thread::Result<()> {
        acquire(&self.end.waiting, || self.is_finished().then_some(()));
        Ok(())
    }
}

pub fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let end = Arc::new(End { reached: AtomicBool::new(false), waiting: Waiting::new() });
    let on_end = OnEnd(end.clone());
    let run = move || {
        let _on_end = on_end;
        body();
    };
    scheduler().spawn(name, Box::new(run));
    Ok(JoinHandle { end, result: std::marker::PhantomData })
}
