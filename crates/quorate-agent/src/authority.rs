//! Who may give orders.
//!
//! Invariants:
//! - an order needs the token, which nobody reads on its way: it comes from this host, or over TLS;
//! - whoever is refused is noted in the journal, and costs no thread where there is no line to write;
//! - the token never gets into the journal: of those who are refused no name is noted, which may be the token in the
//!   wrong place (`curl -u TOKEN:`), and none that is the token;
//! - no browser shows the token by itself: no answer asks it for a password (`WWW-Authenticate`), which it would keep,
//!   and show for a page of another site, too.

use crate::http::Serving;
use crate::journal::Ordered;
use crate::serve::Peer;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{header, HeaderMap, StatusCode};
use base64::prelude::{Engine, BASE64_STANDARD};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Whoever sent this request may give orders. Its body is not looked at before, and not yet here.
pub struct MayOrder(pub Ordered);

impl FromRequestParts<Arc<Serving>> for MayOrder {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(
        parts: &mut Parts,
        serving: &Arc<Serving>,
    ) -> Result<MayOrder, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>();
        let ordered = Ordered {
            what: format!("{} {}", parts.method, parts.uri.path()),
            from: peer.map(|peer| peer.addr),
            ..Ordered::default()
        };
        let refused = match may_order(serving.token.as_deref(), peer, &parts.headers) {
            Ok(user) => return Ok(MayOrder(Ordered { user, ..ordered })),
            Err(refused) => refused,
        };
        if let Some(passed_over) = serving.refusals.count() {
            let said = (refused.0, refused.1.to_owned());
            // Where the journal stands still, health checks are answered all the same.
            drop(spawn_blocking(move || ordered.note_refused(&said, passed_over)));
        }
        Err(refused)
    }
}

/// By which user, if one is named.
pub fn may_order(
    token: Option<&str>,
    peer: Option<&Peer>,
    headers: &HeaderMap,
) -> Result<Option<String>, (StatusCode, &'static str)> {
    let Some(token) = token else {
        return Err((StatusCode::FORBIDDEN, "this agent takes no orders: it has no --token-file"));
    };
    // Who is not known is from elsewhere.
    if !peer.is_some_and(|peer| peer.encrypted || peer.addr.to_canonical().is_loopback()) {
        let why = "nothing was done: orders from other hosts are taken over TLS only (--tls-cert, --tls-key), else \
                   the token could be read on its way; without TLS: quorate --seed HOST:PORT switchover";
        return Err((StatusCode::FORBIDDEN, why));
    }
    match shown(headers).filter(|shown| is_same(&shown.token, token.as_bytes())) {
        Some(shown) => Ok(shown.user.filter(|user| user != token)),
        None => {
            let why = "nothing was done: show the token of --token-file, as Authorization: Bearer TOKEN, or as the \
                       password of any user (Basic)";
            Err((StatusCode::UNAUTHORIZED, why))
        }
    }
}

/// What is shown as the token.
struct Shown {
    token: Vec<u8>,
    /// Whose password it is said to be.
    user: Option<String>,
}

/// The token itself, or as the password of some user.
fn shown(headers: &HeaderMap) -> Option<Shown> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, shown) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown { token: shown.as_bytes().to_vec(), user: None });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let account = BASE64_STANDARD.decode(shown.trim()).ok()?;
    let user_end = account.iter().position(|byte| *byte == b':')?;
    let user = String::from_utf8_lossy(&account[..user_end]).into_owned();
    Some(Shown { token: account[user_end + 1..].to_vec(), user: Some(user) })
}

/// In a time that does not tell where they differ.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differ = shown.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b));
    shown.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDDEN: Option<u16> = Some(403);
    const UNKNOWN: Option<u16> = Some(401);

    fn refused(token: Option<&str>, addr: &str, encrypted: bool, shown: &str) -> Option<u16> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, shown.parse().unwrap());
        let peer = Peer { addr: addr.parse().unwrap(), encrypted };
        may_order(token, Some(&peer), &headers).err().map(|(code, _)| code.as_u16())
    }

    #[test]
    fn a_token_is_shown_whole() {
        assert!(is_same(b"secret", b"secret"));
        for other in ["", "secre", "secrets", "Secret"] {
            assert!(!is_same(other.as_bytes(), b"secret"), "{other}");
        }
    }

    #[test]
    fn an_order_comes_from_this_host_or_over_tls_and_shows_the_token() {
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

    #[test]
    fn the_token_may_be_the_password_of_any_user() {
        let basic = |account: &str| format!("Basic {}", BASE64_STANDARD.encode(account));
        let refused = |shown: &str| refused(Some("ri:ght"), "127.0.0.1", false, shown);
        for account in ["patroni:ri:ght", ":ri:ght"] {
            assert_eq!(refused(&basic(account)), None, "{account}");
        }
        for account in ["patroni:right", "ri:ght", "patroni:", "", "patroni:ri:ght "] {
            assert_eq!(refused(&basic(account)), UNKNOWN, "{account}");
        }
        for other in ["Basic ri:ght", "Basic", "Digest ri:ght"] {
            assert_eq!(refused(other), UNKNOWN, "{other}");
        }
        assert_eq!(refused("bearer ri:ght"), None, "the scheme is written in any case");
    }

    #[test]
    fn a_user_is_known_by_the_name_beside_the_token_and_never_by_the_token() {
        let basic = |account: &str| format!("Basic {}", BASE64_STANDARD.encode(account));
        let user = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            let peer = Peer { addr: [127, 0, 0, 1].into(), encrypted: false };
            may_order(Some("right"), Some(&peer), &headers).ok()
        };
        assert_eq!(user(&basic("ann:right")), Some(Some("ann".to_owned())));
        assert_eq!(user("Bearer right"), Some(None));
        assert_eq!(user(&basic("right:right")), Some(None));
        assert_eq!(user(&basic("right:")), None, "refused, and so without a name");
    }
}
