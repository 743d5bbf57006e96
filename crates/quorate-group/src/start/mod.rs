//! From what the log directory says to a member: whether to found a group, and what the core starts
//! from.

mod directory;
mod founding;
mod restore;

pub use directory::Directory;
pub use founding::SeedAnswer;
pub(crate) use founding::{founding, judge_seed};
pub use restore::{fit, Fit};
pub(crate) use restore::{restored, superseded};
