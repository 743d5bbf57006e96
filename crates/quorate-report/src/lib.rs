//! Reports as one page that asks nobody for anything: no request, no script.
//!
//! * [`look`]: colours and the style sheet, the same for all reports; a system has one colour.
//! * [`chart`]: lines and bars as SVG.
//! * [`page`]: the page around them.
//! * `browser`: opens it, for tests.

#[cfg(feature = "browser")]
pub mod browser;
pub mod chart;
pub mod look;
pub mod page;
