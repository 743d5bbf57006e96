//! An agent beside a member: says over HTTP what that member is, for load balancers, orchestrators and
//! monitoring, and takes a few orders.
//!
//! One thread asks the member on its group port, again and again, as an operator ([`watch`]); what it answers is
//! kept ([`memory`]), and every request is answered from there: in no time, also while the member hangs. What is
//! too old counts as not known, and not known is never primary.
//!
//! * [`verdict`]: what a report means for whoever wants to send writes or reads there, and [`lag`]: how far its server
//!   is behind. Pure.
//! * [`history`]: what has changed from report to report. Pure.
//! * [`past`]: what the group's own log says has happened.
//! * [`memory`]: the last report, and what came of those before.
//! * [`metrics`]: the same as OpenMetrics.
//! * [`watch`]: a thread that asks a member.
//! * [`samples`], [`survey`]: how all members were in the last ten minutes, for the console.
//! * [`http`], [`patroni`]: the paths, with the meaning and status codes that Patroni's users know.
//! * [`orders`]: what is ordered, [`authority`]: by whom, [`schedule`]: what is to be done later, [`carry_out`]: how it
//!   is done, [`journal`]: what is noted of it.
//! * [`console`]: the page that shows the group live, and [`followers`]: who may look, if many want to.
//! * [`serve`]: connections, from the socket to the paths; [`connections`], [`moving`] and [`tls`]: how many, how
//!   long, and with which certificate. [`places`]: a number of them, of which none can take all.

#![forbid(unsafe_code)]

mod authority;
mod carry_out;
mod connections;
mod console;
#[cfg(test)]
mod dashboard;
mod followers;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod http;
mod journal;
mod lag;
mod memory;
mod metrics;
mod moving;
mod orders;
mod past;
mod patroni;
mod places;
mod samples;
mod schedule;
mod serve;
mod survey;
mod tls;
mod verdict;
mod watch;

pub use tls::TlsFiles;

use memory::Memory;
use quorate_live::port::Operating;
use quorate_live::GroupError;
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
    /// An older answer is none; nor is one that is older than the member's election timeout, if it says that.
    pub stale: Duration,
    /// Who shows this may give orders; none: nobody may. From other hosts with `tls` only.
    pub token: Option<String>,
    /// With it, HTTPS is spoken, and nothing else.
    pub tls: Option<TlsFiles>,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Tls(#[from] GroupError),
    #[error(
        "cannot listen at {address}: {source}. Another process uses this port, or the address is not this host's: \
         stop that process, or change --listen. The member is not affected"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the system has no thread to give (see the limits of the process): {0}")]
    Threads(io::Error),
}

/// A running agent.
pub struct Agent {
    listener: TcpListener,
    _watch: watch::Watch,
    serving: Arc<http::Serving>,
}

impl Agent {
    /// Binds, and begins to ask the member.
    ///
    /// # Errors
    /// The certificate cannot be used, the address cannot be listened on, or there is no thread.
    pub fn start(options: Options, operating: Operating) -> Result<Agent, StartError> {
        let tls = options.tls.map(tls::Tls::read).transpose()?.map(Arc::new);
        let address = options.listen;
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source| StartError::Listen { address, source })?;
        let memory = Arc::new(Memory::new(options.stale).within_election_timeout());
        let (operating, samples) = (Arc::new(operating), Arc::new(Samples::new()));
        let watch = watch::Watch::start(
            &options.member,
            options.interval,
            operating.clone(),
            memory.clone(),
            watch::Asks::StatusAndPast,
        )
        .map_err(StartError::Threads)?;
        survey::start(memory.clone(), operating.clone(), samples.clone())
            .map_err(StartError::Threads)?;
        let serving = Arc::new(http::Serving {
            memory,
            samples,
            operating,
            member: options.member,
            token: options.token,
            tls,
            followers: Arc::default(),
            schedule: schedule::Schedule::default(),
            refusals: journal::Refusals::default(),
        });
        schedule::start(serving.clone()).map_err(StartError::Threads)?;
        Ok(Agent { listener, _watch: watch, serving })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests, on this thread, for ever.
    pub fn serve(self) -> io::Result<()> {
        let tls = self.serving.tls.clone();
        let routes = http::routes(self.serving);
        serve::serve(self.listener, routes, tls, serve::Limits::default())
    }
}
