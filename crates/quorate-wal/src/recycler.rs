//! Prepares the next segment, recycles released ones, fills the reserve up and syncs marks, off the
//! writer's path.

use crate::error::WalError;
use crate::segment::{file_name, Segment};
use crate::shared::Shared;
use crate::state::Released;
use crate::supply::Job;
use std::sync::Arc;

/// Fails only if the meta file cannot be written, or a segment of the log not synced, which is final.
pub(crate) fn carry_out(shared: &Shared, job: Job) -> Result<(), Arc<WalError>> {
    match job {
        Job::Make { sequence, spare } => shared.supply.prepare(sequence, spare),
        Job::Reserve => shared.supply.add_to_reserve(),
        Job::Settle(segment) => settle(shared, &segment).map_err(|error| shared.fail(error))?,
        Job::Retire(released) => {
            retire(shared, released)?;
            shared.room_made();
        }
    }
    Ok(())
}

/// Syncs a mark, of a segment that may have been recycled since. By a file of its own, if it can be opened: an error is
/// told once for each, and the writer, which may sync the same pages, is to have it, too.
fn settle(shared: &Shared, segment: &Segment) -> Result<(), WalError> {
    match shared.disk.open(&file_name(segment.sequence())) {
        Ok(file) => segment.synced(file.sync_data()),
        Err(_) => segment.sync(),
    }
}

/// First the meta file says where the log begins now: from then on it does not matter which of the
/// files before are still there.
fn retire(shared: &Shared, released: Vec<Released>) -> Result<(), Arc<WalError>> {
    let Some(newest) = released.last() else { return Ok(()) };
    let (first_segment, base) = (newest.first_segment, newest.base);
    shared.save_meta(|meta| {
        meta.first_segment = first_segment;
        meta.base = base;
    })?;
    shared.supply.recycle(released.into_iter().flat_map(|r| r.segments).collect());
    Ok(())
}
