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
            Ok((stream, addr)) => {
                let received = match live.trust().bars(addr.ip()) {
                    Some(why) => Err(format!("it comes from another host, and {why}")),
                    None => receive(live, stream).map_err(|error| error.to_string()),
                };
                if let Err(why) = received {
                    live.complain(&format!("connection from {addr} dropped"), &why);
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
    let connections = &live.hands.acceptor.connections;
    let number = connections.list_stranger(&stream)?.hand_over();
    let served = live.clone();
    match live.threads.spawn("recv", move || receiver::run(&served, stream, number)) {
        true => Ok(()),
        false => {
            drop(connections.take_over(number));
            Err(io::Error::other("no thread for it"))
        }
    }
}
