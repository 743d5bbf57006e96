//! What arrives over HTTP and is read here, for fuzzers: whatever it is, nothing panics, and nothing but the token is
//! taken for the token. Not part of the interface.

use crate::authority::may_order;
use crate::carry_out::Switchover;
use crate::lag::LagMax;
use crate::schedule;
use crate::serve::Peer;
use axum::http::{header, HeaderMap, HeaderValue};
use base64::prelude::{Engine, BASE64_STANDARD};
use std::net::Ipv4Addr;
use std::time::UNIX_EPOCH;

const TOKEN: &str = "token";

/// The text as each of what requests have: a lag, a time, an order, the token.
pub fn request(text: &str) {
    if LagMax::try_from(text.to_owned()).is_ok() {
        // A number without a unit is one of bytes there; what has one is the same.
        assert!(LagMax::of_patroni(text).is_some(), "{text:?}");
    }
    if let Ok(at) = schedule::time(text, UNIX_EPOCH) {
        assert!(at >= UNIX_EPOCH && !schedule::utc(at).is_empty());
    }
    let _refused = serde_json::from_str::<Switchover>(text);
    if let Ok(value) = HeaderValue::from_str(text) {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
        let peer = Peer { addr: Ipv4Addr::LOCALHOST.into(), encrypted: false };
        let ordered = may_order(Some(TOKEN), Some(&peer), &headers).is_ok();
        assert!(!ordered || shows_token(text), "{text:?}");
    }
}

fn shows_token(text: &str) -> bool {
    let shown = text.split_once(' ').map_or("", |(_, shown)| shown);
    let account = BASE64_STANDARD.decode(shown.trim()).unwrap_or_default();
    shown == TOKEN || account.ends_with(format!(":{TOKEN}").as_bytes())
}
