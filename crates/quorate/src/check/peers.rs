//! The way from this host to those that are to be in a group with it: before anything is installed there, and at
//! any time.
//!
//! Invariant: what serves there is not disturbed. A server counts connections that say nothing as errors of this host
//! (`max_connect_errors`), and a node that waits for a state transfer takes one connection. So each port is dialled
//! once. Only the group's port, and one where nobody listens, is dialled again for the time that it takes.

use super::dial::{dial, dial_address, host_and_port, own_address, Dialled, CONNECT_TIMEOUT};
use quorate_lab::server::Ports;
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

/// Round trips of which the median counts.
const LOOKS: usize = 7;

/// A host, and what of it was reached.
#[derive(Debug, Default)]
pub struct Way {
    pub host: String,
    /// This host, as the other one sees it.
    pub from: Option<IpAddr>,
    /// None: no port answered.
    pub round_trip: Option<Duration>,
    pub ports: Vec<Port>,
    /// Why there is no address to dial.
    pub unknown: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub number: u16,
    pub serves: Service,
    pub answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Group,
    StateTransfer,
    Clients,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Open,
    /// Nobody listens. A firewall that rejects may look the same.
    Refused,
    /// Nothing comes back.
    Silent,
    /// What lies in between says no.
    Unreachable(String),
}

impl Answer {
    fn of(outcome: &io::Result<()>) -> Answer {
        match outcome {
            Ok(()) => Answer::Open,
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => Answer::Refused,
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Answer::Silent,
                _ => Answer::Unreachable(error.to_string()),
            },
        }
    }

    /// In the JSON document.
    pub fn word(&self) -> &'static str {
        match self {
            Answer::Open => "open",
            Answer::Refused => "refused",
            Answer::Silent => "silent",
            Answer::Unreachable(_) => "unreachable",
        }
    }
}

impl Way {
    /// Dials the host's ports; `address` is `HOST:PORT`, the port that of the group.
    pub fn look(address: &str) -> Way {
        let (host, group) = host_and_port(address, Ports::USUAL.group);
        let services = [
            (group, Service::Group),
            (Ports::USUAL.sst, Service::StateTransfer),
            (Ports::USUAL.client, Service::Clients),
        ];
        let dialled: io::Result<Vec<Dialled>> = thread::scope(|scope| {
            let dialling = services.map(|(port, _)| scope.spawn(move || dial(host, port)));
            dialling.into_iter().map(|dialled| dialled.join().expect("it does not panic")).collect()
        });
        let way = Way { host: host.to_owned(), ..Way::default() };
        let dialled = match dialled {
            Ok(dialled) => dialled,
            Err(error) => return Way { unknown: Some(error.to_string()), ..way },
        };
        let port = |((number, serves), dialled): ((u16, Service), &Dialled)| {
            let answer = Answer::of(&dialled.outcome);
            Port { number, serves, answer }
        };
        Way {
            from: dialled.first().and_then(|dialled| own_address(dialled.address)),
            round_trip: round_trip(&dialled),
            ports: services.into_iter().zip(&dialled).map(port).collect(),
            ..way
        }
    }
}

/// The median of several, where that harms nobody; `dialled`: the group's port first.
fn round_trip(dialled: &[Dialled]) -> Option<Duration> {
    let answered = || dialled.iter().filter(|dialled| dialled.is_answered());
    let is_harmless = |(at, dialled): &(usize, &Dialled)| {
        dialled.is_answered() && (*at == 0 || dialled.outcome.is_err())
    };
    let Some((_, again)) = dialled.iter().enumerate().find(is_harmless) else {
        return answered().map(|dialled| dialled.took).min();
    };
    let looks = (1..LOOKS).map(|_| dial_address(again.address, CONNECT_TIMEOUT));
    let mut took: Vec<Duration> =
        looks.filter(Dialled::is_answered).map(|look| look.took).chain([again.took]).collect();
    took.sort_unstable();
    Some(took[took.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_is_open_or_refused_and_a_name_without_an_address_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let way = Way::look(&address.to_string());
        let group = &way.ports[0];
        assert_eq!((group.number, &group.answer), (address.port(), &Answer::Open));
        assert_eq!(way.ports.iter().map(|port| port.number).collect::<Vec<_>>()[1..], [4444, 3306]);
        assert!(way.round_trip.is_some_and(|took| took < Duration::from_secs(1)), "{way:?}");
        assert_eq!(way.from, Some(address.ip()));
        drop(listener);
        assert_eq!(Way::look(&address.to_string()).ports[0].answer, Answer::Refused);

        // Nobody connects to a multicast address: the kernel says so at once.
        let unroutable = Way::look("224.0.0.1:4567");
        let is_no = |port: &Port| matches!(port.answer, Answer::Unreachable(_));
        assert!(unroutable.ports.iter().all(is_no), "{unroutable:?}");
        assert_eq!(unroutable.round_trip, None);
        let nowhere = Way::look("no-such-host.invalid:4567");
        assert!(nowhere.unknown.is_some() && nowhere.ports.is_empty(), "{nowhere:?}");
    }

    #[test]
    fn a_server_is_dialled_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let count = || {
            listener.set_nonblocking(true).unwrap();
            std::iter::from_fn(|| listener.accept().ok()).count()
        };
        let address = listener.local_addr().unwrap();
        let open = || dial_address(address, CONNECT_TIMEOUT);
        let silent = || Dialled {
            address,
            outcome: Err(io::ErrorKind::TimedOut.into()),
            took: CONNECT_TIMEOUT,
        };
        assert!(round_trip(&[silent(), silent(), open()]).is_some());
        assert_eq!(count(), 1);
        assert!(round_trip(&[open(), silent(), silent()]).is_some());
        assert_eq!(count(), LOOKS);
        assert_eq!(round_trip(&[silent(), silent(), silent()]), None);
    }
}
