//! The thread that asks a member, again and again, on one connection as long as that lasts.

use crate::memory::Memory;
use quorate_live::port::{Answer, Operating, Report, Request, Session, Unanswered};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// What a member is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    Status,
    /// And what has happened to the group, when that may be something new.
    StatusAndPast,
}

/// Asks until it is dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
}

impl Watch {
    /// Asks the member at this group address, and notes what it says in `memory`. Each `interval`, or more often where
    /// its answers would be old too soon.
    pub fn start(
        member: &str,
        interval: Duration,
        operating: Arc<Operating>,
        memory: Arc<Memory>,
        asks: Asks,
    ) -> io::Result<Watch> {
        let over = Arc::new(AtomicBool::new(false));
        let (member, told) = (member.to_owned(), over.clone());
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut session = None;
            while !told.load(Ordering::Relaxed) {
                let asked = Instant::now();
                look(&mut session, &member, interval, &operating, &memory);
                if asks == Asks::StatusAndPast {
                    look_back(&mut session, &memory);
                }
                thread::sleep(memory.interval(interval).saturating_sub(asked.elapsed()));
            }
        })?;
        Ok(Watch { over })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn look(
    session: &mut Option<Session>,
    member: &str,
    interval: Duration,
    operating: &Operating,
    memory: &Memory,
) {
    let asked = Instant::now();
    let answer = match ask(session, member, operating) {
        // The connection may have ended as connections do: another one tells whether somebody is there.
        Err(Unanswered::Lost(_)) if asked.elapsed() < interval => ask(session, member, operating),
        answer => answer,
    };
    match answer {
        Ok(report) => memory.answered(report, asked),
        Err(error) => {
            // One that has no room for another connection is there, and what it said last holds as long as ever.
            let gone = matches!(error, Unanswered::NotReached(_));
            memory.not_answered(error.to_string(), gone);
        }
    }
}

/// On the connection on which the member has just reported; another time, if there is none.
fn look_back(session: &mut Option<Session>, memory: &Memory) {
    let Some(report) = memory.known().fresh.filter(|report| memory.wants_past(report)) else {
        return;
    };
    let Some(open) = session else { return };
    match open.ask(&Request::History) {
        Ok(Answer::History(happenings)) => memory.past_heard(&report, Some(happenings)),
        // It is of a release that shows none, or may not show it to this operator.
        Ok(_) => memory.past_heard(&report, None),
        Err(_) => *session = None,
    }
}

fn ask(
    session: &mut Option<Session>,
    member: &str,
    operating: &Operating,
) -> Result<Report, Unanswered> {
    let open = match session.take() {
        Some(open) => open,
        None => operating.open(member)?,
    };
    let open = session.insert(open);
    let answer = open.ask(&Request::Status);
    if answer.is_err() {
        *session = None;
    }
    match answer? {
        Answer::Status(report) => Ok(*report),
        Answer::Refused(refused) => Err(Unanswered::Forbidden(refused.reason)),
        other => Err(Unanswered::Lost(format!("it answers something else: {other:?}"))),
    }
}
