//! Every socket that a thread may be waiting on, so that closing the member ends the wait.
//!
//! Invariants:
//! - of those that have not introduced themselves, at most [`STRANGERS_MAX`] are open, and none for longer
//!   than [`STRANGERS_TIME`] once another one comes;
//! - who comes too often makes room for itself: the oldest of the host that has most of them goes, and of hosts
//!   that have as many the one that has been here longest. So nobody can keep the members of the group out from
//!   one host, which may have as many addresses as a network of IPv6 has;
//! - of operators at most [`OPERATORS_MAX`] are open, and of one [`OF_ONE_MAX`]; when there is no room, whoever has
//!   clearly more than the one who comes loses its oldest, and for one on this host anybody does: so none keeps the
//!   others out, and least of all the agent beside this member. All answers to one are paced together, on however
//!   many connections. One is a name and a host, since the agents of a group may share a name.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

const STRANGERS_MAX: usize = 64;
/// From the connection to the introduction, however slowly it comes.
const STRANGERS_TIME: Duration = Duration::from_secs(10);

const OPERATORS_MAX: usize = 40;
const OF_ONE_MAX: usize = 8;
/// Between two answers to one operator, on average: each takes the machine for a moment, which commits wait for.
const PACE: Duration = Duration::from_millis(50);
/// So many answers may come before their time.
const BURST: u32 = 40;

#[derive(Default)]
pub(crate) struct Connections {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number, so the oldest first.
    open: BTreeMap<u64, Connection>,
    next: u64,
    closed: bool,
    /// Up to when each operator has used its time; those who have time left are not here.
    used: BTreeMap<Operator, Instant>,
}

/// Name, and host.
type Operator = (String, IpAddr);

struct Connection {
    stream: TcpStream,
    /// Has not introduced itself: since when, and from where.
    stranger: Option<(Instant, IpAddr)>,
    /// Whose it is, if an operator's.
    operator: Option<Operator>,
}

/// Keeps a connection listed; dropping it takes it off the list.
pub(crate) struct Listed<'a> {
    connections: &'a Connections,
    number: u64,
}

impl Connections {
    /// Lists a connection that this member has dialled.
    pub fn list(&self, stream: &TcpStream) -> io::Result<Listed<'_>> {
        self.add(stream, None)
    }

    /// The one of this number, listed on another thread ([`Listed::hand_over`]).
    pub fn take_over(&self, number: u64) -> Listed<'_> {
        Listed { connections: self, number }
    }

    /// Lists a connection that was accepted. In the order in which they are accepted, or who comes last may be taken
    /// for who is here longest.
    pub fn list_stranger(&self, stream: &TcpStream) -> io::Result<Listed<'_>> {
        self.add(stream, Some((Instant::now(), host_of(stream.peer_addr()?.ip()))))
    }

    fn add(
        &self,
        stream: &TcpStream,
        stranger: Option<(Instant, IpAddr)>,
    ) -> io::Result<Listed<'_>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(io::Error::other("this member is closing"));
        }
        if let Some((now, _)) = stranger {
            state.make_room(now);
        }
        state.next += 1;
        let number = state.next;
        let stream = stream.try_clone()?;
        state.open.insert(number, Connection { stream, stranger, operator: None });
        Ok(Listed { connections: self, number })
    }

    /// Ends every connection there is; others may follow.
    pub fn cut(&self) {
        self.state.lock().open.values().for_each(|connection| shut(&connection.stream));
    }

    /// Ends those with members, and with who may become one. An operator's stays: who has cut this member off
    /// is to hear that it is, and may let it go on.
    pub fn cut_members(&self) {
        let state = self.state.lock();
        let members = state.open.values().filter(|connection| connection.operator.is_none());
        members.for_each(|connection| shut(&connection.stream));
    }

    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.open.values().for_each(|connection| shut(&connection.stream));
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }
}

impl Listed<'_> {
    /// Stays listed, for whoever takes it over.
    pub fn hand_over(self) -> u64 {
        let number = self.number;
        std::mem::forget(self);
        number
    }

    /// It has introduced itself as a member.
    pub fn known(&self) {
        if let Some(connection) = self.connections.state.lock().open.get_mut(&self.number) {
            connection.stranger = None;
        }
    }

    /// It has introduced itself as the operator of this name. False if too many of them are connected.
    pub fn known_operator(&self, name: &str) -> bool {
        let mut state = self.connections.state.lock();
        let Some(connection) = state.open.get(&self.number) else { return false };
        let Ok((operator, is_here)) = operator_of(name, &connection.stream) else { return false };
        if !state.has_room_for(&operator, is_here) {
            return false;
        }
        if let Some(connection) = state.open.get_mut(&self.number) {
            (connection.stranger, connection.operator) = (None, Some(operator));
        }
        true
    }

    /// Its operator asks for something: how long it has to wait for the answer.
    pub fn pause(&self) -> Duration {
        let mut state = self.connections.state.lock();
        let connection = state.open.get(&self.number);
        let operator = connection.and_then(|connection| connection.operator.clone());
        operator.map_or(Duration::ZERO, |operator| state.pause(operator, Instant::now()))
    }
}

/// Of who dials with this name: who that is, and whether it runs on this host.
fn operator_of(name: &str, stream: &TcpStream) -> io::Result<(Operator, bool)> {
    let (from, to) = (stream.peer_addr()?.ip(), stream.local_addr()?.ip());
    Ok(((name.to_owned(), host_of(from)), from == to || from.to_canonical().is_loopback()))
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.connections.state.lock().open.remove(&self.number);
    }
}

impl State {
    /// Whether one more connection of this operator may be; where another one is in the way, it has ended.
    fn has_room_for(&mut self, operator: &Operator, is_here: bool) -> bool {
        let operators = self.open.iter();
        let count = counted(operators.filter_map(|(number, connection)| {
            connection.operator.as_ref().map(|operator| (*number, operator))
        }));
        let own = count.get(operator).map_or(0, |(own, _)| *own);
        if own >= OF_ONE_MAX {
            return false;
        }
        if count.values().map(|(of_one, _)| of_one).sum::<usize>() < OPERATORS_MAX {
            return true;
        }
        let gives_way = |(of_one, _): &(usize, u64)| is_here || *of_one > own + 1;
        let Some((_, oldest)) = most(count).filter(gives_way) else {
            return false;
        };
        self.end(oldest);
        true
    }

    fn end(&mut self, number: u64) {
        if let Some(ended) = self.open.remove(&number) {
            shut(&ended.stream);
        }
    }

    fn pause(&mut self, operator: Operator, now: Instant) -> Duration {
        self.used.retain(|_, until| *until > now);
        let until = self.used.entry(operator).or_insert(now);
        *until += PACE;
        until.saturating_duration_since(now + BURST * PACE)
    }

    fn make_room(&mut self, now: Instant) {
        self.open.retain(|_, connection| {
            let slow = |(since, _)| now.duration_since(since) > STRANGERS_TIME;
            let ends = connection.stranger.is_some_and(slow);
            if ends {
                shut(&connection.stream);
            }
            !ends
        });
        let strangers = self.open.iter().filter_map(|(number, connection)| {
            connection.stranger.map(|(_, address)| (*number, address))
        });
        if strangers.clone().count() < STRANGERS_MAX {
            return;
        }
        if let Some(oldest) = oldest_of_most(strangers) {
            self.end(oldest);
        }
    }
}

/// Of connections, each with its number and what stands for its host, the oldest first: the oldest of the host
/// that has most, and of hosts that have as many, of the one that has been here longest.
pub fn oldest_of_most(open: impl Iterator<Item = (u64, IpAddr)>) -> Option<u64> {
    most(counted(open)).map(|(_, oldest)| oldest)
}

/// By whose they are, of connections, the oldest first: how many, and the number of the oldest.
fn counted<K: Ord>(open: impl Iterator<Item = (u64, K)>) -> BTreeMap<K, (usize, u64)> {
    let mut counted = BTreeMap::new();
    for (number, whose) in open {
        counted.entry(whose).or_insert((0, number)).0 += 1;
    }
    counted
}

/// Of who has most; of those that have as many, of who has been here longest.
fn most<K>(counted: BTreeMap<K, (usize, u64)>) -> Option<(usize, u64)> {
    counted.into_values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)))
}

/// What stands for all addresses that one host may have: of IPv6, its network of 64 bits.
pub fn host_of(addr: IpAddr) -> IpAddr {
    match addr.to_canonical() {
        IpAddr::V6(addr) => Ipv6Addr::from_bits(addr.to_bits() & !u128::from(u64::MAX)).into(),
        addr => addr,
    }
}

/// A socket that is closed already is as good.
pub(crate) fn shut(stream: &TcpStream) {
    let _closed = stream.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{SocketAddr, TcpListener};

    /// A connection from this address of the host: both ends.
    fn from(listener: &TcpListener, last: u8) -> (TcpStream, TcpStream) {
        use rustix::net::{bind, connect, socket, AddressFamily, SocketType};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        connect(&socket, &listener.local_addr().unwrap()).unwrap();
        (socket.into(), listener.accept().unwrap().0)
    }

    fn is_open(stream: &mut TcpStream) -> bool {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    #[test]
    fn a_host_is_one_whatever_addresses_it_takes() {
        let host = |addr: &str| host_of(addr.parse().unwrap());
        assert_eq!(host("2001:db8:0:7::1"), host("2001:db8:0:7:ffff::2"));
        assert_ne!(host("2001:db8:0:7::1"), host("2001:db8:0:8::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
    }

    #[test]
    fn of_hosts_with_as_many_the_one_that_came_first_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let mut all: Vec<_> = (1..=STRANGERS_MAX as u8).map(|last| from(&listener, last)).collect();
        // The last address is that of who came last: it stays.
        let _listed: Vec<_> =
            all.iter().map(|(_, accepted)| connections.list_stranger(accepted).unwrap()).collect();
        let (_more, accepted) = from(&listener, 200);
        let _one_more = connections.list_stranger(&accepted).unwrap();
        assert!(!is_open(&mut all[0].0), "the oldest has gone");
        assert!(all[1..].iter_mut().all(|(stream, _)| is_open(stream)));
    }

    /// Threads begin in any order. Listed by them, one that was accepted last could be taken for the oldest of its host.
    #[test]
    fn a_connection_is_as_old_as_it_was_listed_whoever_serves_it_first() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let mut all: Vec<_> = (0..STRANGERS_MAX).map(|_| from(&listener, 1)).collect();
        let numbers: Vec<_> = all
            .iter()
            .map(|(_, accepted)| connections.list_stranger(accepted).unwrap().hand_over())
            .collect();
        let _last_first: Vec<_> =
            numbers.into_iter().rev().map(|number| connections.take_over(number)).collect();
        let (_more, accepted) = from(&listener, 1);
        let _one_more = connections.list_stranger(&accepted).unwrap();
        assert!(!is_open(&mut all[0].0), "the oldest has gone");
        assert!(all[1..].iter_mut().all(|(stream, _)| is_open(stream)));
    }

    #[test]
    fn a_flood_from_one_host_ends_its_own_connections_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let (mut other, accepted) = from(&listener, 2);
        let (mut member, of_member) = from(&listener, 1);
        let _other = connections.list_stranger(&accepted).unwrap();
        let known = connections.list_stranger(&of_member).unwrap();
        known.known();
        let mut flood = Vec::new();
        for _ in 0..3 * STRANGERS_MAX {
            let (dialled, accepted) = from(&listener, 1);
            flood.push((dialled, connections.list_stranger(&accepted).unwrap(), accepted));
        }
        assert!(is_open(&mut other) && is_open(&mut member));
        let open = flood.iter_mut().filter_map(|(dialled, ..)| is_open(dialled).then_some(()));
        assert_eq!(open.count(), STRANGERS_MAX - 1, "and the other stranger");
    }

    /// Connections from this address of the host, all of the operator of this name; the first of them that are let
    /// in.
    fn operators<'a>(
        connections: &'a Connections,
        listener: &TcpListener,
        (name, last): (&str, u8),
        count: usize,
    ) -> Vec<(TcpStream, Listed<'a>)> {
        let connected = (0..count).map(|_| {
            let (dialled, accepted) = from(listener, last);
            let listed = connections.list_stranger(&accepted).unwrap();
            listed.known_operator(name).then_some((dialled, listed))
        });
        connected.map_while(|known| known).collect()
    }

    #[test]
    fn operators_are_limited_and_hear_that_the_member_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let mut of_ann = operators(&connections, &listener, ("ann", 2), OF_ONE_MAX + 1);
        assert_eq!(of_ann.len(), OF_ONE_MAX, "she has so many");
        let (mut member, accepted) = from(&listener, 1);
        let listed = connections.list_stranger(&accepted).unwrap();
        listed.known();
        connections.cut_members();
        assert!(!is_open(&mut member), "a member's");
        assert!(of_ann.iter_mut().all(|(dialled, _)| is_open(dialled)));
        connections.cut();
        assert!(!of_ann.iter_mut().any(|(dialled, _)| is_open(dialled)));
    }

    #[test]
    fn who_has_most_operators_connected_makes_room_and_for_who_is_here_anybody_does() {
        let count = |of: &mut Vec<(TcpStream, Listed<'_>)>| {
            of.iter_mut().filter_map(|(dialled, _)| is_open(dialled).then_some(())).count()
        };
        let elsewhere = |name: &str, last| ((name.to_owned(), [10, 0, 0, last].into()), false);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let mut all: Vec<_> = (0..OPERATORS_MAX / OF_ONE_MAX)
            .map(|n| operators(&connections, &listener, (&format!("o{n}"), 2), OF_ONE_MAX))
            .collect();
        let room = |of: &(Operator, bool)| connections.state.lock().has_room_for(&of.0, of.1);
        assert!(room(&elsewhere("eve", 1)));
        let open: Vec<usize> = all.iter_mut().map(count).collect();
        assert_eq!(open.iter().sum::<usize>(), OPERATORS_MAX - 1, "{open:?}");
        assert_eq!(open[0], OF_ONE_MAX - 1, "the oldest");
        // As the agents of as many members have them: one each.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let mut agents: Vec<_> = (0..OPERATORS_MAX as u8)
            .flat_map(|last| operators(&connections, &listener, ("agent", last + 2), 1))
            .collect();
        assert_eq!(agents.len(), OPERATORS_MAX);
        let room = |of: &(Operator, bool)| connections.state.lock().has_room_for(&of.0, of.1);
        assert!(!room(&elsewhere("eve", 1)));
        assert_eq!(count(&mut agents), OPERATORS_MAX);
        assert!(room(&(elsewhere("eve", 1).0, true)));
        assert_eq!(count(&mut agents), OPERATORS_MAX - 1);
    }

    #[test]
    fn who_does_not_introduce_itself_in_time_goes_when_another_one_comes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let (mut slow, accepted) = from(&listener, 1);
        let _slow = connections.list_stranger(&accepted).unwrap();
        let now = Instant::now();
        connections.state.lock().make_room(now + STRANGERS_TIME / 2);
        assert!(is_open(&mut slow));
        connections.state.lock().make_room(now + 2 * STRANGERS_TIME);
        assert!(!is_open(&mut slow));
    }

    #[test]
    fn an_operator_has_some_answers_at_once_and_then_one_after_the_other() {
        let (mut state, now) = (State::default(), Instant::now());
        let of = |name: &str, last| (name.to_owned(), IpAddr::from([10, 0, 0, last]));
        assert!((0..BURST).all(|_| state.pause(of("ann", 1), now).is_zero()));
        assert_eq!(state.pause(of("ann", 1), now), PACE);
        assert_eq!(state.pause(of("ann", 1), now + PACE), PACE);
        assert!(state.pause(of("bob", 1), now).is_zero(), "each has its own");
        assert!(state.pause(of("ann", 2), now).is_zero(), "on each host");
        let later = now + 2 * BURST * PACE;
        assert!((0..BURST).all(|_| state.pause(of("ann", 1), later).is_zero()));
        assert_eq!(state.used.len(), 1, "who has time left is forgotten");
    }
}
