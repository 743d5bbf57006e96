//! What is scheduled, refused, told, given up and carried out.

use super::*;
use crate::memory::Memory;
use crate::serve::tests::{ask, code, connect, serving_of, start_of, TOKEN};
use crate::serve::Limits;
use crate::verdict::tests::report;
use quorate_live::port::MemberReport;
use serde_json::{json, Value};
use std::net::SocketAddr;
use std::time::Instant;

const HOUR: Duration = Duration::from_secs(3600);

/// Of a group of n1, which leads, and n2.
fn memory() -> Memory {
    let mut report = report(true, "single");
    let member =
        |name: &str| MemberReport { id: name.into(), name: name.into(), ..MemberReport::default() };
    (report.leader, report.members) = (Some("n1".into()), vec![member("n1"), member("n2")]);
    report.privilege = Privilege::All.word().into();
    let memory = Memory::new(Duration::from_secs(60));
    memory.answered(report, Instant::now());
    memory
}

fn order(agent: SocketAddr, method: &str, body: &str) -> String {
    let length = body.len();
    let more = format!("Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}");
    ask(connect(agent), &format!("{method} /switchover"), &more).unwrap()
}

fn scheduled(agent: SocketAddr) -> Value {
    let answer = ask(connect(agent), "GET /cluster", "").unwrap();
    let told: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    told["scheduled_switchover"].clone()
}

#[test]
fn a_time_is_taken_and_refused_as_patroni_does() {
    let now = UNIX_EPOCH + 1000 * 24 * HOUR; // 1972-09-27
    let seconds = |text: &str| time(text, now).map(|at| at.duration_since(now).unwrap().as_secs());
    for (text, expected) in [
        ("1972-09-27T01:00Z", 3600),
        ("1972-09-27T01:00:30z", 3630),
        ("1972-09-27 01:00:30.5+00", 3630),
        ("1972-09-27T03:00:00+02:00", 3600),
        ("1972-09-26T21:30:00-0330", 3600),
        (" 1972-09-27 01:00 +00:00 ", 3600),
    ] {
        assert_eq!(seconds(text), Ok(expected), "{text}");
    }
    for (text, code) in [
        ("1972-09-27T01:00", 400),
        ("1972-09-26T23:59:59Z", 422),
        ("1972-09-27T01:00+02:00", 422),
        ("1972-09-27", 422),
        ("tomorrow", 422),
        ("", 422),
        ("1972-09-27T25:00Z", 422),
        ("1972-09-27T01:00+2", 422),
        ("1972-09-27T01:00+24:00", 422),
        ("1972-09-27T01:00+1:é", 422),
        ("1972-09-27T01:00Zulu", 422),
        ("9999-12-31T23:59:59-01:00", 422),
        ("9999-12-31T23:00-01", 422),
    ] {
        let (refused, why) = seconds(text).unwrap_err();
        assert!(
            refused == code && why.contains("nothing was scheduled"),
            "{text}: {refused} {why}"
        );
    }
    let last = time("9999-12-31T22:59:59-01:00", now).map(utc);
    assert_eq!(last, Ok("9999-12-31T23:59:59Z".to_owned()));
}

#[test]
fn one_is_scheduled_and_told_and_given_up() {
    let agent = start_of(memory(), None, Limits::default());
    assert_eq!(scheduled(agent), Value::Null);
    assert_eq!(code(&order(agent, "DELETE", "")), "404");
    let said = order(agent, "POST", r#"{"scheduled_at":"2099-01-01T01:00+01:00"}"#);
    assert!(code(&said) == "202" && said.contains("for 2099-01-01T00:00:00Z"), "{said}");
    assert_eq!(scheduled(agent), json!({ "at": "2099-01-01T00:00:00+00:00" }));

    let other = r#"{"leader":"n1","candidate":"n2","scheduled_at":"2098-01-01T00:00Z"}"#;
    let said = order(agent, "POST", other);
    assert!(said.contains("in place of the one for 2099-01-01T00:00:00Z"), "{said}");
    let told = json!({ "at": "2098-01-01T00:00:00+00:00", "from": "n1", "to": "n2" });
    assert_eq!(scheduled(agent), told);
    for (body, refused) in [
        (r#"{"leader":"n2","scheduled_at":"2098-01-01T00:00Z"}"#, "412"),
        (r#"{"candidate":"n3","scheduled_at":"2098-01-01T00:00Z"}"#, "412"),
        (r#"{"scheduled_at":"2098-01-01T00:00"}"#, "400"),
        (r#"{"scheduled_at":"2001-01-01T00:00Z"}"#, "422"),
    ] {
        assert_eq!(code(&order(agent, "POST", body)), refused, "{body}");
        assert_eq!(scheduled(agent), told, "what was refused changes nothing");
    }
    assert_eq!(code(&ask(connect(agent), "DELETE /switchover", "").unwrap()), "401");
    let said = order(agent, "DELETE", "");
    assert!(code(&said) == "200" && said.ends_with("scheduled switchover deleted"), "{said}");
    assert_eq!((scheduled(agent), code(&order(agent, "DELETE", ""))), (Value::Null, "404"));
}

#[test]
fn what_the_agent_could_not_do_is_not_scheduled() {
    let later = Switchover {
        leader: None,
        candidate: None,
        scheduled_at: Some("2099-01-01T00:00Z".into()),
    };
    let refused = |memory: Memory| {
        plan(&serving_of(memory), later.clone(), &Ordered::default()).unwrap_err().0.as_u16()
    };
    assert_eq!(refused(Memory::new(HOUR)), 503, "nobody is known");
    let mut report = (*memory().known().fresh.unwrap()).clone();
    report.privilege = Privilege::Read.word().into();
    let reader = Memory::new(HOUR);
    reader.answered(report, Instant::now());
    assert_eq!(refused(reader), 403);
}

#[test]
fn it_is_carried_out_once_not_too_early_and_not_too_late() {
    let serving = serving_of(memory());
    let at = UNIX_EPOCH + HOUR;
    let order = Switchover { leader: None, candidate: None, scheduled_at: None };
    let plan = || {
        let planned = Planned { at, order: order.clone(), by: Ordered::default() };
        *serving.schedule.0.lock() = Some(planned);
    };
    plan();
    let second = Duration::from_secs(1);
    assert!(serving.schedule.take_due(at - second).is_none());
    assert!(serving.schedule.take_due(at).is_some());
    assert!(serving.schedule.take_due(at).is_none(), "once");
    plan();
    carry_out_due(&serving, at - second);
    assert!(serving.schedule.shown().is_some());
    carry_out_due(&serving, at + LATE_MAX + second);
    assert!(serving.schedule.shown().is_none(), "it does not wait for the next hour");
}
