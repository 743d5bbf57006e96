//! Who belongs to the group: admission, promotion, new addresses, votes, leaving, expulsion; and who is
//! here: when the next view is due.

mod admission;
mod changes;
mod departures;
mod joining;
mod policy;
mod views;
mod votes;

pub(crate) use admission::admit;
pub(crate) use changes::{is_there, keep_up};
pub(crate) use departures::Departures;
pub(crate) use joining::Joining;
pub(crate) use policy::{is_all, is_out, leaves_enough, needed};
pub(crate) use views::Views;
pub(crate) use votes::VoteWishes;

/// What members ask of each other, and of this one.
pub(crate) struct Membership {
    pub joining: Joining,
    pub departures: Departures,
    pub votes: VoteWishes,
}
