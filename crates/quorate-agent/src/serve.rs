//! Connections, from the socket to the routes.
//!
//! Invariants:
//! - a connection holds its place only as long as it says something: TLS and the head of a request have
//!   `head_time` each, from the connection or the end of the request before, and something moves each
//!   `silence_max`; what is sent is acknowledged within that, too: a host that is gone takes nothing, however much
//!   the system would keep for it. How many there are: [`crate::connections`];
//! - with a certificate nothing is answered in the clear, but that TLS is spoken here;
//! - each request carries who sent it, as [`Peer`], and what ends its connection, as [`Ending`].

use crate::connections::Connections;
use crate::followers::Ending;
use crate::moving::Moving;
use crate::places::Places;
use crate::tls::Tls;
use axum::Router;
use futures_util::future::{select, Either};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{service_fn, Service};
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

/// Of a request's head, which nobody needs long.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The first byte of everything that begins as TLS does: a handshake record.
const TLS_BEGINS: u8 = 0x16;
/// Without file descriptors none can be accepted: those that end give theirs back.
const NO_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(100);

/// How much is given to those who connect.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub open_max: usize,
    /// Of those that are open, in their TLS handshake: whoever comes waits for no more than so many signatures.
    pub handshakes_max: usize,
    pub head_time: Duration,
    pub silence_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            open_max: 256,
            handshakes_max: 16,
            head_time: Duration::from_secs(10),
            silence_max: Duration::from_secs(60),
        }
    }
}

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub addr: IpAddr,
    pub encrypted: bool,
}

/// What all connections have in common.
struct Common {
    routes: Router,
    tls: Option<Arc<Tls>>,
    /// With each comes what ends its handshake, if another one takes the place.
    handshakes: Arc<Places<Arc<Notify>>>,
    limits: Limits,
}

/// On this thread, for ever.
pub fn serve(
    listener: TcpListener,
    routes: Router,
    tls: Option<Arc<Tls>>,
    limits: Limits,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handshakes = Places::new(limits.handshakes_max);
    let common = Arc::new(Common { routes, tls, handshakes, limits });
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let connections = Connections::new(limits.open_max);
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    connections.admit(from.ip(), common.clone().run(stream, from))
                }
                Err(error) if is_of_one(&error) => {}
                Err(_) => sleep(NO_DESCRIPTORS_PAUSE).await,
            }
        }
    })
}

/// Whoever wanted to connect has gone already.
fn is_of_one(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl Common {
    /// A connection from its begin to its end. How it ends is the other side's matter alone.
    async fn run(self: Arc<Self>, stream: TcpStream, from: SocketAddr) {
        configure(&stream, self.limits.silence_max);
        let addr = from.ip();
        let Some(tls) = &self.tls else {
            return self.http(stream, Peer { addr, encrypted: false }).await;
        };
        let mut first = [0];
        match timeout(self.limits.head_time, stream.peek(&mut first)).await {
            Ok(Ok(1)) if first[0] == TLS_BEGINS => {}
            Ok(Ok(1)) => return self.refuse_plain(stream).await,
            _ => return,
        }
        if let Some(stream) = self.handshake(tls, stream, addr).await {
            self.http(stream, Peer { addr, encrypted: true }).await;
        }
    }

    async fn handshake(
        &self,
        tls: &Tls,
        stream: TcpStream,
        addr: IpAddr,
    ) -> Option<TlsStream<TcpStream>> {
        let given_up = Arc::new(Notify::new());
        let (_held, gone) = self.handshakes.admit(addr, |held| (given_up.clone(), held));
        if let Some(gone) = gone {
            gone.notify_one();
        }
        // Others that came meanwhile take their places first: who loses its own signs nothing.
        yield_now().await;
        let its_end = pin!(given_up.notified());
        let handshake = pin!(timeout(self.limits.head_time, tls.acceptor().accept(stream)));
        match select(its_end, handshake).await {
            Either::Right((Ok(Ok(stream)), _)) => Some(stream),
            _ => None,
        }
    }

    async fn http<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let routes = TowerToHyperService::new(self.routes.clone());
        let ended = Ending::default();
        let ending = ended.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(ending.clone());
            routes.call(request)
        });
        let stream = TokioIo::new(Moving::new(stream, self.limits.silence_max));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.head_time);
        let served = http.max_buf_size(HEAD_BYTES_MAX).serve_connection(stream, service);
        let _ended = select(served, pin!(ended.notified())).await;
    }

    /// In the words that it speaks itself.
    async fn refuse_plain(&self, stream: TcpStream) {
        const WHY: &str = "TLS is spoken here: ask https://\n";
        let mut stream = Moving::new(stream, self.limits.head_time);
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{WHY}",
            WHY.len()
        );
        // What is not read makes the socket's end a reset, which may overtake the answer.
        let mut request = [0; 4096];
        let told = async {
            let _read = stream.read(&mut request).await?;
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await
        };
        let _told: io::Result<()> = told.await;
    }
}

/// Without delay, and with an end once what is sent has not been acknowledged for so long.
fn configure(stream: &TcpStream, silence_max: Duration) {
    // Slower without, or open for longer, and nothing else.
    let _set = stream.set_nodelay(true);
    let silence_ms = silence_max.as_millis().try_into().unwrap_or(u32::MAX);
    let _set = set_tcp_user_timeout(stream, silence_ms);
}

#[cfg(test)]
pub(crate) mod tests;
