//! What is answered where. Paths and status codes are those of Patroni where it has the same, so that a load
//! balancer's configuration works with other names of hosts.
//!
//! Invariant: each answer but those to orders ([`crate::orders`]) comes from memory, and waits for nobody.

use crate::memory::{Known, Memory, Told};
use crate::metrics;
use crate::orders::{priority, switchover};
use crate::samples::{Sample, Samples};
use crate::verdict::{self, LagMax};
use axum::extract::{Query, State};
use axum::http::{header, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use quorate_live::port::{Operating, Report};
use serde::Deserialize;
use serde_json::{json, Value};
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub struct Serving {
    pub memory: Arc<Memory>,
    pub samples: Arc<Samples>,
    pub operating: Arc<Operating>,
    pub member: String,
    pub token: Option<String>,
}

pub type Shared = State<Arc<Serving>>;

pub fn routes(serving: Arc<Serving>) -> Router {
    let mut routes = Router::new();
    for path in ["/", "/primary", "/leader", "/master"] {
        routes = routes.route(path, any(primary));
    }
    routes
        .route("/read-write", any(read_write))
        .route("/replica", any(replica))
        .route("/read-only", any(read_only))
        .route("/health", any(health))
        .route("/readiness", any(health))
        .route("/liveness", any(liveness))
        .route("/cluster", get(cluster))
        .route("/history", get(history))
        .route("/metrics", get(scrape))
        .route("/switchover", post(switchover))
        .route("/priority", post(priority))
        .route("/console", get(console))
        .route("/events", get(follow))
        .with_state(serving)
}

#[derive(Deserialize)]
struct Wanted {
    max_lag: Option<LagMax>,
    /// As Patroni calls it.
    lag: Option<LagMax>,
}

impl Wanted {
    fn lag_max(&self) -> Option<LagMax> {
        self.max_lag.or(self.lag)
    }
}

async fn primary(State(serving): Shared) -> Response {
    judged(&serving, verdict::is_primary)
}

async fn read_write(State(serving): Shared) -> Response {
    judged(&serving, verdict::takes_writes)
}

async fn replica(State(serving): Shared, Query(wanted): Query<Wanted>) -> Response {
    judged(&serving, |report| verdict::is_replica(report, wanted.lag_max()))
}

async fn read_only(State(serving): Shared, Query(wanted): Query<Wanted>) -> Response {
    judged(&serving, |report| {
        verdict::serves(report) && verdict::lags_at_most(report, wanted.lag_max())
    })
}

async fn health(State(serving): Shared) -> Response {
    judged(&serving, verdict::serves)
}

/// Of the agent: that it answers is all. A server that hangs is no reason to end what says so.
async fn liveness(State(serving): Shared) -> Response {
    (StatusCode::OK, Json(shown(&serving.memory.known()))).into_response()
}

fn judged(serving: &Serving, judge: impl FnOnce(&Report) -> bool) -> Response {
    let known = serving.memory.known();
    let good = known.fresh.as_ref().is_some_and(|report| judge(report));
    let code = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(shown(&known))).into_response()
}

/// What is told with each verdict.
fn shown(known: &Known) -> Value {
    let age_ms = known.last.as_ref().map(|(_, age)| age.as_millis() as u64);
    let report = known.last.as_ref().map(|(report, _)| report);
    let server = report.and_then(|report| report.own.server.as_ref());
    json!({
        "known": known.fresh.is_some(),
        "age_ms": age_ms,
        "silence": known.silence,
        "name": report.map(|report| &report.own.name),
        "role": known.fresh.as_ref().map_or("unknown", |report| verdict::role(report)),
        "state": server.map(|server| &server.state),
        "leader": report.and_then(|report| report.leading()).map(|leader| &leader.name),
        "term": report.map(|report| report.term),
        "seqno": server.map(|server| server.seqno),
        "lag_write_sets": report.map(|report| verdict::lag(report)),
        "lag_ms": server.map(|server| server.lag_ms),
    })
}

/// All that the member knows of the group.
async fn cluster(State(serving): Shared) -> Response {
    let known = serving.memory.known();
    match &known.last {
        Some((report, age)) => {
            let body = json!({ "age_ms": age.as_millis() as u64, "report": **report });
            Json(body).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, Json(shown(&known))).into_response(),
    }
}

async fn history(State(serving): Shared) -> Response {
    Json(serving.memory.history()).into_response()
}

async fn scrape(State(serving): Shared) -> Response {
    match metrics::render(&serving.memory.known()) {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The page asks nobody but this agent.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

async fn console() -> Response {
    let headers =
        [(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY), (header::CACHE_CONTROL, "no-store")];
    (headers, Html(include_str!("console.html"))).into_response()
}

/// What is sent to one that follows.
struct Followed {
    serving: Arc<Serving>,
    news: Receiver<Arc<Sample>>,
    /// What is kept, before what comes.
    first: Option<Vec<Arc<Sample>>>,
    told: Told,
}

/// Server-sent events: `history` first, with the samples that are kept and all that has happened; then `sample` each
/// second, each with what has happened since.
async fn follow(State(serving): Shared) -> Response {
    let (kept, news) = serving.samples.follow();
    let followed = Followed { serving, news, first: Some(kept), told: Told::default() };
    let stream = futures_util::stream::unfold(followed, |mut followed| async {
        let told = followed.next().await?;
        Some((told, followed))
    });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}

impl Followed {
    /// `None` ends the connection; the page makes another, and begins anew.
    async fn next(&mut self) -> Option<Result<Event, axum::Error>> {
        let (kind, samples) = match self.first.take() {
            Some(kept) => ("history", kept),
            None => ("sample", vec![self.news.recv().await.ok()?]),
        };
        let (events, told) = self.serving.memory.history_from(self.told);
        self.told = told;
        let orders = self.serving.token.is_some();
        let body = json!({ "samples": samples, "events": events, "orders": orders });
        Some(Event::default().event(kind).json_data(body))
    }
}
