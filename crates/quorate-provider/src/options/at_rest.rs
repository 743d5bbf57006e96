//! With what the group log is encrypted.

use crate::options::values::parse_bool;
use crate::options::Options;
use quorate_live::{AtRest, DiskKey};
use std::path::PathBuf;

/// What the server said of encryption before the node was connected.
#[derive(Clone, Debug, Default)]
pub struct ServerEncryption {
    /// It is on: the server has a callback for it.
    pub on: bool,
    /// From its key service, the newest first.
    pub keys: Vec<DiskKey>,
}

impl Options {
    /// As the server does, if nothing is said; a key file says that it is to be encrypted. With
    /// `quorate.encrypt=no` keys are for what is encrypted already.
    pub fn at_rest(&self, server: &ServerEncryption) -> AtRest {
        let key_file = Some(self.text("quorate.encrypt_key_file"))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        let wanted = server.on || !server.keys.is_empty() || key_file.is_some();
        let asked = self.text("quorate.encrypt");
        let refuses_plain = asked == "only";
        let encrypts = refuses_plain || parse_bool(asked).unwrap_or(wanted);
        AtRest { encrypts, refuses_plain, key_file, given: server.keys.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_rest(text: &str, server: &ServerEncryption) -> AtRest {
        let mut options = Options::default();
        options.set(text, false).unwrap();
        options.at_rest(server)
    }

    #[test]
    fn a_key_file_or_the_servers_encryption_asks_for_it_unless_it_is_off() {
        let off = ServerEncryption::default();
        let on = ServerEncryption { on: true, keys: Vec::new() };
        let key = DiskKey::of_server(b"key").unwrap();
        let with_key = ServerEncryption { on: false, keys: vec![key.clone()] };
        let file = "quorate.encrypt_key_file=/k";
        for (text, server, encrypts) in [
            ("", &off, false),
            ("", &on, true),
            ("", &with_key, true),
            (file, &off, true),
            ("quorate.encrypt=auto;quorate.encrypt_key_file=/k", &off, true),
            ("quorate.encrypt=no;quorate.encrypt_key_file=/k", &off, false),
            ("quorate.encrypt=no", &on, false),
            ("quorate.encrypt=yes", &off, true),
            ("quorate.encrypt=only", &off, true),
        ] {
            let at_rest = at_rest(text, server);
            assert_eq!(at_rest.encrypts, encrypts, "{text:?} {server:?}");
            assert_eq!(at_rest.refuses_plain, text.ends_with("only"), "{text:?}");
        }
        let both = at_rest(file, &with_key);
        assert_eq!((both.key_file, both.given), (Some("/k".into()), vec![key]));
        assert!(Options::default().set("quorate.encrypt=perhaps", false).is_err());
    }
}
