//! What a person or a script is shown.

mod progress;
mod report;
pub mod table;

pub use progress::{NodeLine, Progress};
pub use report::{Health, NodeReport, Report, PAUSED};
