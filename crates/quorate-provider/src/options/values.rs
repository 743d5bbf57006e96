//! Words and numbers as option values.

use quorate_certify::Codec;
use quorate_consensus::{MemberRole, Primaries};
pub use quorate_live::parse_bool;
use quorate_node::settings::{Consistency, ExitAction};
use std::time::Duration;

pub fn parse_exit_action(text: &str) -> Option<ExitAction> {
    match text {
        "read-only" => Some(ExitAction::ReadOnly),
        "offline" => Some(ExitAction::Offline),
        "abort" => Some(ExitAction::Abort),
        _ => None,
    }
}

/// `Some(None)`: none.
pub fn parse_codec(text: &str) -> Option<Option<Codec>> {
    match text {
        "none" => Some(None),
        "lz4" => Some(Some(Codec::Lz4)),
        "zstd" => Some(Some(Codec::Zstd)),
        _ => None,
    }
}

/// `eventual`, `after`, or `after:N`.
pub fn parse_consistency(text: &str) -> Option<Consistency> {
    match text.split_once(':') {
        None if text == "eventual" => Some(Consistency::Eventual),
        None if text == "after" => Some(Consistency::After { at_least: None }),
        Some(("after", count)) => {
            let count = count.parse().ok().filter(|count| *count > 0)?;
            Some(Consistency::After { at_least: Some(count) })
        }
        _ => None,
    }
}

/// The role of a server: a logger is another program.
pub fn parse_role(text: &str) -> Option<MemberRole> {
    match text {
        "voter" => Some(MemberRole::Voter),
        "learner" => Some(MemberRole::Learner),
        _ => None,
    }
}

pub fn parse_primaries(text: &str) -> Option<Primaries> {
    match text {
        "multi" => Some(Primaries::Multi),
        "single" => Some(Primaries::Single),
        _ => None,
    }
}

/// Whether a new primary waits.
pub fn parse_failover(text: &str) -> Option<bool> {
    match text {
        "serve" => Some(false),
        "wait" => Some(true),
        _ => None,
    }
}

pub fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        'P' => (&text[..text.len() - 1], 50),
        'E' => (&text[..text.len() - 1], 60),
        _ => (text, 0),
    };
    let value: u64 = digits.parse().ok()?;
    Some(value.checked_shl(shift).filter(|v| v >> shift == value).unwrap_or(u64::MAX))
}

/// How much is kept, and what is young enough to be kept: `1G`, `PT6H`, or `1G,PT6H` in either order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Retention {
    pub bytes: u64,
    pub age: Option<Duration>,
}

pub fn parse_retention(text: &str) -> Option<Retention> {
    let (mut bytes, mut age) = (None, None);
    for part in text.split(',').map(str::trim) {
        let taken = match part.starts_with('P') {
            true => age.replace(parse_period(part)?).is_some(),
            false => bytes.replace(parse_size(part)?).is_some(),
        };
        if taken {
            return None;
        }
    }
    Some(Retention { bytes: bytes.unwrap_or(0), age })
}

/// More than a century: deadlines are added to clocks, which end.
const PERIOD_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// `P[nD][T[nH][nM][n.nS]]`, or plain seconds.
pub fn parse_period(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return period(seconds);
    }
    let mut rest = text.strip_prefix('P')?;
    let mut seconds = 0.0;
    let mut in_time = false;
    let mut any = false;
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix('T') {
            in_time = true;
            rest = r;
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let value: f64 = rest[..end].parse().ok()?;
        let unit = match (rest.as_bytes()[end], in_time) {
            (b'D', false) => 86_400.0,
            (b'H', true) => 3_600.0,
            (b'M', true) => 60.0,
            (b'S', true) => 1.0,
            _ => return None,
        };
        seconds += value * unit;
        any = true;
        rest = &rest[end + 1..];
    }
    period(seconds).filter(|_| any)
}

fn period(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().filter(|period| *period <= PERIOD_MAX)
}
