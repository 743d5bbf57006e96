//! Orders: who may give them, and how they are carried out.
//!
//! Invariant: an order needs the token, which nobody reads on its way: it comes from this host, or over TLS.

use crate::http::{Serving, Shared};
use crate::serve::Peer;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Json;
use quorate_live::port::{Answer, MemberChange, Request, Why};
use serde::Deserialize;
use std::sync::Arc;

/// As Patroni takes it: who leads now, if that matters, and who is to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switchover {
    leader: Option<String>,
    candidate: Option<String>,
}

pub async fn switchover(
    State(serving): Shared,
    _may: MayOrder,
    Json(order): Json<Switchover>,
) -> Response {
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
pub struct Priority {
    name: String,
    priority: u8,
}

pub async fn priority(
    State(serving): Shared,
    _may: MayOrder,
    Json(order): Json<Priority>,
) -> Response {
    let Priority { name, priority } = order;
    let change = MemberChange { name, priority: Some(priority), ..MemberChange::default() };
    carry_out(serving, Request::MemberSet(change)).await
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

/// Whoever sent this request may give orders. Nothing else of it is looked at before.
pub struct MayOrder;

impl FromRequestParts<Arc<Serving>> for MayOrder {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(
        parts: &mut Parts,
        serving: &Arc<Serving>,
    ) -> Result<MayOrder, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>();
        may_order(serving.token.as_deref(), peer, &parts.headers).map(|()| MayOrder)
    }
}

fn may_order(
    token: Option<&str>,
    peer: Option<&Peer>,
    headers: &HeaderMap,
) -> Result<(), (StatusCode, &'static str)> {
    let Some(token) = token else {
        return Err((StatusCode::FORBIDDEN, "this agent takes no orders: it has no --token-file"));
    };
    // Who is not known is from elsewhere.
    if !peer.is_some_and(|peer| peer.encrypted || peer.addr.to_canonical().is_loopback()) {
        let why = "nothing was done: orders from other hosts are taken over TLS only (--tls-cert, --tls-key), else \
                   the token could be read on its way; without TLS: quorate --seed HOST:PORT switchover";
        return Err((StatusCode::FORBIDDEN, why));
    }
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
    match shown.is_some_and(|shown| is_same(shown.as_bytes(), token.as_bytes())) {
        true => Ok(()),
        false => Err((StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN, as in --token-file")),
    }
}

/// In a time that does not tell where they differ.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differ = shown.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b));
    shown.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shown_whole() {
        assert!(is_same(b"secret", b"secret"));
        for other in ["", "secre", "secrets", "Secret"] {
            assert!(!is_same(other.as_bytes(), b"secret"), "{other}");
        }
    }

    #[test]
    fn an_order_comes_from_this_host_or_over_tls_and_shows_the_token() {
        const FORBIDDEN: Option<u16> = Some(403);
        const UNKNOWN: Option<u16> = Some(401);
        let refused = |token: Option<&str>, addr: &str, encrypted, shown: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, shown.parse().unwrap());
            let peer = Peer { addr: addr.parse().unwrap(), encrypted };
            may_order(token, Some(&peer), &headers).err().map(|(code, _)| code.as_u16())
        };
        let token = Some("right");
        for (addr, encrypted) in
            [("127.0.0.1", false), ("::1", false), ("::ffff:127.0.0.1", true), ("10.0.0.7", true)]
        {
            assert_eq!(refused(token, addr, encrypted, "Bearer right"), None, "{addr}");
            assert_eq!(refused(token, addr, encrypted, "Bearer wrong"), UNKNOWN, "{addr}");
            assert_eq!(refused(token, addr, encrypted, "right"), UNKNOWN, "{addr}");
            assert_eq!(refused(None, addr, encrypted, "Bearer right"), FORBIDDEN, "{addr}");
        }
        for addr in ["10.0.0.7", "::ffff:10.0.0.7", "2001:db8::7"] {
            assert_eq!(refused(token, addr, false, "Bearer right"), FORBIDDEN, "{addr}");
        }
        assert!(may_order(token, None, &HeaderMap::new()).is_err());
    }
}
