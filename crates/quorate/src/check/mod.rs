//! Whether servers are fit for a group, or what is wrong with those of one. It only looks:
//!
//! * [`facts`]: what a server says, by SQL.
//! * [`peers`]: what of another host is reached from this one ([`dial`]).
//! * the members' own reports come from [`crate::remote`].
//! * [`findings`]: what all that means, and what to do. Pure.

mod dial;
mod facts;
mod findings;
mod peers;

pub use facts::{Account, Facts, Table};
pub use findings::{across, even, of_disk, of_group, of_server, unreached, Finding, Weight};
pub use peers::Way;

use crate::remote::NodeSurvey;
use findings::{of_member, of_way};
use serde::Serialize;
use std::fmt;

/// All that was found.
#[derive(Debug, Default, Serialize)]
pub struct Check {
    pub members: Vec<CheckedMember>,
    pub servers: Vec<Checked>,
    pub peers: Vec<CheckedPeer>,
    /// Between the members, between the servers, and of this host's disk.
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

/// One member of a group, asked as an operator.
#[derive(Debug, Serialize)]
pub struct CheckedMember {
    pub name: String,
    /// Group address.
    pub address: Option<String>,
    pub release: Option<String>,
    pub unanswered: Option<String>,
    pub findings: Vec<Finding>,
}

/// Another host, as it is reached from this one.
#[derive(Debug, Serialize)]
pub struct CheckedPeer {
    pub address: String,
    pub round_trip_ms: Option<f64>,
    pub ports: Vec<CheckedPort>,
    pub unanswered: Option<String>,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
pub struct CheckedPort {
    pub port: u16,
    pub answer: &'static str,
}

impl CheckedMember {
    pub fn of(node: &NodeSurvey) -> CheckedMember {
        let silent = || format!("it says no more than its state, {}", node.state);
        let unanswered = match &node.own {
            Some(_) => None,
            None => Some(node.unanswered.clone().unwrap_or_else(silent)),
        };
        CheckedMember {
            name: node.name.clone(),
            address: node.member.as_ref().map(|member| member.address.clone()),
            release: node.release.clone(),
            unanswered,
            findings: of_member(node),
        }
    }
}

impl CheckedPeer {
    pub fn of(way: &Way) -> CheckedPeer {
        let no_port = || way.round_trip.is_none().then(|| "none of its ports answers".to_owned());
        let port =
            |port: &peers::Port| CheckedPort { port: port.number, answer: port.answer.word() };
        CheckedPeer {
            address: way.host.clone(),
            round_trip_ms: way.round_trip.map(|took| took.as_secs_f64() * 1000.0),
            ports: way.ports.iter().map(port).collect(),
            unanswered: way.unknown.clone().or_else(no_port),
            findings: of_way(way),
        }
    }
}

impl Check {
    pub fn all(&self) -> impl Iterator<Item = &Finding> {
        let members = self.members.iter().flat_map(|member| &member.findings);
        let servers = self.servers.iter().flat_map(|server| &server.findings);
        let peers = self.peers.iter().flat_map(|peer| &peer.findings);
        members.chain(servers).chain(peers).chain(&self.findings)
    }

    /// Whether all that was to be asked has answered.
    pub fn is_complete(&self) -> bool {
        self.members.iter().all(|member| member.unanswered.is_none())
            && self.servers.iter().all(|server| server.unanswered.is_none())
            && self.peers.iter().all(|peer| peer.unanswered.is_none())
    }

    /// How much the heaviest finding weighs.
    pub fn worst(&self) -> Option<Weight> {
        self.all().map(|finding| finding.weight).max()
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for member in &self.members {
            let at = member.address.as_ref().map(|address| format!(" ({address})"));
            let name = format!("{}{}", member.name, at.unwrap_or_default());
            let release = member.release.as_deref().unwrap_or_default();
            let says = format!("Quorate {release}");
            shown(f, &name, &says, &member.unanswered, &member.findings)?;
        }
        for server in &self.servers {
            let says = match (&server.version, server.round_trip_ms) {
                (Some(version), Some(ms)) => format!("{version}, round trip {ms:.2} ms"),
                _ => String::new(),
            };
            shown(f, &server.address, &says, &server.unanswered, &server.findings)?;
        }
        for peer in &self.peers {
            let port = |port: &CheckedPort| format!("{} {}", port.port, port.answer);
            let ports: Vec<String> = peer.ports.iter().map(port).collect();
            let ms = peer.round_trip_ms.unwrap_or_default();
            let says = format!("round trip {ms:.2} ms; ports: {}", ports.join(", "));
            shown(
                f,
                &format!("From here to {}", peer.address),
                &says,
                &peer.unanswered,
                &peer.findings,
            )?;
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

/// One that was asked: what it says, or why it does not, and what was found.
fn shown(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    says: &str,
    unanswered: &Option<String>,
    findings: &[Finding],
) -> fmt::Result {
    match unanswered {
        None => writeln!(f, "{name}: {says}")?,
        Some(why) => writeln!(f, "{name}: not checked: {why}")?,
    }
    findings.iter().try_for_each(|finding| write!(f, "{finding}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::page::names_fields_of;

    fn full() -> Check {
        let finding = of_disk(std::time::Duration::ZERO);
        let server = Checked {
            address: "a:3306".into(),
            version: None,
            round_trip_ms: None,
            unanswered: None,
            findings: vec![finding.clone()],
        };
        let way =
            Way { host: "10.0.0.2".into(), unknown: Some("no such host".into()), ..Way::default() };
        let mut peer = CheckedPeer::of(&way);
        peer.ports.push(CheckedPort { port: 4567, answer: "open" });
        let node = NodeSurvey { name: "db1".into(), state: "Down".into(), ..NodeSurvey::default() };
        Check {
            members: vec![CheckedMember::of(&node)],
            servers: vec![server],
            peers: vec![peer],
            findings: vec![finding],
        }
    }

    #[test]
    fn the_page_names_the_fields() {
        names_fields_of(&serde_json::to_value(full()).unwrap());
    }

    #[test]
    fn whoever_did_not_answer_is_shown_with_the_reason() {
        let check = full();
        assert!(!check.is_complete());
        let shown = check.to_string();
        for part in [
            "db1: not checked: it says no more than its state, Down\n",
            "From here to 10.0.0.2: not checked: no such host\n",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        assert_eq!(check.all().count(), 2);
    }
}
