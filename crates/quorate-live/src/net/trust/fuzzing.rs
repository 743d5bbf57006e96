//! For fuzzers: what a stranger shows as its certificate, before anybody has looked at who signed it.

use super::names::key_of;
use super::x509::{AltName, Contents};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Who shows a certificate that can be read is known by a name in it, and no name is missed that TLS knows.
pub fn certificate(input: &[u8]) {
    let shown = CertificateDer::from(input);
    let Ok(contents) = Contents::read(&shown) else {
        assert!(key_of(&shown).is_err());
        return;
    };
    assert!(key_of(&shown).is_ok_and(|key| key.is_name()));
    if let Ok(parsed) = EndEntityCert::try_from(&shown) {
        for name in parsed.valid_dns_names() {
            let name = AltName::Dns(name.to_ascii_lowercase());
            assert!(contents.names.contains(&name), "{name:?} is missed");
        }
    }
}
