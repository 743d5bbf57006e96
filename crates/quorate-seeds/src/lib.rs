//! What the simulators share: seeded randomness, ranges of seeds on several threads, what they have
//! visited, and the command that looks for a seed that breaks a rule and tells its story.

mod cli;
mod coverage;
mod rng;
mod sweep;

pub use cli::main;
pub use coverage::{Coverage, Mark};
pub use rng::{mix, Rng};
pub use sweep::{sweep, Outcome, Simulator, Sweep};

/// A simulation makes and drops small things all the time: a fifth more seeds a second than with the
/// system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
