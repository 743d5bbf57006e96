//! Orders, and how they are carried out. Who may give them: [`crate::authority`].
//!
//! Invariant: an order is understood whole, or nothing is done.

use crate::authority::MayOrder;
use crate::http::{Serving, Shared};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::Router;
use quorate_live::port::{Answer, MemberChange, Request, RulesChange, Why};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use std::sync::Arc;

pub fn routes() -> Router<Arc<Serving>> {
    Router::new()
        .route("/switchover", post(switchover))
        .route("/priority", post(priority))
        .route("/pause", post(|serving: Shared, may: MayOrder| set_paused(serving, may, true)))
        .route("/resume", post(|serving: Shared, may: MayOrder| set_paused(serving, may, false)))
}

/// As Patroni takes it: who leads now, if that matters, and who is to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switchover {
    leader: Option<String>,
    #[serde(alias = "member")]
    candidate: Option<String>,
    scheduled_at: Option<String>,
}

async fn switchover(State(serving): Shared, _may: MayOrder, body: Bytes) -> Response {
    let order: Switchover = match read(&body) {
        Ok(order) => order,
        Err(why) => return why.into_response(),
    };
    if let Some(at) = order.scheduled_at {
        let what = format!(
            "nothing was done: this agent hands over at once, and not at {at}. Let a command wait until then: \
             quorate --seed HOST:PORT switchover --at TIME (in UTC)"
        );
        return (StatusCode::BAD_REQUEST, what).into_response();
    }
    let known = serving.memory.known();
    let leads = known.fresh.as_ref().and_then(|report| report.leading());
    let leads = leads.map(|leader| leader.name.clone());
    if order.leader.is_some() && order.leader != leads {
        let what = format!("{} leads, nothing was done", leads.as_deref().unwrap_or("nobody"));
        return (StatusCode::PRECONDITION_FAILED, what).into_response();
    }
    carry_out(serving, Request::Switchover { to: order.candidate }).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Priority {
    name: String,
    priority: u8,
}

async fn priority(State(serving): Shared, _may: MayOrder, body: Bytes) -> Response {
    let Priority { name, priority } = match read(&body) {
        Ok(order) => order,
        Err(why) => return why.into_response(),
    };
    let change = MemberChange { name, priority: Some(priority), ..MemberChange::default() };
    carry_out(serving, Request::MemberSet(change)).await
}

/// Nothing moves leadership, or expels a member, without an order, until it is resumed.
async fn set_paused(State(serving): Shared, _may: MayOrder, paused: bool) -> Response {
    let change = RulesChange { paused: Some(paused), ..RulesChange::default() };
    carry_out(serving, Request::Rules(change)).await
}

/// JSON, whatever its sender calls it: many say nothing, or what their tool says by itself.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(body).map_err(|error| {
        let what =
            format!("nothing was done: the body is not the JSON that is taken here: {error}");
        (StatusCode::BAD_REQUEST, what)
    })
}

/// It takes as long as a hand-over or a commit, which others do not wait for.
async fn carry_out(serving: Arc<Serving>, request: Request) -> Response {
    let order = move || serving.operating.order(&serving.member, &request);
    let answered = tokio::task::spawn_blocking(order).await;
    match answered.map(|answered| answered.map(|(_, asked)| asked.answer)) {
        Ok(Ok(Answer::Leads { name })) => {
            (StatusCode::OK, format!("{name} leads now")).into_response()
        }
        Ok(Ok(Answer::Done)) => (StatusCode::OK, "done").into_response(),
        Ok(Ok(Answer::Refused(refused))) => {
            let code = match refused.why {
                Why::Permission => StatusCode::FORBIDDEN,
                Why::NoLeader | Why::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::PRECONDITION_FAILED,
            };
            (code, refused.reason).into_response()
        }
        Ok(Ok(other)) => {
            let what = format!("the member answers something else: {other:?}");
            (StatusCode::BAD_GATEWAY, what).into_response()
        }
        Ok(Err(error)) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use crate::serve::tests::{ask, code, connect, start, TOKEN};
    use crate::serve::Limits;
    use std::net::SocketAddr;

    /// Of a request that was understood and is allowed: there is no member that could carry it out.
    const TAKEN: &str = "502";

    /// With the type of content that curl gives to all that it sends.
    fn order(agent: SocketAddr, path: &str, body: &str) -> String {
        let more = format!(
            "Authorization: Bearer {TOKEN}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(connect(agent), &format!("POST {path}"), &more).unwrap()
    }

    #[test]
    fn an_order_is_json_whatever_its_sender_calls_it_and_is_understood_whole() {
        let agent = start(None, Limits::default());
        for (path, body) in [
            ("/switchover", "{}"),
            ("/switchover", r#"{"candidate":"n2"}"#),
            ("/switchover", r#"{"member":"n2","scheduled_at":null}"#),
            ("/priority", r#"{"name":"n2","priority":80}"#),
            ("/pause", ""),
            ("/resume", "{}"),
        ] {
            assert_eq!(code(&order(agent, path, body)), TAKEN, "{path} {body}");
        }
        let untyped = format!("Authorization: Bearer {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}");
        assert_eq!(code(&ask(connect(agent), "POST /switchover", &untyped).unwrap()), TAKEN);
        for (path, body) in [
            ("/switchover", ""),
            ("/switchover", "candidate=n2"),
            ("/switchover", r#"{"candidate":"n2","force":true}"#),
            ("/priority", r#"{"name":"n2"}"#),
            ("/priority", r#"{"name":"n2","priority":256}"#),
        ] {
            let said = order(agent, path, body);
            assert!(code(&said) == "400" && said.contains("nothing was done"), "{path}: {said}");
        }
    }

    #[test]
    fn a_switchover_at_a_time_is_refused_with_what_does_it() {
        let agent = start(None, Limits::default());
        let body = r#"{"leader":"n1","scheduled_at":"2026-12-01T02:00+00"}"#;
        let said = order(agent, "/switchover", body);
        assert_eq!(code(&said), "400", "{said}");
        assert!(said.contains("switchover --at TIME"), "{said}");
    }

    #[test]
    fn who_leads_is_compared_before_anything_is_done() {
        let said = order(start(None, Limits::default()), "/switchover", r#"{"leader":"n1"}"#);
        assert!(code(&said) == "412" && said.ends_with("nobody leads, nothing was done"), "{said}");
    }

    #[test]
    fn nobody_pauses_a_group_without_the_token() {
        let agent = start(None, Limits::default());
        for path in ["/pause", "/resume"] {
            let request = format!("POST {path}");
            assert_eq!(code(&ask(connect(agent), &request, "").unwrap()), "401", "{path}");
            assert_eq!(code(&ask(connect(agent), &format!("GET {path}"), "").unwrap()), "405");
        }
    }
}
