//! How both sides of a TLS connection show that they have the group's secret.
//!
//! ```text
//! dialler  ──▶  1, HMAC-SHA-256(secret, "dialler"  ‖ what only this session has ‖ both keys)
//! acceptor ──▶  1, HMAC-SHA-256(secret, "acceptor" ‖ the same)       or 0: not ours
//! ```
//!
//! What only this session has is keying material that TLS exports (RFC 8446, 7.5). Whoever stands between
//! two members has a session of its own with each, and neither proof fits the other one. The dialler
//! proves first, so that a stranger who dials gets nothing to try guesses on; secrets have 256 bits
//! besides.

use super::key_id;
use super::secret::{Secret, Secrets};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;
use quorate_consensus::KeyId;
use rustls::Connection;
use std::io::{self, ErrorKind, Read, Write};

const LABEL: &[u8] = b"EXPORTER-quorate-secret";
const PROOF_BYTES: usize = 32;
/// Before a proof. Another value would be another kind of proof.
const PROVED: u8 = 1;
const REFUSED: u8 = 0;

/// The dialler's part, on a stream that is encrypted with the session of this binding.
pub(crate) fn offer<S: Read + Write>(
    stream: &mut S,
    binding: &Binding,
    secrets: &Secrets,
) -> io::Result<()> {
    let own = secrets.own();
    say(stream, &binding.proof(own, Side::Dialler))?;
    let mut answer = [REFUSED];
    let ended = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), OTHER_SECRET),
        _ => error,
    };
    stream.read_exact(&mut answer).map_err(ended)?;
    if answer != [PROVED] {
        return Err(io::Error::new(ErrorKind::PermissionDenied, OTHER_SECRET));
    }
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof)?;
    match binding.fits(own, Side::Acceptor, &proof) {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "the other side does not have the group's secret: it may be an impostor, or stand between \
             the two. Nothing was said to it",
        )),
    }
}

const OTHER_SECRET: &str = "the other side does not take this node's secret: the file that \
                            quorate.secret_file names has to be the same on all nodes";

/// The acceptor's part: the other side has to have one of the secrets.
pub(crate) fn demand<S: Read + Write>(
    stream: &mut S,
    binding: &Binding,
    secrets: &Secrets,
) -> io::Result<()> {
    let mut said = [0; 1 + PROOF_BYTES];
    stream.read_exact(&mut said)?;
    let fits =
        |secret: &&Secret| said[0] == PROVED && binding.fits(secret, Side::Dialler, &said[1..]);
    match secrets.all().iter().find(fits) {
        Some(secret) => say(stream, &binding.proof(secret, Side::Acceptor)),
        None => {
            stream.write_all(&[REFUSED])?;
            stream.flush()?;
            Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it does not have the group's secret; nothing it said was believed. If it is a node \
                 of this group, the file that quorate.secret_file names has to be the same there",
            ))
        }
    }
}

fn say<S: Write>(stream: &mut S, proof: &[u8]) -> io::Result<()> {
    stream.write_all(&[&[PROVED], proof].concat())?;
    stream.flush()
}

#[derive(Clone, Copy)]
enum Side {
    Dialler,
    Acceptor,
}

/// What ties a proof to one connection.
pub(crate) struct Binding {
    /// Exported by this TLS session alone.
    material: [u8; 32],
    dialler: Vec<u8>,
    acceptor: Vec<u8>,
}

impl Binding {
    /// Of a session whose handshake is complete; `own`: the public key that was shown on this side.
    pub fn of(session: &Connection, own: &[u8]) -> io::Result<Binding> {
        let material = session.export_keying_material([0; 32], LABEL, None);
        let material = material.map_err(io::Error::other)?;
        let shown = session.peer_certificates().and_then(<[_]>::first);
        let shown = shown.ok_or_else(|| io::Error::other("the other side has shown no key"))?;
        let (own, other) = (own.to_vec(), shown.as_ref().to_vec());
        Ok(match session {
            Connection::Client(_) => Binding { material, dialler: own, acceptor: other },
            Connection::Server(_) => Binding { material, dialler: other, acceptor: own },
        })
    }

    /// What the other side is known by, once its proof fits.
    pub fn peer(&self, session: &Connection) -> KeyId {
        key_id(match session {
            Connection::Client(_) => &self.acceptor,
            Connection::Server(_) => &self.dialler,
        })
    }

    fn proof(&self, secret: &Secret, side: Side) -> Vec<u8> {
        self.hmac(secret, side).finish().as_ref().to_vec()
    }

    /// Takes the same time whatever it is.
    fn fits(&self, secret: &Secret, side: Side, proof: &[u8]) -> bool {
        self.hmac(secret, side).verify(proof).is_ok()
    }

    fn hmac(&self, secret: &Secret, side: Side) -> Hmac<Sha256> {
        let mut hmac = Hmac::new(secret.bytes());
        hmac.update(match side {
            Side::Dialler => b"quorate secret, dialler ",
            Side::Acceptor => b"quorate secret, acceptor",
        });
        hmac.update(self.material);
        // Each with its length, so that no two pairs of keys give the same bytes.
        for key in [&self.dialler, &self.acceptor] {
            hmac.update((key.len() as u64).to_le_bytes());
            hmac.update(key);
        }
        hmac
    }
}
