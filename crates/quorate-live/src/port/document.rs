//! One document: a version, and what is said in it.

use quorate_wire::printable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of requests and answers. Words may be added to it without another number.
pub const PORT_VERSION: u16 = 1;
/// Longest document of an operator, and of a member.
pub const REQUEST_BYTES_MAX: usize = 64 << 10;
pub const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Why a document was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it is said in version {theirs}, this release speaks {PORT_VERSION}: use a command of its release")]
    Version { theirs: u16 },
    #[error("{0}")]
    Malformed(String),
}

#[derive(Serialize)]
struct Said<'a, T> {
    version: u16,
    body: &'a T,
}

#[derive(Deserialize)]
struct Heard<T> {
    body: T,
}

/// Understood whatever the version of the rest.
#[derive(Deserialize)]
struct Head {
    version: u16,
}

pub(super) fn encode<T: Serialize>(body: &T) -> Result<Vec<u8>, Unreadable> {
    serde_json::to_vec(&Said { version: PORT_VERSION, body }).map_err(malformed)
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let head: Head = serde_json::from_slice(bytes).map_err(malformed)?;
    if head.version != PORT_VERSION {
        return Err(Unreadable::Version { theirs: head.version });
    }
    let Heard { body }: Heard<Value> = serde_json::from_slice(bytes).map_err(malformed)?;
    serde_json::from_value(shown(body)).map_err(malformed)
}

/// Whatever the other side says gets into lines of logs, or on screens.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable(&text)),
        Value::Array(all) => all.into_iter().map(shown).collect(),
        Value::Object(all) => all.into_iter().map(|(name, value)| (name, shown(value))).collect(),
        other => other,
    }
}

fn malformed(error: serde_json::Error) -> Unreadable {
    Unreadable::Malformed(error.to_string())
}
