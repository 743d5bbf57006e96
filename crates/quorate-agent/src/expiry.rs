//! When the certificate ends that the agent shows: from then on no client makes a connection with it any more.

use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode, SliceReader, Tag, Tagged};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::CertificateDer;

const DAY_S: u64 = 24 * 60 * 60;

/// Of the certificates in this file the end that comes first, as far as they can be read.
pub fn first_end(file: &Path) -> Option<SystemTime> {
    let certificates = CertificateDer::pem_file_iter(file).ok()?.flatten();
    certificates.filter_map(|certificate| end(&certificate).ok()).min()
}

/// Whole days that are left; below 0 from the end on.
pub fn days(end: SystemTime, now: SystemTime) -> i64 {
    let whole = |time: Duration| (time.as_secs() / DAY_S) as i64;
    match end.duration_since(now) {
        Ok(left) => whole(left),
        Err(since) => -1 - whole(since.duration()),
    }
}

/// `notAfter` (RFC 5280, 4.1).
fn end(certificate: &[u8]) -> der::Result<SystemTime> {
    let certificate = AnyRef::from_der(certificate)?;
    let signed = AnyRef::decode(&mut SliceReader::new(certificate.value())?)?;
    let mut signed = SliceReader::new(signed.value())?;
    // A version, where it is not the first one; then serial number, algorithm, and issuer.
    if AnyRef::decode(&mut signed)?.tag() != Tag::Integer {
        AnyRef::decode(&mut signed)?;
    }
    AnyRef::decode(&mut signed)?;
    AnyRef::decode(&mut signed)?;
    let validity = AnyRef::decode(&mut signed)?;
    let mut validity = SliceReader::new(validity.value())?;
    AnyRef::decode(&mut validity)?;
    let end = AnyRef::decode(&mut validity)?;
    match end.tag() {
        Tag::UtcTime => Ok(end.decode_as::<UtcTime>()?.to_system_time()),
        _ => Ok(end.decode_as::<GeneralizedTime>()?.to_system_time()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_whole_and_below_zero_after_the_end() {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(DAY_S));
        let end = SystemTime::UNIX_EPOCH + 1000 * day;
        for (now, left) in
            [(end - day, 1), (end - day + second, 0), (end, 0), (end + second, -1), (end + day, -2)]
        {
            assert_eq!(days(end, now), left);
        }
    }
}
