//! What the simulators share: seeded randomness, ranges of seeds on several threads, what they have
//! visited, and the command that looks for a seed that breaks a rule and tells its story.

mod cli;
mod coverage;
mod panics;
mod rng;
mod sweep;
mod trace;

pub use cli::main;
pub use coverage::{Coverage, Mark};
pub use panics::caught;
pub use rng::{mix, Rng};
pub use sweep::{argument, sweep, Outcome, Simulator, Sweep};
pub use trace::Trace;

/// A simulation makes and drops small things all the time: a fifth more seeds a second than with the
/// system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
