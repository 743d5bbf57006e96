//! Addresses as Galera's users write them: `gcomm://a,b:4567?gmcast.listen_addr=tcp://0.0.0.0:1`.

use std::net::Ipv6Addr;

const TLS: &str = "ssl://";

/// A parsed `wsrep_cluster_address`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ClusterUrl {
    /// `host:port` of the members to look for.
    pub seeds: Vec<String>,
    /// Options after the question mark, as `name=value;name=value`.
    pub options: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadUrl {
    #[error("Backend not supported: {0}: wsrep_cluster_address has to begin with gcomm://")]
    Scheme(String),
    #[error("Invalid backend URI: wsrep_cluster_address '{0}' is not of the form gcomm://host[:port],…[?option=value&…]: correct it and restart the node")]
    Form(String),
    #[error("{option} = '{value}' is not an address: host, host:port, or [IPv6 address]:port, perhaps after tcp://. Nothing was started, no data is affected: correct it and restart the node")]
    Address { option: &'static str, value: String },
    #[error("{option} = '{value}' asks for TLS, and nothing protects the connections of this node. Nothing was started, no data is affected: set quorate.secret_file (see quorate secret new) or socket.ssl_cert and socket.ssl_key, or write tcp://, and restart the node")]
    Unprotected { option: &'static str, value: String },
}

pub fn parse_url(url: &str, default_port: u16) -> Result<ClusterUrl, BadUrl> {
    let bad = || BadUrl::Form(url.to_string());
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    if scheme != "gcomm" {
        return Err(BadUrl::Scheme(scheme.to_string()));
    }
    let (hosts, query) = rest.split_once('?').unwrap_or((rest, ""));
    let seeds = hosts
        .split(',')
        .map(str::trim)
        .filter(|h| !h.is_empty())
        .map(|h| with_port(h, default_port).ok_or_else(bad))
        .collect::<Result<_, _>>()?;
    Ok(ClusterUrl { seeds, options: query.replace('&', ";") })
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`, a bare v6 address, each perhaps after `tcp://` or Galera's `ssl://`;
/// `None` if the port or the v6 address is none.
pub fn with_port(address: &str, default_port: u16) -> Option<String> {
    let schemes = ["tcp://", TLS];
    let address = schemes.iter().find_map(|scheme| address.strip_prefix(scheme)).unwrap_or(address);
    if let Some(v6) = address.strip_prefix('[') {
        let (host, rest) = v6.split_once(']').filter(|(host, _)| is_v6(host))?;
        let port = match rest {
            "" => default_port,
            _ => rest.strip_prefix(':')?.parse().ok()?,
        };
        return Some(format!("[{host}]:{port}"));
    }
    match address.matches(':').count() {
        0 => Some(format!("{address}:{default_port}")),
        1 => {
            let (host, port) = address.split_once(':')?;
            let port: u16 = port.parse().ok()?;
            Some(format!("{host}:{port}"))
        }
        _ => is_v6(address).then(|| format!("[{address}]:{default_port}")),
    }
}

/// Whether these addresses have Galera's word for connections that are encrypted.
pub fn asks_for_tls(addresses: &str) -> bool {
    addresses.contains(TLS)
}

/// Perhaps with the interface that it is of, as link-local ones need.
fn is_v6(address: &str) -> bool {
    let plain = address.split_once('%').map_or(address, |(plain, _interface)| plain);
    plain.parse::<Ipv6Addr>().is_ok()
}

/// The host part of `host:port`.
pub fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// Where clients find a node: what the server says, `told`. It leaves the host out (`:3306`) where its
/// `wsrep_node_address` is an IPv6 address without brackets.
pub fn incoming(told: &str, node_address: &str) -> String {
    let port = told.strip_prefix(':').and_then(|port| port.parse().ok());
    let whole = port.and_then(|port| {
        let node = with_port(node_address, port)?;
        Some(format!("{}:{port}", host_of(&node)))
    });
    whole.unwrap_or_else(|| told.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_options() {
        let url =
            parse_url("gcomm://10.0.0.1,b:4030,[::1]:5?pc.weight=1&base_port=9", 4567).unwrap();
        assert_eq!(url.seeds, ["10.0.0.1:4567", "b:4030", "[::1]:5"]);
        assert_eq!(url.options, "pc.weight=1;base_port=9");
        assert_eq!(parse_url("gcomm://", 4567).unwrap(), ClusterUrl::default());
    }

    #[test]
    fn what_is_not_an_address_is_refused() {
        for bad in [
            "",
            "tcp://a",
            "gcomm://a:port",
            "gcomm://[::1",
            "gcomm://[::1]x",
            "gcomm://a:1:2",
            "gcomm://[a]:1",
        ] {
            assert!(parse_url(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn clients_find_a_node_whose_host_the_server_leaves_out() {
        assert_eq!(incoming(":3306", "::1"), "[::1]:3306");
        assert_eq!(incoming(":3306", "[fd00::2]:4567"), "[fd00::2]:3306");
        for told in ["AUTO", "", "10.0.0.1:3306", "[::1]:3306", "::1"] {
            assert_eq!(incoming(told, "10.0.0.2:4567"), told);
        }
    }

    #[test]
    fn bare_ipv6_gets_brackets() {
        assert_eq!(with_port("::1", 7).as_deref(), Some("[::1]:7"));
        assert_eq!(with_port("tcp://0.0.0.0:9", 7).as_deref(), Some("0.0.0.0:9"));
        assert_eq!(with_port("ssl://0.0.0.0:9", 7).as_deref(), Some("0.0.0.0:9"));
        assert!(asks_for_tls("ssl://0.0.0.0:9") && !asks_for_tls("tcp://0.0.0.0:9"));
        assert_eq!(with_port("fe80::1%eth0", 7).as_deref(), Some("[fe80::1%eth0]:7"));
        assert_eq!(host_of("[::1]:7"), "[::1]");
    }
}
