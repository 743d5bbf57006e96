//! The thread that accepts connections.

use super::receiver;
use crate::live::Live;
use crate::net::socket;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(live: &Arc<Live>) {
    let acceptor = &live.hands.acceptor;
    loop {
        let accepted = acceptor.accept();
        if acceptor.connections.is_closed() {
            return;
        }
        match accepted {
            Ok((_, addr)) if !live.trust().admits(addr.ip()) => {
                let why =
                    "it comes from another host, and nothing protects this node's group port: set \
                           quorate.secret_file on all nodes";
                live.complain(&format!("connection from {addr} dropped"), why);
            }
            Ok((stream, addr)) => {
                if let Err(error) = receive(live, stream) {
                    live.complain(&format!("connection from {addr} dropped"), &error.to_string());
                }
            }
            Err(error) => {
                live.complain("cannot accept connections", &error.to_string());
                // Out of file descriptors, most likely: do not spin until some are free.
                if !live.pause(Duration::from_millis(100)) {
                    return;
                }
            }
        }
    }
}

fn receive(live: &Arc<Live>, stream: TcpStream) -> io::Result<()> {
    socket::configure(&stream, live.options.suspect_timeout)?;
    let served = live.clone();
    match live.threads.spawn("recv", move || receiver::run(&served, stream)) {
        true => Ok(()),
        false => Err(io::Error::other("no thread for it")),
    }
}
