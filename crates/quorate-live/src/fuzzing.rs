//! For `quorate-fuzz`: what is private, and takes bytes that others wrote.

use crate::net::trust::fuzzing;

/// What a peer shows as its certificate.
pub fn certificate(input: &[u8]) {
    fuzzing::certificate(input);
}
