//! Whether servers are fit for a group, or what is wrong with those of one: asked by SQL, before anything is
//! changed.
//!
//! * [`facts`]: what a server says.
//! * [`findings`]: what that means, and what to do. Pure.

mod facts;
mod findings;

pub use facts::{Account, Facts, Table};
pub use findings::{across, of_disk, of_server, Finding, Weight};

use serde::Serialize;
use std::fmt;

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Check {
    pub servers: Vec<Checked>,
    /// Between the servers, and of this host's disk.
    pub findings: Vec<Finding>,
}

/// One server.
#[derive(Debug, Serialize)]
pub struct Checked {
    pub address: String,
    pub version: Option<String>,
    /// From here to there and back, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Why it could not be asked.
    pub unanswered: Option<String>,
    pub findings: Vec<Finding>,
}

impl Check {
    pub fn all(&self) -> impl Iterator<Item = &Finding> {
        self.servers.iter().flat_map(|server| &server.findings).chain(&self.findings)
    }

    /// How much the heaviest finding weighs.
    pub fn worst(&self) -> Option<Weight> {
        self.all().map(|finding| finding.weight).max()
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for server in &self.servers {
            match (&server.version, server.round_trip_ms) {
                (Some(version), Some(ms)) => {
                    writeln!(f, "{}: {version}, round trip {ms:.2} ms", server.address)?;
                }
                _ => writeln!(
                    f,
                    "{}: not checked: {}",
                    server.address,
                    server.unanswered.as_deref().unwrap_or_default()
                )?,
            }
            server.findings.iter().try_for_each(|finding| write!(f, "{finding}"))?;
        }
        if !self.findings.is_empty() {
            writeln!(f, "All together:")?;
            self.findings.iter().try_for_each(|finding| write!(f, "{finding}"))?;
        }
        let count = |weight| self.all().filter(|finding| finding.weight == weight).count();
        writeln!(
            f,
            "\n{} to mend first, {} to look at, {} to know",
            count(Weight::Error),
            count(Weight::Warning),
            count(Weight::Note)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    #[test]
    fn the_page_names_the_fields() {
        let finding = of_disk(std::time::Duration::ZERO);
        let server = Checked {
            address: "a:3306".into(),
            version: None,
            round_trip_ms: None,
            unanswered: None,
            findings: vec![finding.clone()],
        };
        let check = Check { servers: vec![server], findings: vec![finding] };
        names_fields_of(&serde_json::to_value(&check).unwrap());
    }
}
