//! What operators' sessions were told: each sees what became of its own orders.
//!
//! Invariants: what one session was told is never shown to another one whose number is known; so many
//! sessions are remembered, and of those the ones that were told something last.

use std::collections::VecDeque;

const SESSIONS_MAX: usize = 64;

/// What one session was told last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What its last order was answered with.
    pub answer: String,
    /// Why its last change of the options was refused; the server tells its client only that it was.
    pub refusal: String,
}

/// By the number of a client's connection; of those without a known number all have one.
#[derive(Debug, Default)]
pub struct Answers {
    /// The one that was told something last is last.
    sessions: VecDeque<(Option<u64>, Told)>,
}

impl Answers {
    pub fn answered(&mut self, connection: Option<u64>, answer: String) {
        self.of(connection).answer = answer;
    }

    pub fn refused(&mut self, connection: Option<u64>, refusal: String) {
        self.of(connection).refusal = refusal;
    }

    /// Its refusal is none any more, if it is this.
    pub fn take_back(&mut self, connection: Option<u64>, is_this: impl Fn(&str) -> bool) {
        let refusal = &mut self.of(connection).refusal;
        if is_this(refusal) {
            refusal.clear();
        }
    }

    /// An order begins: what was told of former ones is no outcome of it.
    pub fn ordered(&mut self, connection: Option<u64>) {
        *self.of(connection) = Told::default();
    }

    /// What this session was told; whose number is not known is shown what was told last, to whomever.
    pub fn told(&self, connection: Option<u64>) -> Told {
        let mut newest_first = self.sessions.iter().rev();
        let found = match connection {
            Some(_) => newest_first.find(|(known, _)| *known == connection),
            None => newest_first.next(),
        };
        found.map(|(_, told)| told.clone()).unwrap_or_default()
    }

    fn of(&mut self, connection: Option<u64>) -> &mut Told {
        let known = self.sessions.iter().position(|(known, _)| *known == connection);
        let told = known.and_then(|at| self.sessions.remove(at)).map(|(_, told)| told);
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.pop_front();
        }
        self.sessions.push_back((connection, told.unwrap_or_default()));
        let last = self.sessions.len() - 1;
        &mut self.sessions[last].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_shown_its_own() {
        let mut answers = Answers::default();
        answers.answered(Some(1), "one".into());
        answers.answered(Some(2), "two".into());
        answers.refused(Some(1), "not one".into());
        let told = |answer: &str, refusal: &str| Told {
            answer: answer.to_owned(),
            refusal: refusal.to_owned(),
        };
        assert_eq!(answers.told(Some(1)), told("one", "not one"));
        assert_eq!(answers.told(Some(2)), told("two", ""));
        assert_eq!(answers.told(Some(3)), Told::default());
        assert_eq!(answers.told(None), told("one", "not one"), "the newest of all");
    }

    #[test]
    fn those_told_something_long_ago_are_forgotten_first() {
        let mut answers = Answers::default();
        answers.answered(Some(0), "kept".into());
        answers.answered(Some(1), "forgotten".into());
        answers.answered(Some(0), "kept on".into());
        for session in 2..=SESSIONS_MAX as u64 {
            answers.answered(Some(session), String::new());
        }
        assert_eq!(answers.told(Some(0)).answer, "kept on");
        assert_eq!(answers.told(Some(1)), Told::default());
        assert_eq!(answers.sessions.len(), SESSIONS_MAX);
    }
}
