//! What is answered where. Paths and status codes are those of Patroni where it has the same, so that a load
//! balancer's configuration works with other names of hosts.
//!
//! Invariants:
//! - each answer but those to orders ([`crate::orders`]) comes from memory, and waits for nobody. Only histories, which
//!   may be long, wait for each other, and are made on other threads than the one that answers health checks;
//! - what is told of the group as it is now (role, state, leader, term) is not from a report that is too old to count.

use crate::followers::Followers;
use crate::journal::Refusals;
use crate::lag::{self, LagMax};
use crate::memory::{Known, Memory};
use crate::patroni::Cluster;
use crate::samples::Samples;
use crate::schedule::Schedule;
use crate::tls::Tls;
use crate::{console, metrics, orders, verdict};
use axum::extract::{Query, State};
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use quorate_live::port::{Operating, Report};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::sync::Arc;
use tokio::task::spawn_blocking;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub struct Serving {
    pub memory: Arc<Memory>,
    pub samples: Arc<Samples>,
    pub operating: Arc<Operating>,
    pub member: String,
    pub token: Option<String>,
    pub tls: Option<Arc<Tls>>,
    pub followers: Arc<Followers>,
    pub schedule: Schedule,
    pub refusals: Refusals,
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
        .route("/readiness", any(read_only))
        .route("/liveness", any(liveness))
        .route("/cluster", get(cluster))
        .route("/history", get(history))
        .route("/metrics", get(scrape))
        .merge(orders::routes())
        .merge(console::routes())
        .with_state(serving)
}

#[derive(Deserialize)]
struct Wanted {
    max_lag: Option<LagMax>,
    /// As Patroni takes it.
    lag: Option<String>,
}

impl Wanted {
    fn lag_max(&self) -> Option<LagMax> {
        self.max_lag.or_else(|| self.lag.as_deref().and_then(LagMax::of_patroni))
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
    judged(&serving, |report| verdict::serves(report) && lag::is_within(report, wanted.lag_max()))
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
    let fresh = known.fresh.as_deref();
    json!({
        "known": fresh.is_some(),
        "age_ms": age_ms,
        "silence": known.silence,
        "name": report.map(|report| &report.own.name),
        "role": fresh.map_or("unknown", verdict::role),
        "state": fresh.map(verdict::state),
        "leader": fresh.and_then(Report::leading).map(|leader| &leader.name),
        "term": fresh.map(|report| report.term),
        "seqno": server.map(|server| server.seqno),
        "lag_write_sets": report.map(|report| lag::write_sets(report)),
        "lag_ms": server.map(|server| server.lag_ms),
    })
}

/// All that the member knows of the group, and what Patroni would say of it.
#[derive(Serialize)]
struct Shown<'a> {
    age_ms: u64,
    report: &'a Report,
    #[serde(flatten)]
    cluster: Cluster,
}

async fn cluster(State(serving): Shared) -> Response {
    let known = serving.memory.known();
    let Some((report, age)) = &known.last else {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(shown(&known))).into_response();
    };
    let mut cluster = Cluster::of(report, known.fresh.is_some());
    cluster.scheduled_switchover = serving.schedule.shown();
    Json(Shown { age_ms: age.as_millis() as u64, report, cluster }).into_response()
}

async fn history(State(serving): Shared) -> Response {
    let turn = serving.followers.turn().await;
    let made = spawn_blocking(move || {
        let answer = Json(serving.memory.history()).into_response();
        drop(turn);
        answer
    });
    made.await.unwrap_or_else(failed)
}

fn failed(error: impl ToString) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}

async fn scrape(State(serving): Shared) -> Response {
    let days = serving.tls.as_ref().and_then(|tls| tls.days_left());
    match metrics::render(&serving.memory.known(), days) {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{ask, code, connect, serving_of, start_of, start_serving};
    use crate::serve::Limits;
    use crate::verdict::tests::{report, voter};
    use futures_util::FutureExt;
    use quorate_live::port::MemberReport;
    use std::thread;
    use std::time::{Duration, Instant};

    /// A replica that lags by ten write sets, of 1000 bytes each, since a second and a half.
    fn replica() -> Memory {
        let mut report = report(false, "single");
        (report.own.log.first_index, report.own.log.bytes, report.own.last_index) = (1, 50_000, 50);
        let memory = Memory::new(Duration::from_secs(60));
        memory.answered(report, Instant::now());
        memory
    }

    #[test]
    fn a_lag_is_given_as_here_or_as_with_patroni() {
        let agent = start_of(replica(), None, Limits::default());
        for (path, expected) in [
            ("/replica", "200"),
            ("/replica?max_lag=10", "200"),
            ("/replica?max_lag=9", "503"),
            ("/replica?max_lag=soon", "400"),
            ("/replica?lag=16MB", "200"),
            ("/replica?lag=10000", "200"),
            ("/replica?lag=9999", "503"),
            ("/replica?lag=9kB", "503"),
            ("/replica?lag=", "200"),
            ("/replica?lag=whatever&replication_state=streaming", "200"),
            ("/replica?lag=9kB&max_lag=2s", "200"),
            ("/read-only?lag=9kB", "503"),
            ("/readiness?lag=9kB&mode=apply", "503"),
            ("/readiness", "200"),
            ("/health?lag=9kB", "200"),
        ] {
            for method in ["GET", "HEAD", "OPTIONS"] {
                let answer = ask(connect(agent), &format!("{method} {path}"), "").unwrap();
                assert_eq!(code(&answer), expected, "{method} {path}");
            }
        }
    }

    /// The body of an answer.
    fn body(answer: &str) -> Value {
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    #[test]
    fn health_checks_do_not_wait_for_histories_which_wait_for_their_turn() {
        let memory = Memory::new(Duration::from_secs(60));
        memory.not_answered("connection refused".into(), true);
        memory.answered(report(true, "single"), Instant::now());
        let serving = serving_of(memory);
        let followers = serving.followers.clone();
        let next_turn = || followers.turn().now_or_never();
        let turns: Vec<_> = std::iter::from_fn(next_turn).collect();
        assert!(!turns.is_empty());
        let agent = start_serving(serving, Limits::default());
        let asked = thread::spawn(move || ask(connect(agent), "GET /history", "").unwrap());
        thread::sleep(Duration::from_millis(300));
        assert_eq!(code(&ask(connect(agent), "GET /primary", "").unwrap()), "200");
        assert!(!asked.is_finished(), "others have all turns");
        drop(turns);
        let answer = asked.join().unwrap();
        assert_eq!(code(&answer), "200");
        assert_eq!(body(&answer).as_array().map(Vec::len), Some(2), "{answer}");
    }

    #[test]
    fn what_is_too_old_or_cut_off_is_not_told_as_what_is() {
        fn told(change: fn(&mut Report), gone: bool) -> [Value; 4] {
            let mut report = report(true, "single");
            (report.term, report.leader) = (7, Some("a".into()));
            report.members = vec![MemberReport { name: "n1".into(), ..voter("a") }];
            change(&mut report);
            let memory = Memory::new(Duration::from_secs(60));
            memory.answered(report, Instant::now());
            if gone {
                memory.not_answered("connection refused".into(), true);
            }
            let told = shown(&memory.known());
            assert_eq!((&told["name"], &told["seqno"]), (&json!("n1"), &json!(90)), "{told}");
            ["role", "state", "leader", "term"].map(|field| told[field].clone())
        }
        let well = [json!("primary"), json!("Synced"), json!("n1"), json!(7)];
        assert_eq!(told(|_| {}, false), well);
        assert_eq!(told(|_| {}, true), [json!("unknown"), Value::Null, Value::Null, Value::Null]);
        let cut_off = told(|report| report.own.primary = false, false);
        assert_eq!(cut_off[..2], [json!("none"), json!("no majority")]);
    }

    #[test]
    fn the_cluster_is_told_in_full_and_as_patroni_tells_it() {
        let agent = start_of(replica(), None, Limits::default());
        let told = body(&ask(connect(agent), "GET /cluster", "").unwrap());
        assert!(told["age_ms"].is_u64() && told["report"]["own"]["name"] == "n1", "{told}");
        assert!(told["members"].is_array() && told["pause"] == false, "{told}");
    }
}
