//! Whom this node believes: a secret of the group, certificates (`socket.ssl*`, Galera's names and
//! rules), or, on this host alone, everybody.

use crate::options::{OptionError, Options};
use quorate_live::{SecretOptions, Security, TlsOptions};
use std::path::PathBuf;

impl Options {
    /// As with Galera, a key or a certificate asks for certificates unless `socket.ssl` is off, and without
    /// a CA each node's own certificate is the CA.
    pub fn security(&self) -> Result<Security, OptionError> {
        let dynamic = self.flag("socket.dynamic");
        let certificates = self.certificates(dynamic)?;
        match (self.path("quorate.secret_file"), certificates) {
            (Some(_), Some(_)) => Err(OptionError::TwoSecurities),
            (Some(file), None) => Ok(Security::Secret(SecretOptions { file, dynamic })),
            (None, Some(certificates)) => Ok(Security::Certificates(certificates)),
            (None, None) if self.flag("quorate.insecure") => Ok(Security::Insecure),
            (None, None) => Ok(Security::ThisHost),
        }
    }

    fn certificates(&self, dynamic: bool) -> Result<Option<TlsOptions>, OptionError> {
        let (cert, key) = (self.path("socket.ssl_cert"), self.path("socket.ssl_key"));
        let wanted = match self.was_given("socket.ssl") {
            true => self.flag("socket.ssl"),
            false => cert.is_some() || key.is_some(),
        };
        if !wanted {
            return Ok(None);
        }
        if self.path("socket.ssl_password_file").is_some() {
            return Err(OptionError::EncryptedKey);
        }
        let (Some(cert), Some(key)) = (cert, key) else { return Err(OptionError::NoCertificate) };
        let (ca, ciphers) = (self.path("socket.ssl_ca"), self.text("socket.ssl_cipher").to_owned());
        let names = self.text("quorate.ssl_names").split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let crl = self.path("socket.ssl_crl");
        Ok(Some(TlsOptions { cert, key, ca, names, crl, ciphers, dynamic }))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name)).filter(|path| !path.is_empty()).map(PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn security(text: &str) -> Result<Security, OptionError> {
        let mut options = Options::default();
        options.set(text, false)?;
        options.security()
    }

    fn certificates(text: &str) -> TlsOptions {
        match security(text) {
            Ok(Security::Certificates(options)) => options,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_certificate_asks_for_encryption_unless_it_is_off() {
        assert_eq!(security(""), Ok(Security::ThisHost));
        assert_eq!(security("socket.ssl=no;socket.ssl_key=/k.pem"), Ok(Security::ThisHost));
        let on = certificates("socket.ssl_key=/k.pem;socket.ssl_cert=/c.pem");
        assert_eq!((on.cert, on.key, on.ca), ("/c.pem".into(), "/k.pem".into(), None));
        let on = certificates(
            "socket.ssl=1;socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_ca=/a;socket.dynamic=1",
        );
        assert_eq!((on.ca, on.dynamic), (Some("/a".into()), true));
        assert_eq!((on.names, on.crl), (Vec::new(), None));
        let on =
            certificates("socket.ssl_key=/k;socket.ssl_cert=/c;quorate.ssl_names=db1.x, 10.0.0.2");
        assert_eq!(on.names, ["db1.x", "10.0.0.2"]);
        let on = certificates("socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_crl=/l");
        assert_eq!(on.crl, Some("/l".into()));
    }

    #[test]
    fn a_secret_is_enough_and_stands_alone() {
        let secret = SecretOptions { file: "/s".into(), dynamic: true };
        let text = "quorate.secret_file=/s;socket.dynamic=yes";
        assert_eq!(security(text), Ok(Security::Secret(secret)));
        let both = "quorate.secret_file=/s;socket.ssl_key=/k;socket.ssl_cert=/c";
        assert_eq!(security(both), Err(OptionError::TwoSecurities));
    }

    #[test]
    fn insecure_has_to_be_asked_for_and_does_not_weaken_the_others() {
        assert_eq!(security("quorate.insecure=yes"), Ok(Security::Insecure));
        let secret = security("quorate.insecure=yes;quorate.secret_file=/s");
        assert!(matches!(secret, Ok(Security::Secret(_))));
    }

    #[test]
    fn half_of_it_is_refused_before_anything_is_started() {
        for half in ["socket.ssl=yes", "socket.ssl_key=/k", "socket.ssl=1;socket.ssl_cert=/c"] {
            assert_eq!(security(half), Err(OptionError::NoCertificate), "{half}");
        }
        let locked = "socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_password_file=/p";
        assert_eq!(security(locked), Err(OptionError::EncryptedKey));
    }

    #[test]
    fn what_options_get_shows_can_be_set_again() {
        let mut options = Options::default();
        options.set(&options.render(), true).unwrap();
        assert_eq!(options.security(), Ok(Security::ThisHost));
    }
}
