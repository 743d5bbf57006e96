//! A program of another maker that a test runs beside its cluster: a balancer, an exporter, Prometheus.

use crate::await_that;
use anyhow::{ensure, Context, Result};
use quorate_lab::server::find_program;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// It ends with this.
pub struct Program {
    child: Child,
    /// Where it listens, on this host.
    pub port: u16,
}

impl Program {
    /// Starts it, and waits until it listens at that port. Debian's package has the name of the program.
    pub fn start(
        name: &str,
        port: u16,
        configure: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Result<Program> {
        let found = find_program(name);
        let path = found.with_context(|| format!("{name} is missing: apt-get install {name}"))?;
        let child = configure(&mut beside(&path)).spawn();
        let mut program =
            Program { child: child.with_context(|| format!("starting {name}"))?, port };
        await_that(name, || {
            let ended = program.child.try_wait()?;
            ensure!(ended.is_none(), "{name} has ended: {ended:?}");
            Ok(program.connect().is_ok())
        })?;
        Ok(program)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    /// The body of its answer to a GET; an error unless that is 200.
    pub fn get(&self, path: &str) -> Result<String> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // In HTTP/1.0 it comes in one piece.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").context("it does not speak HTTP")?;
        ensure!(head.split(' ').nth(1) == Some("200"), "GET {path}: {text}");
        Ok(body.to_owned())
    }
}

/// A program that ends with the test, also if that is killed.
pub fn beside(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

impl Drop for Program {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
