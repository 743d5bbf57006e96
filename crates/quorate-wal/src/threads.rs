//! The two threads of an open log: loops around [`Writer::step`] and [`recycler::carry_out`], which
//! decide nothing but when.
//!
//! A panic on either is a bug, and final: the log fails, `OnSync` is told, and nothing that this
//! process says of its log can be relied on any more.

use crate::error::WalError;
use crate::recycler;
use crate::shared::Shared;
use crate::wal::OnSync;
use crate::writer::{Next, Writer};
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// After so long without work a mark tells the next recovery that everything was synced. Long enough that a
/// client that writes now and then costs no second sync each time.
const IDLE: Duration = Duration::from_secs(1);
/// A disk without room is tried again after this, or when a segment was recycled.
const RETRY: Duration = Duration::from_millis(500);

/// Runs until the log is closed or fails.
pub(crate) fn write(mut writer: Writer, on_sync: OnSync) {
    let shared = writer.shared().clone();
    let outcome = guarded(&shared, || run_writer(&mut writer, &on_sync));
    if let Err(error) = outcome {
        // Should the receiver be what panicked, it is told nevertheless; and should it panic again,
        // the log has failed all the same.
        let _ = guarded(&shared, || {
            on_sync(Err(error));
            Ok(())
        });
    }
}

/// Prepares and recycles segments until the log is closed or fails.
pub(crate) fn recycle(shared: &Arc<Shared>) {
    let outcome = guarded(shared, || {
        while let Some(job) = shared.supply.next_job() {
            recycler::carry_out(shared, job)?;
        }
        Ok(())
    });
    if outcome.is_err() {
        // The writer, which reports it, may wait for the segment that was being made.
        shared.supply.abandon();
    }
}

fn guarded(
    shared: &Shared,
    run: impl FnOnce() -> Result<(), Arc<WalError>>,
) -> Result<(), Arc<WalError>> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let what = text(&*panic).into();
        Err(shared.fail(WalError::Panicked { dir: shared.disk.dir().into(), what }))
    })
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn run_writer(writer: &mut Writer, on_sync: &OnSync) -> Result<(), Arc<WalError>> {
    let shared = writer.shared().clone();
    while wait(writer, &shared) {
        if writer.is_between_batches() {
            shared.crowd.give_way();
            shared.crowd.note(shared.state().queued());
        }
        // To write what is queued before this is reported, or to report it on a thread of its own, makes the next
        // batch smaller, and the median time of a commit longer.
        if let Some(position) = writer.step()? {
            on_sync(Ok(position));
        }
    }
    shared.save_closed()
}

/// Waits for something to do; false when there will be nothing more.
fn wait(writer: &Writer, shared: &Shared) -> bool {
    loop {
        let mut state = shared.state();
        let next = writer.next_in(&state);
        let patience = match next {
            Next::Write | Next::Sync | Next::Failed => return true,
            Next::Full if std::mem::take(&mut state.room_made) => return true,
            Next::Idle => None,
            Next::Mark => Some(IDLE),
            Next::Full => Some(RETRY),
        };
        if state.closing {
            // What found no room is given up: nothing of it was acknowledged. No mark is needed: the
            // term file is going to say how far everything is synced.
            return false;
        }
        state.idle = next != Next::Full;
        let patience_over = shared.wait(state, patience);
        shared.state().idle = false;
        if patience_over {
            return true;
        }
    }
}
