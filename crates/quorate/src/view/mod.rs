//! What a person or a script is shown.

#[cfg(test)]
pub mod page;
mod progress;
pub mod table;

pub use progress::{NodeLine, Progress};
