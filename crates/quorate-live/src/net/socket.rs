//! Socket options, and a write that never waits.

use rustix::net::sockopt;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Linux takes no more.
const IDLE_MAX: Duration = Duration::from_secs(32_767);

/// No delay, and an end to connections whose other side has silently gone: unacknowledged data
/// or unanswered probes for `silence` close it.
pub(crate) fn configure(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let fd = stream.as_fd();
    let probe = Duration::from_secs(1);
    sockopt::set_socket_keepalive(fd, true)?;
    sockopt::set_tcp_keepidle(fd, silence.clamp(probe, IDLE_MAX))?;
    sockopt::set_tcp_keepintvl(fd, probe)?;
    sockopt::set_tcp_keepcnt(fd, 3)?;
    sockopt::set_tcp_user_timeout(fd, silence.as_millis().min(i32::MAX as u128) as u32)?;
    Ok(())
}

/// Writes what fits into the socket's buffer now.
pub(crate) fn send_now(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    use rustix::net::{send, SendFlags};
    loop {
        match send(stream.as_fd(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) => return Ok(sent),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes, waiting for room.
pub(crate) fn send_waiting(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    use rustix::net::{send, SendFlags};
    loop {
        match send(stream.as_fd(), bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => return Ok(sent),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes a thread that waits in `accept` return.
pub(crate) fn wake_acceptor(listener: &std::net::TcpListener) -> io::Result<()> {
    rustix::net::shutdown(listener.as_fd(), rustix::net::Shutdown::Both).map_err(io::Error::from)
}

/// Whether the other side has ended the connection, waiting for that at most `patience`. For
/// connections on which the other side has nothing to say.
pub(crate) fn has_ended(stream: &TcpStream, patience: Duration) -> bool {
    has_news(stream.as_fd(), patience)
}

/// Waits for something to read, or to accept, at most `patience`.
pub(crate) fn has_news(socket: BorrowedFd<'_>, patience: Duration) -> bool {
    use rustix::event::{poll, PollFd, PollFlags, Timespec};
    let timeout =
        Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN | PollFlags::RDHUP)];
    matches!(poll(&mut fds, Some(&timeout)), Ok(ready) if ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_stands_whatever_silence_is_borne() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for silence in [0, 1, 32_768, 86_400, u64::from(u32::MAX)] {
            configure(&stream, Duration::from_secs(silence)).unwrap();
        }
    }
}
