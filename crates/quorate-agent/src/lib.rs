//! An agent beside a member: says over HTTP what that member is, for load balancers, orchestrators and
//! monitoring, and takes a few orders.
//!
//! One thread asks the member on its group port, again and again, as an operator ([`watch`]); what it answers is
//! kept ([`memory`]), and every request is answered from there: in no time, also while the member hangs. What is
//! too old counts as not known, and not known is never primary.
//!
//! * [`verdict`]: what a report means for whoever wants to send writes or reads there. Pure.
//! * [`history`]: what has changed from report to report. Pure.
//! * [`memory`]: the last report, and what came of those before.
//! * [`metrics`]: the same as OpenMetrics.
//! * [`watch`]: a thread that asks a member.
//! * [`samples`], [`survey`]: how all members were in the last ten minutes, for the console.
//! * [`http`]: the paths, with the meaning and status codes that Patroni's users know.

#![forbid(unsafe_code)]

#[cfg(test)]
mod dashboard;
mod history;
mod http;
mod memory;
mod metrics;
mod samples;
mod survey;
mod verdict;
mod watch;

use memory::Memory;
use quorate_live::port::Operating;
use samples::Samples;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Options {
    /// Group address of the member, `host:port`.
    pub member: String,
    /// Where HTTP is spoken.
    pub listen: SocketAddr,
    /// How often the member is asked.
    pub interval: Duration,
    /// An older answer is none.
    pub stale: Duration,
    /// Who shows this may give orders; none: nobody may.
    pub token: Option<String>,
}

/// A running agent.
pub struct Agent {
    listener: TcpListener,
    _watch: watch::Watch,
    serving: http::Serving,
}

impl Agent {
    /// Binds, and begins to ask the member.
    ///
    /// # Errors
    /// The address cannot be listened on, or there is no thread.
    pub fn start(options: Options, operating: Operating) -> io::Result<Agent> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let memory = Arc::new(Memory::new(options.stale));
        let (operating, samples) = (Arc::new(operating), Arc::new(Samples::new()));
        let watch = watch::Watch::start(
            &options.member,
            options.interval,
            operating.clone(),
            memory.clone(),
        )?;
        survey::start(memory.clone(), operating.clone(), samples.clone())?;
        let (member, token) = (options.member, options.token);
        let serving = http::Serving { memory, samples, operating, member, token };
        Ok(Agent { listener, _watch: watch, serving })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests, on this thread, for ever.
    pub fn serve(self) -> io::Result<()> {
        http::serve(self.listener, self.serving)
    }
}
