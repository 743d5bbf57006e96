//! What the machine itself takes: the floor under any commit latency.

use anyhow::Result;
pub use quorate_bench::meter::sync_time;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const MESSAGE_BYTES: usize = 256;

/// Median round trip of a small message between two threads over loopback.
pub fn round_trip_time(count: usize) -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; MESSAGE_BYTES];
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut message = [1; MESSAGE_BYTES];
    let times = (0..count)
        .map(|_| {
            let begin = Instant::now();
            stream.write_all(&message)?;
            stream.read_exact(&mut message)?;
            Ok(begin.elapsed())
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    drop(stream);
    echo.join().expect("the echo thread panicked")?;
    Ok(median(times))
}

pub fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("no NaN is measured"));
    values[values.len() / 2]
}
