//! The thread that asks the member, again and again, on one connection as long as that lasts.

use crate::memory::Memory;
use crate::Options;
use quorate_live::port::{Answer, Operating, Report, Request, Session, Unanswered};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Starts it. It ends with the process.
pub fn start(options: &Options, operating: Arc<Operating>, memory: Arc<Memory>) -> io::Result<()> {
    let (member, interval) = (options.member.clone(), options.interval);
    thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || watch(&member, interval, &operating, &memory))
        .map(drop)
}

fn watch(member: &str, interval: Duration, operating: &Operating, memory: &Memory) {
    let mut session = None;
    loop {
        let asked = Instant::now();
        let answer = match ask(&mut session, member, operating) {
            // The connection may have ended as connections do: another one tells whether somebody is there.
            Err(Unanswered::Lost(_)) if asked.elapsed() < interval => {
                ask(&mut session, member, operating)
            }
            answer => answer,
        };
        match answer {
            Ok(report) => memory.answered(report, asked),
            Err(error) => {
                let gone = matches!(error, Unanswered::NotReached(_));
                memory.not_answered(error.to_string(), gone);
            }
        }
        thread::sleep(interval.saturating_sub(asked.elapsed()));
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
