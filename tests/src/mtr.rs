//! MariaDB's own test suites as the judge: the same tests with Galera and with this provider.
//!
//! * [`runner`]: one run of the suites with one provider.
//! * [`tree`]: the suites, with private keys that are private.
//! * [`results`]: what came of each test.
//! * [`table`]: both side by side.

pub mod results;
pub mod runner;
pub mod table;
mod tree;
