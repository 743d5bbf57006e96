//! The threads of one member: named, guarded against panics, and all joined at close.

use parking_lot::Mutex;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::thread::JoinHandle;

type OnPanic = Box<dyn Fn(&str) + Send + Sync>;

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Threads {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    on_panic: OnPanic,
}

#[derive(Default)]
struct State {
    handles: Vec<JoinHandle<()>>,
    closed: bool,
}

impl Threads {
    /// `on_panic` is told, on the thread itself, when a thread ends by a panic.
    pub fn new(on_panic: OnPanic) -> Self {
        Self { inner: Arc::new(Inner { state: Mutex::default(), on_panic }) }
    }

    /// Starts a thread `qrt-<name>` (15 characters are shown by the system). Nothing is started
    /// once [`Threads::join`] was called; false if so, or if the system has no thread to give.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.inner.state.lock();
        if state.closed {
            return false;
        }
        reap(&mut state.handles);
        let name = format!("qrt-{name}");
        let inner = self.inner.clone();
        let guarded = {
            let name = name.clone();
            move || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
                    (inner.on_panic)(&format!("thread {name}: {}", panic_text(&*panic)));
                }
            }
        };
        match std::thread::Builder::new().name(name).spawn(guarded) {
            Ok(handle) => {
                state.handles.push(handle);
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until all have ended (they were told to before), but not for the calling thread
    /// itself. Idempotent.
    pub fn join(&self) {
        loop {
            let handles = {
                let mut state = self.inner.state.lock();
                state.closed = true;
                std::mem::take(&mut state.handles)
            };
            if handles.is_empty() {
                return;
            }
            for handle in handles {
                if handle.thread().id() != std::thread::current().id() {
                    // A panic was reported by the thread itself.
                    let _reported = handle.join();
                }
            }
        }
    }
}

fn reap(handles: &mut Vec<JoinHandle<()>>) {
    let mut at = 0;
    while at < handles.len() {
        if handles[at].is_finished() {
            let _reported = handles.swap_remove(at).join();
        } else {
            at += 1;
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".into())
}
