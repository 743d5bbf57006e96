//! Members' addresses, and which of them is this host's.

use crate::failure::{Failure, USAGE};
use anyhow::Result;
use std::net::{IpAddr, Ipv6Addr, TcpListener, ToSocketAddrs};

/// A bare IPv6 address gets brackets: MariaDB reads one without them as a host and a port.
pub fn bracketed(address: &str) -> String {
    match address.parse::<Ipv6Addr>() {
        Ok(v6) => format!("[{v6}]"),
        Err(_) => address.to_owned(),
    }
}

pub fn is_v6(member: &str) -> bool {
    host(member).parse::<Ipv6Addr>().is_ok()
}

/// Of `HOST:PORT`.
pub fn port(member: &str) -> Option<u16> {
    let rest = member.rsplit_once(']').map_or(member, |(_, rest)| rest);
    rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

pub fn find_named(address: &str, members: &[String]) -> Result<String> {
    if members.iter().any(|member| member == address) {
        return Ok(address.to_owned());
    }
    let message = format!("--address {address} is not among --members {}", members.join(","));
    Err(Failure::new(USAGE, message).into())
}

/// The one member whose address is this host's.
pub fn find_own(members: &[String]) -> Result<String> {
    let own: Vec<&String> = members.iter().filter(|member| is_of_this_host(member)).collect();
    let all = members.join(",");
    let message = match own[..] {
        [only] => return Ok(only.clone()),
        [] => format!("none of --members {all} is an address of this host: check the list"),
        _ => format!("several of --members {all} are addresses of this host: say --address"),
    };
    Err(Failure::new(USAGE, message).into())
}

/// Whether a socket can be bound to it: port 0 is any that is free.
fn is_of_this_host(member: &str) -> bool {
    let Ok(addresses) = (host(member), 0).to_socket_addrs() else { return false };
    addresses.into_iter().any(|address| TcpListener::bind(address).is_ok())
}

/// Of `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare V6 address.
fn host(member: &str) -> &str {
    if let Some((host, _)) = member.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return host;
    }
    if member.parse::<IpAddr>().is_ok() {
        return member;
    }
    member.rsplit_once(':').map_or(member, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_of_members() {
        for (member, of, at, v6) in [
            ("10.0.0.1", "10.0.0.1", None, false),
            ("db1.example.com:4567", "db1.example.com", Some(4567), false),
            ("[2001:db8::1]:4567", "2001:db8::1", Some(4567), true),
            ("[2001:db8::1]", "2001:db8::1", None, true),
            ("2001:db8::1", "2001:db8::1", Some(1), true),
        ] {
            assert_eq!((host(member), is_v6(member)), (of, v6));
            assert_eq!(port(&bracketed(member)), at.filter(|_| bracketed(member) == member));
        }
        assert_eq!(bracketed("2001:db8::1"), "[2001:db8::1]");
        assert_eq!(bracketed("10.0.0.1:4567"), "10.0.0.1:4567");
    }

    #[test]
    fn a_server_finds_itself_among_the_members() {
        let members = |list: &[&str]| list.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
        // 192.0.2.0/24 is for documentation: no host has such an address.
        let found = find_own(&members(&["192.0.2.7", "127.0.0.1:4567", "192.0.2.8"]));
        assert_eq!(found.unwrap(), "127.0.0.1:4567");
        let none = find_own(&members(&["192.0.2.7"])).unwrap_err().to_string();
        assert!(none.contains("is an address of this host"), "{none}");
        let both = find_own(&members(&["127.0.0.1:1", "127.0.0.1:2"])).unwrap_err().to_string();
        assert!(both.contains("--address"), "{both}");
        assert!(find_named("10.9.9.9", &members(&["10.9.9.8"])).is_err());
    }
}
