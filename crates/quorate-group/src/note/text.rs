//! Names, words and times in notes: how long they may be, and how they are shown.

use quorate_wire::{BodyReader, WireError};
use std::time::{Duration, UNIX_EPOCH};

/// Longest name (of a node, an account, a host), and longest order, outcome or event, in bytes.
pub(super) const NAME_MAX: usize = 512;
pub(super) const TEXT_MAX: usize = 2048;
/// The end of the year 9999, in milliseconds since 1970: no later time is shown.
pub(super) const TIME_MAX_MS: u64 = 253_402_300_799_999;

/// A time of the calendar, in UTC.
pub(super) fn time(unix_ms: u64) -> impl std::fmt::Display {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(unix_ms.min(TIME_MAX_MS)))
}

pub(super) fn read_time(body: &mut BodyReader) -> Result<u64, WireError> {
    match body.u64()? {
        unix_ms if unix_ms <= TIME_MAX_MS => Ok(unix_ms),
        later => Err(WireError::BadValue { what: "time of a note", value: later }),
    }
}

/// In quotes, on one line: quotes, backslashes and control characters are escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.extend(c.escape_default()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

pub(super) fn text(body: &mut BodyReader, most: usize) -> Result<String, WireError> {
    let text = body.text()?;
    match text.len() <= most {
        true => Ok(text),
        false => Err(WireError::BadText { what: "note" }),
    }
}

/// At most so many bytes of it, and none of a character in part.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
