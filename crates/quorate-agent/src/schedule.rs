//! The one switchover that is to come, with the meaning and status codes of Patroni's.
//!
//! Invariants:
//! - it is carried out once at most, not before its time, and no more than [`LATE_MAX`] after it: on a host that
//!   slept meanwhile, nothing moves at an hour that nobody chose;
//! - it is kept in memory: with the agent's process it is gone, and nothing is done.

use crate::carry_out::{check_leader, hand_over, Switchover};
use crate::http::Serving;
use crate::journal::{Ordered, Said};
use axum::http::StatusCode;
use parking_lot::Mutex;
use quorate_live::Privilege;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The calendar is looked at so often: a host may be asleep meanwhile, or its clock be set.
const LOOK: Duration = Duration::from_secs(1);
const LATE_MAX: Duration = Duration::from_secs(15);
/// The year 10000 in UTC: RFC 3339 writes years with four digits.
const YEARS_END: Duration = Duration::from_secs(253_402_300_800);

#[derive(Default)]
pub struct Schedule(Mutex<Option<Planned>>);

#[derive(Clone)]
struct Planned {
    at: SystemTime,
    order: Switchover,
    by: Ordered,
}

/// As Patroni tells it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Shown {
    pub at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl Schedule {
    pub fn shown(&self) -> Option<Shown> {
        let planned = self.0.lock().clone()?;
        let Switchover { leader: from, candidate: to, .. } = planned.order;
        // Patroni writes UTC like this.
        Some(Shown { at: utc(planned.at).replace('Z', "+00:00"), from, to })
    }

    fn take_due(&self, now: SystemTime) -> Option<Planned> {
        self.0.lock().take_if(|planned| planned.at <= now)
    }
}

/// Plans this one, in place of the one that is planned, if there is one. What could not be done now is refused at once.
pub fn plan(serving: &Serving, order: Switchover, by: &Ordered) -> Result<Said, Said> {
    let at = time(order.scheduled_at.as_deref().unwrap_or_default(), SystemTime::now())?;
    is_possible(serving, &order)?;
    let mut said = format!("Switchover scheduled for {}", utc(at));
    let planned = Planned { at, order, by: by.clone() };
    if let Some(former) = serving.schedule.0.lock().replace(planned) {
        said += &format!(", in place of the one for {}", utc(former.at));
    }
    said += ". This agent keeps it in memory: if the agent ends before, nothing is done";
    Ok((StatusCode::ACCEPTED, said))
}

pub fn cancel(serving: &Serving) -> Said {
    match serving.schedule.0.lock().take() {
        Some(_) => (StatusCode::OK, "scheduled switchover deleted".to_owned()),
        None => (StatusCode::NOT_FOUND, "no switchover is scheduled".to_owned()),
    }
}

fn is_possible(serving: &Serving, order: &Switchover) -> Result<(), Said> {
    let refused = |code, why: String| Err((code, format!("nothing was scheduled: {why}")));
    let Some(report) = serving.memory.known().fresh else {
        let why = "the member beside this agent does not answer; ask another member's agent";
        return refused(StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    };
    if report.privilege == Privilege::Read.word() {
        let why = format!(
            "operator {}, as whom this agent asks, may only look at the group. Give the agent a credential that was \
             made without --read-only",
            report.operator
        );
        return refused(StatusCode::FORBIDDEN, why);
    }
    check_leader(serving, order.leader.as_deref())?;
    match &order.candidate {
        Some(name) if !report.members.iter().any(|member| member.name == *name) => {
            refused(StatusCode::PRECONDITION_FAILED, format!("{name} is no member of this group"))
        }
        _ => Ok(()),
    }
}

/// Carries out what is due, on a thread that ends with the process.
pub fn start(serving: Arc<Serving>) -> io::Result<()> {
    let run = move || loop {
        thread::sleep(LOOK);
        carry_out_due(&serving, SystemTime::now());
    };
    thread::Builder::new().name("schedule".to_owned()).spawn(run).map(drop)
}

fn carry_out_due(serving: &Serving, now: SystemTime) {
    let Some(Planned { at, order, by }) = serving.schedule.take_due(now) else { return };
    let late = now.duration_since(at).unwrap_or_default();
    let said = match late > LATE_MAX {
        false => hand_over(serving, &order),
        true => {
            let late_s = late.as_secs();
            let what = format!("nothing was done: its time is {late_s} s ago; the host slept, or its clock was set");
            (StatusCode::PRECONDITION_FAILED, what)
        }
    };
    Ordered { what: format!("{}, which was scheduled,", by.what), ..by }.note(&said);
}

/// In ISO 8601, with its distance from UTC, as Patroni wants it.
pub fn time(text: &str, now: SystemTime) -> Result<SystemTime, Said> {
    let refused =
        |code, why: &str| (code, format!("nothing was scheduled: scheduled_at is {text:?}, {why}"));
    let unknown = || {
        let why = "which is not understood; write it like 2026-12-01T02:00+00:00";
        refused(StatusCode::UNPROCESSABLE_ENTITY, why)
    };
    let (local, zone) = split_zone(text).ok_or_else(unknown)?;
    let local = humantime::parse_rfc3339_weak(&local).map_err(|_| unknown())?;
    if zone.is_empty() {
        let why = "which has no time zone; write it like 2026-12-01T02:00+00:00";
        return Err(refused(StatusCode::BAD_REQUEST, why));
    }
    let (is_east, offset) = offset(zone).ok_or_else(unknown)?;
    let at = if is_east { local.checked_sub(offset) } else { local.checked_add(offset) };
    // A zone to the west moves the last hours of the last year out of what can be written.
    match at.filter(|at| *at < UNIX_EPOCH + YEARS_END) {
        Some(at) if at >= now => Ok(at),
        Some(_) => Err(refused(StatusCode::UNPROCESSABLE_ENTITY, "which has passed")),
        None => Err(unknown()),
    }
}

/// Date and time, with seconds, and the time zone, if there is one.
fn split_zone(text: &str) -> Option<(String, &str)> {
    let (date, rest) = text.trim().split_once(['T', 't', ' '])?;
    let clock_end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(clock_end);
    let clock = clock.trim();
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    Some((format!("{date} {clock}{seconds}"), zone))
}

/// How far a time zone is from UTC, and whether to the east of it: `Z`, `+01`, `-0330`, `+05:30`.
fn offset(zone: &str) -> Option<(bool, Duration)> {
    if zone.eq_ignore_ascii_case("z") {
        return Some((true, Duration::ZERO));
    }
    let (sign, digits) = zone.split_at_checked(1)?;
    let digits = digits.replace(':', "");
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (u64, u64) = match digits.len() {
        2 => (digits.parse().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse().ok()?),
        _ => return None,
    };
    let seconds = (hours * 60 + minutes) * 60;
    (hours < 24 && minutes < 60).then_some((sign == "+", Duration::from_secs(seconds)))
}

pub fn utc(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests;
