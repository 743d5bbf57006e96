//! Groups of machines in virtual time, joined by a little network in memory.

mod audit;
mod floods;
mod history;
mod keys;
mod lies;
mod membership;
mod orders;
mod quorum;
mod release;
mod standing;
mod world;
