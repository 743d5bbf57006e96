//! Options once the node has begun with them.
//!
//! Invariant: what is read at the start stays as it is then, whoever sets it. The address may have options, too,
//! and is set by SQL like `wsrep_provider_options`: otherwise whoever sets it could take the protection off the
//! group port of a running node.

use super::{OptionError, Options};

impl Options {
    /// The node has begun with these.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// Of one that may not change now. An address that says again what it said at the start says nothing new, even
    /// if the node has learnt another value since (the group's window, an address in another form). Nor does one
    /// that was not given count as given now: `socket.ssl = no`, as it is shown, would turn certificates off.
    pub(super) fn check_same(
        &self,
        name: &str,
        value: &str,
        running: bool,
    ) -> Result<(), OptionError> {
        let present = self.text(name);
        let again = !running && self.given.get(name).is_some_and(|given| given == value);
        if present == value || again {
            return Ok(());
        }
        let (name, present) = (name.to_string(), present.to_string());
        Err(match running {
            true => OptionError::NotLive { name },
            false => OptionError::Begun { name, present },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_live::Security;

    #[test]
    fn what_is_read_at_the_start_stays_as_it_is_once_the_node_has_begun() {
        let mut options = Options::default();
        let at_start = "quorate.secret_file=/s;base_host=::1;quorate.cert_window=1024;pc.weight=2";
        options.set(at_start, false).unwrap();
        options.learn("base_host", "[::1]".into());
        options.learn("quorate.cert_window", "16384".into());
        options.begin();
        let begun = options.clone();
        for other in [
            "socket.dynamic=yes",
            "quorate.secret_file=/other",
            "quorate.secret_file=",
            "quorate.insecure=yes",
            "quorate.encrypt=no",
            "quorate.dir=/elsewhere",
            "quorate.cert_window=512",
        ] {
            let error = options.set(&format!("pc.weight=3;{other}"), false).unwrap_err();
            assert!(matches!(error, OptionError::Begun { .. }), "{other}: {error:?}");
            let (name, _) = other.split_once('=').unwrap();
            assert!(error.to_string().contains(&format!("'{name}' is")), "{error}");
            assert_eq!(options.render(), begun.render(), "nothing was changed");
        }
        // What was said at the start, what is now, and what may change.
        options.set(at_start, false).unwrap();
        options.set("base_host=[::1];quorate.cert_window=16384", false).unwrap();
        assert_eq!(options.render(), begun.render());
        options.set("pc.weight=3;gcache.size=1G", false).unwrap();
        assert_eq!(options.integer("pc.weight"), 3);
        let command = options.set("pc.bootstrap=1", false);
        assert!(matches!(command, Err(OptionError::OnlyLive { .. })), "an address is no command");
    }

    #[test]
    fn what_is_shown_and_set_again_does_not_count_as_given() {
        let mut options = Options::default();
        options.set("socket.ssl_cert=/c;socket.ssl_key=/k", false).unwrap();
        let shown = options.render();
        for begun in [false, true] {
            options.set(&shown, true).unwrap();
            options.set("socket.ssl=no", true).unwrap();
            if begun {
                options.set("socket.ssl=no", false).unwrap();
            }
            assert!(matches!(options.security(), Ok(Security::Certificates(_))));
            options.begin();
        }
    }
}
