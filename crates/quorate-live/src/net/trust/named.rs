//! What provider options say of security: Galera's names (`socket.ssl*`) and rules, and our own.
//!
//! Servers and loggers of a group are told by the same words, so this is read here and nowhere else.

use super::{SecretOptions, Security, TlsOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options that say, together, whom a node believes. Nothing was started.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SecurityError {
    #[error(
        "wsrep_provider_options: socket.ssl needs both socket.ssl_cert and socket.ssl_key. Nothing was \
         started, so that nothing travels in the clear unexpectedly: add them, or have the nodes know each \
         other by a secret (quorate.secret_file)"
    )]
    NoCertificate,
    #[error(
        "wsrep_provider_options: quorate.secret_file and certificates (socket.ssl_cert, socket.ssl_key) are \
         given. Nodes know each other by the one or by the others: take one of them out, on all nodes \
         alike; nothing was started"
    )]
    TwoSecurities,
    #[error(
        "wsrep_provider_options: socket.ssl_password_file is given, but encrypted private keys are not \
         read. Store the key in the clear (openssl pkey -in KEY -out NEW), readable for the server's \
         user alone, and remove the option; nothing was started"
    )]
    EncryptedKey,
    #[error(
        "wsrep_provider_options: {name} is given, and would have no effect: it is about certificates, by which \
         these nodes do not know each other. Take it out, or say socket.ssl=no. (For certificates, give \
         socket.ssl_cert and socket.ssl_key, and no quorate.secret_file); nothing was started"
    )]
    OfCertificates { name: &'static str },
}

/// What would protect less than it says where nodes do not know each other by certificates.
const OF_CERTIFICATES: [&str; 5] = [
    "socket.ssl_ca",
    "socket.ssl_crl",
    "socket.ssl_cipher",
    "socket.ssl_password_file",
    "quorate.ssl_names",
];

impl Security {
    /// `given`: the value of an option, if it was given. As with Galera, a key or a certificate asks for
    /// certificates unless `socket.ssl` is off, and without a CA each node's own certificate is the CA.
    pub fn named<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Security, SecurityError> {
        let options = Named(given);
        let dynamic = options.flag("socket.dynamic") == Some(true);
        let certificates = options.certificates(dynamic)?;
        // `socket.ssl=no` says that certificates are not meant.
        if certificates.is_none() && options.flag("socket.ssl") != Some(false) {
            if let Some(name) =
                OF_CERTIFICATES.into_iter().find(|name| options.text(name).is_some())
            {
                return Err(SecurityError::OfCertificates { name });
            }
        }
        match (options.path("quorate.secret_file"), certificates) {
            (Some(_), Some(_)) => Err(SecurityError::TwoSecurities),
            (Some(file), None) => Ok(Security::Secret(SecretOptions { file, dynamic })),
            (None, Some(certificates)) => Ok(Security::Certificates(certificates)),
            (None, None) if options.flag("quorate.insecure") == Some(true) => {
                Ok(Security::Insecure)
            }
            (None, None) => Ok(Security::ThisHost),
        }
    }

    /// Of a text with provider options, `name=value; name=value`; `None` if it does not say how nodes know each
    /// other. Other names and their values are left to whom they are for.
    pub fn in_options(text: &str) -> Result<Option<Security>, SecurityError> {
        /// One of these is a decision, if only for none.
        const DECIDE: [&str; 4] =
            ["quorate.secret_file", "quorate.insecure", "socket.ssl_cert", "socket.ssl_key"];
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        let options: BTreeMap<&str, &str> =
            pairs.map(|(name, value)| (name.trim(), value.trim())).collect();
        if !DECIDE.iter().any(|name| options.contains_key(name)) {
            return Ok(None);
        }
        Security::named(|name| options.get(name).copied()).map(Some)
    }
}

/// The words that stand for yes and no in provider options.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" | "y" => Some(true),
        "no" | "false" | "off" | "0" | "n" => Some(false),
        _ => None,
    }
}

struct Named<F>(F);

impl<'a, F> Named<F>
where
    F: Fn(&str) -> Option<&'a str>,
{
    fn certificates(&self, dynamic: bool) -> Result<Option<TlsOptions>, SecurityError> {
        let (cert, key) = (self.path("socket.ssl_cert"), self.path("socket.ssl_key"));
        let wanted = self.flag("socket.ssl").unwrap_or(cert.is_some() || key.is_some());
        if !wanted {
            return Ok(None);
        }
        if self.path("socket.ssl_password_file").is_some() {
            return Err(SecurityError::EncryptedKey);
        }
        let (Some(cert), Some(key)) = (cert, key) else { return Err(SecurityError::NoCertificate) };
        let ca = self.path("socket.ssl_ca");
        let ciphers = self.text("socket.ssl_cipher").unwrap_or_default().to_owned();
        let names = self.text("quorate.ssl_names").unwrap_or_default().split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let crl = self.path("socket.ssl_crl");
        Ok(Some(TlsOptions { cert, key, ca, names, crl, ciphers, dynamic }))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(parse_bool)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// Options that are shown have a value; an empty one is none.
    fn text(&self, name: &str) -> Option<&'a str> {
        (self.0)(name).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn security(text: &str) -> Result<Security, SecurityError> {
        Ok(Security::in_options(text)?.unwrap_or(Security::ThisHost))
    }

    fn certificates(text: &str) -> TlsOptions {
        match security(text) {
            Ok(Security::Certificates(options)) => options,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_certificate_asks_for_encryption_unless_it_is_off() {
        assert_eq!(security("socket.ssl=no;socket.ssl_key=/k.pem"), Ok(Security::ThisHost));
        let on = certificates("socket.ssl_key=/k.pem; socket.ssl_cert = /c.pem");
        assert_eq!((on.cert, on.key, on.ca), ("/c.pem".into(), "/k.pem".into(), None));
        let on = certificates(
            "socket.ssl=1;socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_ca=/a;socket.dynamic=1",
        );
        assert_eq!((on.ca, on.dynamic), (Some("/a".into()), true));
        assert_eq!((on.names, on.ciphers), (Vec::new(), String::new()));
        let on = certificates(
            "socket.ssl_key=/k;socket.ssl_cert=/c;quorate.ssl_names=db1.x, 10.0.0.2;socket.ssl_cipher=A:B",
        );
        assert_eq!((on.names, on.ciphers), (vec!["db1.x".into(), "10.0.0.2".into()], "A:B".into()));
        assert_eq!(on.crl, None);
        let on = certificates("socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_crl=/l");
        assert_eq!(on.crl, Some("/l".into()));
    }

    #[test]
    fn a_secret_is_enough_and_stands_alone() {
        let secret = SecretOptions { file: "/s".into(), dynamic: true };
        let text = "quorate.secret_file=/s;socket.dynamic=yes";
        assert_eq!(security(text), Ok(Security::Secret(secret)));
        let both = "quorate.secret_file=/s;socket.ssl_key=/k;socket.ssl_cert=/c";
        assert_eq!(security(both), Err(SecurityError::TwoSecurities));
    }

    #[test]
    fn insecure_has_to_be_asked_for_and_does_not_weaken_the_others() {
        assert_eq!(security("quorate.insecure=yes"), Ok(Security::Insecure));
        let secret = security("quorate.insecure=yes;quorate.secret_file=/s");
        assert!(matches!(secret, Ok(Security::Secret(_))));
    }

    #[test]
    fn half_of_it_is_refused_before_anything_is_started() {
        for half in [
            "socket.ssl=yes;socket.ssl_cert=",
            "socket.ssl_key=/k",
            "socket.ssl=1;socket.ssl_cert=/c",
        ] {
            assert_eq!(security(half), Err(SecurityError::NoCertificate), "{half}");
        }
        let locked = "socket.ssl_key=/k;socket.ssl_cert=/c;socket.ssl_password_file=/p";
        assert_eq!(security(locked), Err(SecurityError::EncryptedKey));
    }

    #[test]
    fn what_would_have_no_effect_without_certificates_is_refused() {
        for name in OF_CERTIFICATES {
            let beside_secret = format!("quorate.secret_file=/s;{name}=/x");
            assert_eq!(security(&beside_secret), Err(SecurityError::OfCertificates { name }));
            assert!(security(&format!("{beside_secret};socket.ssl=no")).is_ok(), "{name}");
            assert!(security(&format!("quorate.secret_file=/s;{name}=")).is_ok(), "{name}");
            let alone = format!("quorate.insecure=yes;{name}=/x");
            assert_eq!(security(&alone), Err(SecurityError::OfCertificates { name }));
        }
    }

    #[test]
    fn other_options_leave_the_question_open() {
        for text in ["", "socket.dynamic=yes;evs.suspect_timeout=PT1S;", "nonsense"] {
            assert_eq!(Security::in_options(text), Ok(None), "{text}");
        }
        let decided = Security::in_options("a=b; socket.ssl=NO; socket.ssl_cert=/c");
        assert_eq!(decided, Ok(Some(Security::ThisHost)));
        assert_eq!(Security::in_options("quorate.insecure=no"), Ok(Some(Security::ThisHost)));
    }
}
