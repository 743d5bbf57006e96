//! What the agent says of itself, in its journal (standard error): who ordered what, and what came of it.
//!
//! Invariants:
//! - each order that might have changed something is one line, whether it was carried out or refused; so is the
//!   end of one that was to come later;
//! - what strangers sent makes no line of its own, commands no terminal, and fills no journal: those who may not
//!   order have one line a second, which says how many there were.

use axum::http::StatusCode;
use parking_lot::Mutex;
use quorate_live::printable;
use std::fmt;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Of what somebody sent.
const SHOWN_MAX: usize = 200;
/// Between two lines on those who may not order.
const REFUSED_EVERY: Duration = Duration::from_secs(1);

/// What is answered to an order.
pub type Said = (StatusCode, String);

/// An order, as it came.
#[derive(Clone, Debug, Default)]
pub struct Ordered {
    /// Method and path.
    pub what: String,
    pub body: String,
    /// The user that it names. Nobody checks that name: the token counts. None of those who were refused.
    pub user: Option<String>,
    pub from: Option<IpAddr>,
}

impl Ordered {
    /// With its body.
    pub fn with(self, body: &[u8]) -> Ordered {
        Ordered { body: shown(&String::from_utf8_lossy(body)), ..self }
    }

    /// What came of it.
    pub fn note(&self, (code, said): &Said) {
        say(&format!("order {self}: {}, {}", code.as_u16(), shown(said)));
    }

    /// Why it was refused, after so many others that have no line ([`Refusals::count`]).
    pub fn note_refused(&self, said: &Said, passed_over: u64) {
        if passed_over > 0 {
            say(&format!("{passed_over} more orders were refused since the last line on one"));
        }
        self.note(said);
    }
}

impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ordered { what, body, user, from } = self;
        write!(f, "{what}{}{body}", if body.is_empty() { "" } else { " " })?;
        match user {
            Some(user) => write!(f, " by user {:?}", shown(user))?,
            None => write!(f, " without a user's name")?,
        }
        match from {
            Some(from) => write!(f, " from {}", from.to_canonical()),
            None => write!(f, " from an unknown address"),
        }
    }
}

/// Orders of those who may not give any.
#[derive(Default)]
pub struct Refusals(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    noted: Option<Instant>,
    passed_over: u64,
}

impl Refusals {
    /// Counts one. How many had no line since the last one that had; none if this one has none either.
    pub fn count(&self) -> Option<u64> {
        self.0.lock().count(Instant::now())
    }
}

impl Counted {
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.noted.is_some_and(|noted| now.duration_since(noted) < REFUSED_EVERY) {
            self.passed_over += 1;
            return None;
        }
        self.noted = Some(now);
        Some(std::mem::take(&mut self.passed_over))
    }
}

/// On one line, and not for ever.
fn shown(text: &str) -> String {
    let text = printable(text.trim());
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Where nobody reads it, the agent goes on all the same.
pub fn say(what: &str) {
    let _unread = writeln!(io::stderr(), "quorate agent: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_one_line_with_who_gave_it_and_what_it_was() {
        let from = Some("::ffff:10.0.0.7".parse().unwrap());
        let what = "POST /switchover".to_owned();
        let ordered = Ordered { what, user: Some("ann\n\u{1b}\"".into()), from, ..<_>::default() };
        let ordered = ordered.with(b"{\"candidate\":\r\n\"db2\"}\n");
        assert_eq!(
            ordered.to_string(),
            "POST /switchover {\"candidate\":??\"db2\"} by user \"ann??\\\"\" from 10.0.0.7"
        );
        let pause = Ordered { what: "POST /pause".into(), ..Ordered::default() };
        let line = "POST /pause without a user's name from an unknown address";
        assert_eq!(pause.to_string(), line);
        assert_eq!(shown(&"é".repeat(SHOWN_MAX + 1)), format!("{}...", "é".repeat(SHOWN_MAX)));
    }

    #[test]
    fn who_may_not_order_has_a_line_a_second() {
        let (mut counted, now) = (Counted::default(), Instant::now());
        assert_eq!(counted.count(now), Some(0));
        assert_eq!((counted.count(now), counted.count(now)), (None, None));
        assert_eq!(counted.count(now + REFUSED_EVERY), Some(2));
        assert_eq!(counted.count(now + 2 * REFUSED_EVERY), Some(0));
    }
}
