//! Who is here: views as entries of the log, and who is to be in the next one.

mod next;
mod types;

pub(crate) use next::{next_view, Presence};
pub use types::{View, ViewMember};
