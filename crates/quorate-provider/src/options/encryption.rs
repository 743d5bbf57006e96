//! `socket.ssl*`: which files encrypt the group's connections. Galera's names and rules.

use crate::options::{OptionError, Options};
use quorate_live::TlsOptions;
use std::path::PathBuf;

impl Options {
    /// `None`: connections are plain. As with Galera, a key or a certificate asks for encryption
    /// unless `socket.ssl` is off, and without a CA each node's own certificate is the CA.
    pub fn tls(&self) -> Result<Option<TlsOptions>, OptionError> {
        let path = |name: &str| Some(self.text(name)).filter(|p| !p.is_empty()).map(PathBuf::from);
        let (cert, key) = (path("socket.ssl_cert"), path("socket.ssl_key"));
        let wanted = match self.was_given("socket.ssl") {
            true => self.flag("socket.ssl"),
            false => cert.is_some() || key.is_some(),
        };
        if !wanted {
            return Ok(None);
        }
        if path("socket.ssl_password_file").is_some() {
            return Err(OptionError::EncryptedKey);
        }
        let (Some(cert), Some(key)) = (cert, key) else { return Err(OptionError::NoCertificate) };
        let ca = path("socket.ssl_ca");
        Ok(Some(TlsOptions { cert, key, ca, dynamic: self.flag("socket.dynamic") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(text: &str) -> Result<Option<TlsOptions>, OptionError> {
        let mut options = Options::default();
        options.set(text, false)?;
        options.tls()
    }

    #[test]
    fn a_certificate_asks_for_encryption_unless_it_is_off() {
        assert_eq!(tls(""), Ok(None));
        assert_eq!(tls("socket.ssl=no;socket.ssl_key=/k.pem"), Ok(None));
        let on = tls("socket.ssl_key=/k.pem;socket.ssl_cert=/c.pem").unwrap().unwrap();
        assert_eq!((on.cert, on.key, on.ca), ("/c.pem".into(), "/k.pem".into(), None));
        let on = tls(
            "socket.ssl=1;socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_ca=/a;socket.dynamic=1",
        );
        let on = on.unwrap().unwrap();
        assert_eq!((on.ca, on.dynamic), (Some("/a".into()), true));
    }

    #[test]
    fn half_of_it_is_refused_before_anything_is_started() {
        for half in ["socket.ssl=yes", "socket.ssl_key=/k", "socket.ssl=1;socket.ssl_cert=/c"] {
            assert_eq!(tls(half), Err(OptionError::NoCertificate), "{half}");
        }
        let locked = "socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_password_file=/p";
        assert_eq!(tls(locked), Err(OptionError::EncryptedKey));
    }

    #[test]
    fn what_options_get_shows_can_be_set_again() {
        let mut options = Options::default();
        options.set(&options.render(), true).unwrap();
        assert_eq!(options.tls(), Ok(None));
    }
}
