//! Who is here: views as entries of the log, when the next one is due, and who asks for one.

mod next;
mod rounds;
mod types;

pub(crate) use rounds::Views;
pub use types::{View, ViewMember};
