//! The console: a page with its style and scripts, and what it shows, as server-sent events.

use crate::followers::{Ending, Follower};
use crate::http::{Serving, Shared};
use crate::memory::Told;
use crate::serve::Peer;
use axum::extract::State;
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::future::{select, Either};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::task::spawn_blocking;

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

/// What is sent to one that follows, until its place is another's.
struct Followed {
    serving: Arc<Serving>,
    news: Receiver<Arc<str>>,
    /// What is kept, before what comes.
    first: Option<Vec<Arc<str>>>,
    told: Told,
    place: Follower,
    is_over: bool,
}

/// `history` first, with the samples that are kept and all that has happened; then `sample` each second, each with what
/// has happened since; `lost` at the end, if newer pages have all places.
async fn follow(
    State(serving): Shared,
    Extension(peer): Extension<Peer>,
    Extension(connection): Extension<Ending>,
) -> Response {
    let place = serving.followers.admit(peer.addr, connection);
    let (kept, news) = serving.samples.follow();
    let (first, told, is_over) = (Some(kept), Told::default(), false);
    let followed = Followed { serving, news, first, told, place, is_over };
    let stream = futures_util::stream::unfold(followed, |followed| async {
        let (event, followed) = followed.next().await?;
        Some((Ok::<Event, Infallible>(event), followed))
    });
    // No other request comes on a connection that may be ended.
    let close = [(header::CONNECTION, "close")];
    (close, Sse::new(stream).keep_alive(KeepAlive::default())).into_response()
}

impl Followed {
    /// `None` ends the connection; the page makes another, and begins anew.
    async fn next(mut self) -> Option<(Event, Followed)> {
        if self.is_over {
            return None;
        }
        let Some(kept) = self.first.take() else {
            let sample = match select(&mut self.place.lost, pin!(self.news.recv())).await {
                Either::Left(_) => None,
                Either::Right((sample, _)) => Some(sample.ok()?),
            };
            let Some(sample) = sample else {
                self.is_over = true;
                return Some((Event::default().event("lost").data("newer pages follow"), self));
            };
            return Some((self.event("sample", &[sample]), self));
        };
        let turn = self.serving.followers.turn().await?;
        // Megabytes, perhaps: whoever asks meanwhile does not wait for them.
        let made = spawn_blocking(move || {
            let event = self.event("history", &kept);
            drop(turn);
            (event, self)
        });
        made.await.ok()
    }

    /// These samples, which are JSON, and what has happened since the last event.
    fn event(&mut self, kind: &str, samples: &[Arc<str>]) -> Event {
        let (events, told) = self.serving.memory.history_from(self.told);
        self.told = told;
        let (samples, events) = (samples.join(","), Value::Array(events));
        let orders = self.serving.token.is_some();
        let body = format!(r#"{{"samples":[{samples}],"events":{events},"orders":{orders}}}"#);
        Event::default().event(kind).data(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followers::Followers;
    use crate::memory::Memory;
    use crate::samples::{Node, Sample, SAMPLES_MAX};
    use crate::serve::tests::{ask, code, connect, serving_of, start, start_serving};
    use crate::serve::Limits;
    use crate::verdict::tests::report;
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    /// In a debug build, on a machine that does other things. Made on the thread that answers, the messages take seconds.
    const ANSWER_MAX: Duration = Duration::from_secs(2);

    /// An agent that has seen much of a large group.
    fn start_full() -> SocketAddr {
        start_full_for(Followers::default())
    }

    fn start_full_for(followers: Followers) -> SocketAddr {
        let memory = Memory::new(Duration::from_secs(60));
        for _ in 0..500 {
            memory.not_answered("connection refused".into(), true);
            memory.answered(report(true, "single"), Instant::now());
        }
        let serving = Serving { followers: Arc::new(followers), ..serving_of(memory) };
        let node = Node { state: "Synced".into(), seqno: Some(1 << 40), ..Node::default() };
        let sample = Sample::of(&report(true, "single"), true, &BTreeMap::new());
        let sample = Sample { nodes: vec![node; 9], ..sample };
        (0..SAMPLES_MAX).for_each(|_| serving.samples.add(&sample));
        start_serving(serving, Limits::default())
    }

    fn follow(agent: SocketAddr) -> TcpStream {
        let mut socket = connect(agent);
        write!(socket, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        socket
    }

    /// Up to the end of the first event.
    fn first_event(socket: TcpStream) -> String {
        let lines = BufReader::new(socket).lines().map_while(Result::ok);
        let event = lines.skip_while(|line| !line.starts_with("event:"));
        event.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_page_begins_with_all_that_is_kept() {
        let event = first_event(follow(start_full()));
        let data = event.strip_prefix("event: history\ndata: ").unwrap();
        let told: Value = serde_json::from_str(data).unwrap();
        let length = |part: &str| told[part].as_array().unwrap().len();
        assert_eq!((length("samples"), length("events")), (SAMPLES_MAX, 1000));
        assert_eq!(
            (&told["samples"][7]["nodes"][8]["state"], &told["orders"]),
            (&"Synced".into(), &true.into())
        );
    }

    #[test]
    fn the_oldest_page_makes_room_for_a_new_one_and_is_told_so() {
        let agent = start_full_for(Followers::new(1));
        let mut oldest = BufReader::new(follow(agent));
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert!(oldest.read_line(&mut line).unwrap() > 0, "it ended at once");
        }
        assert!(first_event(follow(agent)).starts_with("event: history"), "it has a place");
        let mut rest = String::new();
        oldest.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("event: lost\n"), "{rest}");
    }

    #[test]
    fn a_page_that_reads_nothing_ends_with_its_place() {
        let agent = start_full_for(Followers::new(1));
        let mut oldest = follow(agent);
        let mut head = [0; 15];
        oldest.read_exact(&mut head).unwrap();
        assert_eq!(code(&String::from_utf8_lossy(&head)), "200");
        assert!(first_event(follow(agent)).starts_with("event: history"));
        let ended = Instant::now();
        // Less than all, or a reset.
        let _rest = oldest.read_to_end(&mut Vec::new());
        assert!(ended.elapsed() < Duration::from_secs(10), "{:?}", ended.elapsed());
    }

    #[test]
    fn health_checks_do_not_wait_for_consoles_that_connect() {
        let agent = start_full();
        let end = Instant::now() + Duration::from_secs(2);
        let consoles: Vec<_> = (0..6)
            .map(|_| {
                thread::spawn(move || {
                    let mut seen = 0;
                    while Instant::now() < end {
                        seen +=
                            usize::from(first_event(follow(agent)).starts_with("event: history"));
                    }
                    seen
                })
            })
            .collect();
        let mut took = Vec::new();
        while Instant::now() < end {
            let began = Instant::now();
            assert_eq!(code(&ask(connect(agent), "GET /primary", "").unwrap()), "200");
            took.push(began.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
        let seen: usize = consoles.into_iter().map(|console| console.join().unwrap()).sum();
        took.sort();
        let median = took[took.len() / 2];
        assert!(seen >= 6, "only {seen} consoles connected");
        assert!(median < ANSWER_MAX, "{median:?} while {seen} consoles connected");
    }

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
