//! Taking a program's syncs away from outside: the kernel answers them with success, and does nothing.
//!
//! A filter of system calls (seccomp) does that, which a thread puts on itself and which whatever it starts
//! inherits. The program, its files and its disk are the same with and without.

use anyhow::{Context, Result};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// What makes earlier writes durable.
const CALLS: [i64; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_msync,
    libc::SYS_syncfs,
    libc::SYS_sync,
];

/// What becomes of a program's syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syncs {
    Done,
    /// They return at once. Files opened so that each write is durable (O_SYNC, O_DSYNC) still are so.
    TakenAway,
}

impl Syncs {
    /// Holds for the rest of this thread's life, and for all that it starts.
    pub(super) fn of_this_thread(self) -> Result<()> {
        if self == Syncs::Done {
            return Ok(());
        }
        let rules = CALLS.map(|call| (call, Vec::new())).into();
        let machine: TargetArch =
            std::env::consts::ARCH.try_into().context("filters of system calls on this machine")?;
        let success = SeccompAction::Errno(0);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, success, machine)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program).context("filtering a thread's system calls")
    }
}
