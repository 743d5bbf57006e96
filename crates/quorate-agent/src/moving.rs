//! A connection that ends once nothing has moved on it, in either direction, for too long: whoever is gone without
//! a word, or does not read what it asked for, holds no place.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, Instant, Sleep};

pub struct Moving<S> {
    stream: S,
    silence_max: Duration,
    end: Pin<Box<Sleep>>,
}

impl<S> Moving<S> {
    pub fn new(stream: S, silence_max: Duration) -> Moving<S> {
        Moving { stream, silence_max, end: Box::pin(sleep(silence_max)) }
    }

    /// What came of a step: one that moved nothing is an error once it has been silent for so long.
    fn stepped<T>(
        &mut self,
        context: &mut Context<'_>,
        step: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if step.is_ready() {
            self.end.as_mut().reset(Instant::now() + self.silence_max);
            return step;
        }
        self.end.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.stepped(context, step)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let step = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.stepped(context, step)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It is ready at once where nothing waits: that is no movement.
        let step = Pin::new(&mut self.stream).poll_flush(context);
        match step.is_ready() {
            true => step,
            false => self.stepped(context, step),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let step = Pin::new(&mut self.stream).poll_shutdown(context);
        self.stepped(context, step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{duplex, AsyncReadExt, AsyncWriteExt};

    const SILENCE: Duration = Duration::from_millis(1500);

    #[tokio::test]
    async fn silence_ends_it_and_each_byte_puts_that_off() {
        let (mut other, here) = duplex(64);
        let mut here = Moving::new(here, SILENCE);
        let began = Instant::now();
        for _ in 0..4 {
            tokio::time::sleep(SILENCE / 2).await;
            other.write_all(b"x").await.unwrap();
            assert_eq!(here.read_u8().await.unwrap(), b'x');
        }
        assert!(began.elapsed() >= 2 * SILENCE);
        let error = here.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn who_does_not_read_ends_it_too() {
        let (_other, here) = duplex(64);
        let mut here = Moving::new(here, SILENCE);
        let error = here.write_all(&[0; 65]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
