//! Orders, as they are taken. Who may give them: [`crate::authority`].
//!
//! Invariants:
//! - an order is understood whole, or nothing is done;
//! - each is noted in the journal with what came of it, also if whoever gave it has gone meanwhile.

use crate::authority::MayOrder;
use crate::carry_out::{carry_out, hand_over, Switchover};
use crate::http::{Serving, Shared};
use crate::journal::{Ordered, Said};
use crate::schedule;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::Router;
use quorate_live::port::{MemberChange, Request, RulesChange};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;

pub fn routes() -> Router<Arc<Serving>> {
    Router::new()
        .route("/switchover", post(switchover).delete(unschedule))
        .route("/priority", post(priority))
        .route("/pause", post(|serving: Shared, by: MayOrder| set_paused(serving, by, true)))
        .route("/resume", post(|serving: Shared, by: MayOrder| set_paused(serving, by, false)))
}

async fn switchover(serving: Shared, by: MayOrder, body: Bytes) -> Said {
    given(serving, by, body, |serving, by, body| {
        let order: Switchover = read(body)?;
        match order.scheduled_at {
            Some(_) => schedule::plan(serving, order, by),
            None => Ok(hand_over(serving, &order)),
        }
    })
    .await
}

async fn unschedule(serving: Shared, by: MayOrder) -> Said {
    given(serving, by, Bytes::new(), |serving, _, _| Ok(schedule::cancel(serving))).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Priority {
    name: String,
    priority: u8,
}

async fn priority(serving: Shared, by: MayOrder, body: Bytes) -> Said {
    given(serving, by, body, |serving, _, body| {
        let Priority { name, priority } = read(body)?;
        let change = MemberChange { name, priority: Some(priority), ..MemberChange::default() };
        Ok(carry_out(serving, &Request::MemberSet(change)))
    })
    .await
}

/// Nothing moves leadership, or expels a member, without an order, until it is resumed.
async fn set_paused(serving: Shared, by: MayOrder, paused: bool) -> Said {
    let change = RulesChange { paused: Some(paused), ..RulesChange::default() };
    let request = Request::Rules(change);
    given(serving, by, Bytes::new(), move |serving, _, _| Ok(carry_out(serving, &request))).await
}

/// Does it on a thread of its own, which goes on to its end, and notes it there. `Err`: nothing was done.
async fn given(
    State(serving): Shared,
    MayOrder(ordered): MayOrder,
    body: Bytes,
    order: impl FnOnce(&Serving, &Ordered, &[u8]) -> Result<Said, Said> + Send + 'static,
) -> Said {
    let done = spawn_blocking(move || {
        let ordered = ordered.with(&body);
        let said = order(&serving, &ordered, &body).unwrap_or_else(|refused| refused);
        ordered.note(&said);
        said
    });
    done.await.unwrap_or_else(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// JSON, whatever its sender calls it: many say nothing, or what their tool says by itself.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Said> {
    serde_json::from_slice(body).map_err(|error| {
        let what =
            format!("nothing was done: the body is not the JSON that is taken here: {error}");
        (StatusCode::BAD_REQUEST, what)
    })
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
    fn who_leads_is_compared_before_anything_is_done() {
        let said = order(start(None, Limits::default()), "/switchover", r#"{"leader":"n1"}"#);
        assert!(code(&said) == "412" && said.ends_with("nobody leads, nothing was done"), "{said}");
    }

    #[test]
    fn what_is_not_known_is_not_scheduled_and_refused_by_its_time_first() {
        let agent = start(None, Limits::default());
        for (at, refused) in [("2099-01-01T00:00Z", "503"), ("2001-01-01T00:00Z", "422")] {
            let said = order(agent, "/switchover", &format!(r#"{{"scheduled_at":"{at}"}}"#));
            assert!(code(&said) == refused && said.contains("nothing was scheduled"), "{said}");
        }
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
