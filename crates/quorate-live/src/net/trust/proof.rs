//! How both sides of a TLS connection show that they have the group's secret, or what was made of it for an
//! operator.
//!
//! ```text
//! dialler  ──▶  1, HMAC-SHA-256(secret, "dialler"  ‖ what only this session has ‖ both keys)
//!         or    2, privilege, length of the name, name, the same of the credential
//! acceptor ──▶  1, HMAC-SHA-256(secret or credential, "acceptor" ‖ the same)       or 0: not ours
//! ```
//!
//! What only this session has is keying material that TLS exports (RFC 8446, 7.5). Whoever stands between
//! two members has a session of its own with each, and neither proof fits the other one. The dialler
//! proves first, so that a stranger who dials gets nothing to try guesses on; secrets have 256 bits
//! besides. Who has the secret can make every operator's credential: so the acceptor's answer shows an
//! operator that it has the secret, and that it is let in.
//!
//! Invariant: a proof of the one kind is none of the other. They are made with other keys, over other words.

use super::credential::Credential;
use super::key_id;
use super::operators::{check_name, OperatorId, Privilege};
use super::secret::{Secret, Secrets};
use graviola::hashing::hmac::Hmac;
use graviola::hashing::Sha256;
use quorate_consensus::KeyId;
use rustls::Connection;
use std::io::{self, ErrorKind, Read, Write};

const LABEL: &[u8] = b"EXPORTER-quorate-secret";
const PROOF_BYTES: usize = 32;
/// What stands before a proof.
const MEMBER: u8 = 1;
const OPERATOR: u8 = 2;
const REFUSED: u8 = 0;
/// In an answer.
const PROVED: u8 = 1;

/// What this side shows.
#[derive(Clone)]
pub(crate) enum Shown {
    Member(Secrets),
    Operator(Credential),
}

/// The dialler's part, on a stream that is encrypted with the session of this binding.
pub(crate) fn offer<S: Read + Write>(
    stream: &mut S,
    binding: &Binding,
    shown: &Shown,
) -> io::Result<()> {
    let (proof, claim, refused) = match shown {
        Shown::Member(secrets) => (Proof::member(secrets.own()), vec![MEMBER], OTHER_SECRET),
        Shown::Operator(credential) => {
            (Proof::operator(credential), claim(credential.operator()), OTHER_CREDENTIAL)
        }
    };
    say(stream, &claim, &proof.of(binding, Side::Dialler))?;
    let mut answer = [REFUSED];
    let ended = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), refused),
        _ => error,
    };
    stream.read_exact(&mut answer).map_err(ended)?;
    if answer != [PROVED] {
        return Err(io::Error::new(ErrorKind::PermissionDenied, refused));
    }
    let mut answered = [0; PROOF_BYTES];
    stream.read_exact(&mut answered)?;
    match proof.fits(binding, Side::Acceptor, &answered) {
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
const OTHER_CREDENTIAL: &str = "it does not take this operator's credential: that was made of another group's \
                                secret, or of one that is no longer valid; or its release is older than 0.2.0, \
                                and knows no operators";

/// The acceptor's part: the other side has to have one of the secrets, or a credential that was made of one.
/// Gives back which operator it is, if it is one.
pub(crate) fn demand<S: Read + Write>(
    stream: &mut S,
    binding: &Binding,
    shown: &Shown,
) -> io::Result<Option<OperatorId>> {
    let Shown::Member(secrets) = shown else {
        return Err(io::Error::other("an operator is dialled by nobody"));
    };
    let mut kind = [REFUSED];
    stream.read_exact(&mut kind)?;
    let operator = match kind[0] {
        MEMBER => None,
        OPERATOR => match read_claim(stream)? {
            Some(operator) => Some(operator),
            None => return refuse(stream),
        },
        _ => return refuse(stream),
    };
    let mut said = [0; PROOF_BYTES];
    stream.read_exact(&mut said)?;
    let proofs = secrets.all().iter().map(|secret| match &operator {
        None => Proof::member(secret),
        Some(operator) => Proof::operator(&Credential::of(operator.clone(), secret)),
    });
    let proved = proofs.into_iter().find(|proof| proof.fits(binding, Side::Dialler, &said));
    let Some(proof) = proved else { return refuse(stream) };
    say(stream, &[PROVED], &proof.of(binding, Side::Acceptor))?;
    Ok(operator)
}

fn refuse<S: Write, T>(stream: &mut S) -> io::Result<T> {
    stream.write_all(&[REFUSED])?;
    stream.flush()?;
    Err(io::Error::new(
        ErrorKind::PermissionDenied,
        "it does not have the group's secret, nor a credential made of it; nothing it said was believed. If \
         it is a node of this group, the file that quorate.secret_file names has to be the same there",
    ))
}

/// Who an operator says it is.
fn claim(operator: &OperatorId) -> Vec<u8> {
    let name = operator.name.as_bytes();
    [&[OPERATOR, operator.privilege as u8, name.len() as u8], name].concat()
}

/// A stranger's words, at most 257 bytes of them; `None`: it is no operator's claim.
pub(crate) fn read_claim<S: Read>(stream: &mut S) -> io::Result<Option<OperatorId>> {
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut name = vec![0; head[1].into()];
    stream.read_exact(&mut name)?;
    let name = String::from_utf8(name).ok().filter(|name| check_name(name).is_ok());
    let claimed = Privilege::of_code(head[0]).zip(name);
    Ok(claimed.map(|(privilege, name)| OperatorId { name, privilege }))
}

fn say<S: Write>(stream: &mut S, head: &[u8], proof: &[u8]) -> io::Result<()> {
    stream.write_all(&[head, proof].concat())?;
    stream.flush()
}

/// What a proof is made with.
struct Proof<'a> {
    key: Vec<u8>,
    words: [&'a [u8]; 2],
}

impl Proof<'_> {
    fn member(secret: &Secret) -> Self {
        let words: [&[u8]; 2] = [b"quorate secret, dialler ", b"quorate secret, acceptor"];
        Proof { key: secret.bytes().to_vec(), words }
    }

    fn operator(credential: &Credential) -> Self {
        let words: [&[u8]; 2] = [b"quorate operator, dialler ", b"quorate operator, acceptor"];
        Proof { key: credential.key().to_vec(), words }
    }

    fn of(&self, binding: &Binding, side: Side) -> Vec<u8> {
        self.hmac(binding, side).finish().as_ref().to_vec()
    }

    /// Takes the same time whatever is said.
    fn fits(&self, binding: &Binding, side: Side, said: &[u8]) -> bool {
        self.hmac(binding, side).verify(said).is_ok()
    }

    fn hmac(&self, binding: &Binding, side: Side) -> Hmac<Sha256> {
        let mut hmac = Hmac::new(&self.key);
        hmac.update(self.words[side as usize]);
        hmac.update(binding.material);
        // Each with its length, so that no two pairs of keys give the same bytes.
        for key in [&binding.dialler, &binding.acceptor] {
            hmac.update((key.len() as u64).to_le_bytes());
            hmac.update(key);
        }
        hmac
    }
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
}
