//! Of the way from this host to another one.

use super::between::{far, is_far};
use super::{finding, Finding, Weight};
use crate::check::peers::{Answer, Port, Service, Way};
use std::net::IpAddr;

impl Service {
    /// How bad it is not to reach it, and why.
    fn without(self) -> (Weight, &'static str) {
        match self {
            Service::Group => {
                (Weight::Error, "the group: without it the two cannot be members of one group")
            }
            Service::StateTransfer => (
                Weight::Error,
                "state transfers: without it that host does not get the data from this one",
            ),
            Service::Clients => (
                Weight::Warning,
                "clients: the group does not need it, but clients on this host, and quorate check, do not reach the \
                 server there",
            ),
        }
    }
}

pub fn of_way(way: &Way) -> Vec<Finding> {
    let mut found: Vec<Finding> = way.ports.iter().filter_map(|port| blocked(way, port)).collect();
    let silent =
        |port: &&Port| port.answer == Answer::Refused && port.serves != Service::StateTransfer;
    let unserved: Vec<String> =
        way.ports.iter().filter(silent).map(|port| port.number.to_string()).collect();
    if !unserved.is_empty() {
        found.push(finding(
            Weight::Note,
            format!("it can be reached, and nobody listens at {}", unserved.join(", ")),
            "as it is before its server runs. A firewall that rejects, instead of dropping, looks the same: check \
             again when the server runs",
        ));
    }
    let transfer =
        |port: &Port| port.serves == Service::StateTransfer && port.answer == Answer::Open;
    if let Some(port) = way.ports.iter().find(|port| transfer(port)) {
        found.push(finding(
            Weight::Warning,
            format!("something listens at {}, where only a node that joins does", port.number),
            "if a node joins there now, this look may have ended its state transfer: see its error log, and start it \
             again. If not, let that program use another port",
        ));
    }
    if way.round_trip.is_some_and(is_far) {
        found.push(far("it is"));
    }
    found
}

fn blocked(way: &Way, port: &Port) -> Option<Finding> {
    let how = match &port.answer {
        Answer::Open | Answer::Refused => return None,
        Answer::Silent => "nothing comes back".to_owned(),
        Answer::Unreachable(error) => error.clone(),
    };
    let (weight, means) = port.serves.without();
    let (number, host) = (port.number, &way.host);
    Some(finding(
        weight,
        format!("port {number} is blocked ({how}). It is for {means}"),
        format!(
            "if {host} is up, let this host in there: {}; and so in whatever firewall stands between the two",
            let_in(way.from, number)
        ),
    ))
}

/// The line of a firewall.
fn let_in(from: Option<IpAddr>, port: u16) -> String {
    let (nft, ufw) = match from {
        Some(from) => {
            let family = if from.is_ipv4() { "ip" } else { "ip6" };
            (format!("{family} saddr {from} "), from.to_string())
        }
        None => (String::new(), "any".to_owned()),
    };
    format!(
        "nft insert rule inet filter input {nft}tcp dport {port} accept (with ufw: ufw allow proto tcp from {ufw} to any \
         port {port})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn way(answers: [Answer; 3]) -> Way {
        let services =
            [(4567, Service::Group), (4444, Service::StateTransfer), (3306, Service::Clients)];
        let port = |((number, serves), answer)| Port { number, serves, answer };
        Way {
            host: "10.0.0.2".into(),
            from: Some([10, 0, 0, 1].into()),
            round_trip: Some(Duration::from_micros(300)),
            ports: services.into_iter().zip(answers).map(port).collect(),
            unknown: None,
        }
    }

    #[test]
    fn a_way_that_is_open_has_no_findings() {
        let running = way([Answer::Open, Answer::Refused, Answer::Open]);
        assert_eq!(of_way(&running), []);
        let far = Way { round_trip: Some(Duration::from_millis(20)), ..running };
        assert_eq!(of_way(&far).len(), 1);
    }

    #[test]
    fn before_anything_is_installed_ports_that_refuse_are_a_note() {
        let found = of_way(&way([Answer::Refused, Answer::Refused, Answer::Refused]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].weight, Weight::Note);
        assert!(found[0].what.ends_with("nobody listens at 4567, 3306"), "{found:?}");
    }

    #[test]
    fn a_port_that_is_blocked_is_told_with_the_line_that_opens_it() {
        let no_route = || Answer::Unreachable("No route to host".into());
        let found = of_way(&way([Answer::Silent, no_route(), Answer::Silent]));
        let weights: Vec<Weight> = found.iter().map(|finding| finding.weight).collect();
        assert_eq!(weights, [Weight::Error, Weight::Error, Weight::Warning]);
        assert!(
            found[0].what.starts_with("port 4567 is blocked (nothing comes back)"),
            "{found:?}"
        );
        assert!(found[1].what.contains("(No route to host)"), "{found:?}");
        for part in [
            "nft insert rule inet filter input ip saddr 10.0.0.1 tcp dport 4567 accept",
            "ufw allow proto tcp from 10.0.0.1 to any port 4567",
        ] {
            assert!(found[0].advice.contains(part), "{found:?}");
        }
    }

    #[test]
    fn who_listens_for_a_state_transfer_is_told_of() {
        let found = of_way(&way([Answer::Open, Answer::Open, Answer::Open]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("listens at 4444"), "{found:?}");
    }
}
