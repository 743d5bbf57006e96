//! The client's session in which an order was given.

use quorate_live::Author;

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The number of its connection, as `SHOW PROCESSLIST` has it.
    pub connection: Option<u64>,
    /// The account whose privileges it has, as `root@localhost`.
    pub account: Option<String>,
    /// Its host or address; `None`: it came by the server's socket.
    pub host: Option<String>,
}

impl Session {
    /// Whom its orders are noted for.
    pub fn author(&self) -> Author {
        let name = match (&self.account, self.connection) {
            (Some(account), _) => account.clone(),
            (None, Some(number)) => format!("connection {number}"),
            (None, None) => "unknown".to_owned(),
        };
        let from = match (&self.host, self.connection) {
            (Some(host), _) => host.clone(),
            (None, Some(_)) => "socket".to_owned(),
            (None, None) => "unknown".to_owned(),
        };
        Author { name, from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_named_as_well_as_is_known() {
        let author = |connection, account: Option<&str>, host: Option<&str>| {
            let [account, host] = [account, host].map(|text| text.map(str::to_owned));
            let Author { name, from } = Session { connection, account, host }.author();
            format!("{name} from {from}")
        };
        let root = Some("root@localhost");
        assert_eq!(author(Some(42), root, None), "root@localhost from socket");
        assert_eq!(author(Some(42), root, Some("10.0.0.9")), "root@localhost from 10.0.0.9");
        assert_eq!(author(Some(42), None, None), "connection 42 from socket");
        assert_eq!(author(None, None, None), "unknown from unknown");
    }
}
