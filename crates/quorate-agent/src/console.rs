//! The console: a page with its style and scripts, and what it shows, as server-sent events.

use crate::http::{Serving, Shared};
use crate::memory::Told;
use crate::samples::Sample;
use axum::extract::State;
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Where each file is, what it is, and what is in it.
const FILES: [(&str, &str, &str); 5] = [
    ("/console", HTML, include_str!("console/console.html")),
    ("/console/console.css", CSS, include_str!("console/console.css")),
    ("/console/console.js", JS, include_str!("console/console.js")),
    ("/console/charts.js", JS, include_str!("console/charts.js")),
    ("/console/orders.js", JS, include_str!("console/orders.js")),
];

/// The page asks nobody but this agent, and runs nothing but its own scripts.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub fn routes() -> Router<Arc<Serving>> {
    let mut routes = Router::new().route("/events", get(follow));
    for (path, kind, text) in FILES {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
            (header::CACHE_CONTROL, "no-store"),
        ];
        routes = routes.route(path, get(move || async move { (headers, text) }));
    }
    routes
}

/// What is sent to one that follows.
struct Followed {
    serving: Arc<Serving>,
    news: Receiver<Arc<Sample>>,
    /// What is kept, before what comes.
    first: Option<Vec<Arc<Sample>>>,
    told: Told,
}

/// `history` first, with the samples that are kept and all that has happened; then `sample` each second, each with what
/// has happened since.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{ask, connect, start};
    use crate::serve::Limits;
    use std::collections::BTreeSet;

    #[test]
    fn the_page_and_all_that_it_names_is_served_and_may_run() {
        let agent = start(None, Limits::default());
        let (_, _, page) = FILES[0];
        let links = page.split(['"', '\'']).filter(|text| text.starts_with('/'));
        let named: BTreeSet<&str> = links.collect();
        assert_eq!(named, FILES[1..].iter().map(|(path, _, _)| *path).collect());
        for (path, kind, text) in FILES {
            let answer = ask(connect(agent), &format!("GET {path}"), "").unwrap();
            assert!(answer.contains(&format!("content-type: {kind}\r\n")), "{answer}");
            assert!(answer.contains(CONTENT_POLICY) && answer.ends_with(text), "{path}");
        }
        assert!(!page.contains("<style") && !page.contains(" style="), "the policy forbids it");
        assert!(!page.contains(" onclick="), "the policy forbids it");
    }

    #[test]
    fn the_page_finds_the_elements_that_it_looks_for() {
        let (_, _, page) = FILES[0];
        for (path, _, script) in &FILES[2..] {
            for rest in script.split("$(\"").skip(1) {
                let id = rest.split('"').next().unwrap();
                assert!(page.contains(&format!("id=\"{id}\"")), "{path} looks for {id}");
            }
        }
    }
}
