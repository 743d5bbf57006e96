//! Real connections: over TLS, in the clear, too many, too slow.

use super::*;
use crate::http::{routes, Serving};
use crate::journal::Refusals;
use crate::memory::Memory;
use crate::samples::Samples;
use crate::schedule::Schedule;
use crate::tls::tests::{Folder, OTHER, OWN};
use quorate_live::port::Operating;
use quorate_live::OperatorIdentity;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream as Socket;
use std::thread;
use std::time::Instant;

pub(crate) const TOKEN: &str = "a token that is long enough";
const PATIENCE: Duration = Duration::from_secs(20);

/// An agent beside no member.
pub(crate) fn start(tls: Option<Tls>, limits: Limits) -> SocketAddr {
    start_of(Memory::new(Duration::from_secs(1)), tls, limits)
}

/// An agent that knows this, and does not ask.
pub(crate) fn start_of(memory: Memory, tls: Option<Tls>, limits: Limits) -> SocketAddr {
    let serving = Serving { tls: tls.map(Arc::new), ..serving_of(memory) };
    start_serving(serving, limits)
}

/// What such an agent has, beside no member.
pub(crate) fn serving_of(memory: Memory) -> Serving {
    Serving {
        memory: Arc::new(memory),
        samples: Arc::new(Samples::new()),
        operating: Arc::new(Operating::new(&OperatorIdentity::Anonymous).unwrap()),
        member: "127.0.0.1:1".to_owned(),
        token: Some(TOKEN.to_owned()),
        tls: None,
        followers: Arc::default(),
        schedule: Schedule::default(),
        refusals: Refusals::default(),
    }
}

pub(crate) fn start_serving(serving: Serving, limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let tls = serving.tls.clone();
    thread::spawn(move || serve(listener, routes(Arc::new(serving)), tls, limits));
    address
}

pub(crate) fn connect(address: SocketAddr) -> Socket {
    let socket = Socket::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// What is answered, up to the end of the connection.
pub(crate) fn ask(mut stream: impl Read + Write, request: &str, more: &str) -> io::Result<String> {
    write!(stream, "{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{more}\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

/// A client that believes this certificate and no other.
fn believing(folder: &Folder, name: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.files(name).cert).unwrap()).unwrap();
    let provider = Arc::new(rustls_graviola::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn over_tls(
    address: SocketAddr,
    client: &Arc<ClientConfig>,
    request: &str,
    more: &str,
) -> io::Result<String> {
    let session = ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap();
    ask(StreamOwned::new(session, connect(address)), request, more)
}

pub(crate) fn code(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn with_a_certificate_all_is_answered_over_tls_and_nothing_in_the_clear() {
    let folder = Folder::new("tls");
    let tls = Tls::read(folder.make(OWN)).unwrap();
    let address = start(Some(tls), Limits::default());
    let client = believing(&folder, OWN);
    let over_tls = |request: &str, more: &str| over_tls(address, &client, request, more).unwrap();
    assert_eq!(code(&over_tls("GET /liveness", "")), "200");
    assert_eq!(code(&over_tls("GET /primary", "")), "503", "there is no member");
    let metrics = over_tls("GET /metrics", "");
    assert!(metrics.contains("quorate_up 0"), "{metrics}");
    assert!(metrics.contains("quorate_agent_certificate_days 29"), "made for thirty: {metrics}");

    let body = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let order = |token: &str| {
        let shown = format!("Authorization: Bearer {token}\r\n{body}\r\n{{}}");
        over_tls("POST /switchover", &shown)
    };
    assert_eq!(code(&order("something else")), "401");
    assert_eq!(code(&order(TOKEN)), "502", "it may, and there is no member");

    let plain = ask(connect(address), "GET /liveness", "").unwrap();
    assert_eq!(code(&plain), "400");
    assert!(plain.ends_with("TLS is spoken here: ask https://\n"), "{plain}");
    let broken = ask(connect(address), "\x16", "").unwrap();
    assert!(!broken.starts_with("HTTP"), "{broken}");
    assert_eq!(code(&over_tls("GET /liveness", "")), "200");
}

#[test]
fn files_that_are_replaced_are_read_again_and_bad_ones_are_not_used() {
    let folder = Folder::new("renewed");
    let (own, other) = (folder.make(OWN), folder.make(OTHER));
    let old = believing(&folder, OWN);
    let address = start(Some(Tls::read(own.clone()).unwrap()), Limits::default());
    let is_shown =
        |client: &Arc<ClientConfig>| over_tls(address, client, "GET /liveness", "").is_ok();
    assert!(is_shown(&old) && !is_shown(&believing(&folder, OTHER)));

    // The certificate alone does not fit the key: what was there stays.
    std::fs::rename(&other.cert, &own.cert).unwrap();
    thread::sleep(Duration::from_millis(1100));
    assert!(is_shown(&old));
    std::fs::rename(&other.key, &own.key).unwrap();
    thread::sleep(Duration::from_millis(1100));
    assert!(!is_shown(&old) && is_shown(&believing(&folder, OWN)));
}

fn is_open(socket: &mut Socket) -> bool {
    socket.set_nonblocking(true).unwrap();
    matches!(socket.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn open_of(sockets: &mut [Socket]) -> usize {
    sockets.iter_mut().filter_map(|socket| is_open(socket).then_some(())).count()
}

#[test]
fn a_flood_keeps_nobody_from_asking_and_ends_by_itself() {
    let limits = Limits {
        open_max: 8,
        head_time: Duration::from_secs(2),
        silence_max: Duration::from_secs(4),
        ..Limits::default()
    };
    let address = start(None, limits);
    let mut flood: Vec<Socket> = (0..40).map(|_| connect(address)).collect();
    let during = ask(connect(address), "GET /liveness", "").unwrap();
    assert_eq!(code(&during), "200");
    let open = open_of(&mut flood);
    assert!(open <= limits.open_max, "{open} are open");
    let begun = Instant::now();
    while flood.iter_mut().any(is_open) {
        assert!(begun.elapsed() < PATIENCE, "those that ask nothing end");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(code(&ask(connect(address), "GET /liveness", "").unwrap()), "200");
}

#[test]
fn of_those_in_their_handshake_the_oldest_make_room() {
    let folder = Folder::new("handshakes");
    let tls = Tls::read(folder.make(OWN)).unwrap();
    let address = start(Some(tls), Limits { handshakes_max: 2, ..Limits::default() });
    let mut begun: Vec<Socket> = (0..4)
        .map(|_| {
            let mut socket = connect(address);
            socket.write_all(&[TLS_BEGINS]).unwrap();
            socket
        })
        .collect();
    let client = believing(&folder, OWN);
    assert_eq!(code(&over_tls(address, &client, "GET /liveness", "").unwrap()), "200");
    // The client took one of the two places.
    let until = Instant::now() + PATIENCE;
    while open_of(&mut begun) > 1 {
        assert!(Instant::now() < until, "{} of four are open", open_of(&mut begun));
        thread::yield_now();
    }
    assert_eq!(open_of(&mut begun), 1);
}

#[tokio::test]
async fn what_a_host_that_is_gone_does_not_acknowledge_ends_its_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    configure(&stream, Duration::from_secs(60));
    assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream), Ok(60_000));
}

#[test]
fn a_head_comes_in_time_however_slowly_it_is_sent() {
    let limits = Limits { head_time: Duration::from_secs(5), ..Limits::default() };
    let address = start(None, limits);
    let mut slow = connect(address);
    let sent = "GET /liveness HTTP/1.1\r\nHost: a\r\n".bytes().take_while(|byte| {
        thread::sleep(Duration::from_millis(400));
        slow.write_all(&[*byte]).is_ok()
    });
    assert!(sent.count() < 20, "it was cut off");

    // Two requests on one connection, the second within the time; it ends when there is no third.
    let mut kept = connect(address);
    for _ in 0..2 {
        kept.write_all(b"GET /liveness HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let mut answers = String::new();
    kept.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
}
