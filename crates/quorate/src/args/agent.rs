//! What `agent` is told.

use super::certificate::Certificate;
use super::logger::address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    about = "Say over HTTP what a member is: for load balancers, orchestrators and monitoring",
    long_about = "Runs beside a member, in the foreground, and says over HTTP what it is, for load balancers, \
        orchestrators and monitoring. It asks the member ten times a second on its group port, as an operator, and \
        answers from memory: at once, also while the member hangs. What is older than --stale, or than the member's \
        election timeout, counts as not known, and not known is never primary.\n\n\
        200 if it is so, 503 if not, with a few words as JSON (GET, HEAD or OPTIONS):\n  \
        /primary (/leader, /master, /)   it leads, and takes writes\n  \
        /read-write                      it takes writes: each server does, unless the group has a single primary\n  \
        /replica?max_lag=2s              it can be read from, does not lead, and lags no more (500: write sets)\n  \
        /read-only?max_lag=2s            it can be read from\n  \
        /readiness?max_lag=2s            the same\n  \
        /health                          its server answers clients, in step with the group\n  \
        /liveness                        this agent runs\n\
        And: /console (the group live, for a browser), /cluster, /history (what the agent saw happen), /metrics \
        (OpenMetrics).\n\
        Orders, from this host or over TLS, with `Authorization: Bearer TOKEN`, or as the password of any user (--token-file):\n  \
        POST /switchover {\"candidate\":\"NAME\"}          hands the leadership to NAME\n  \
        POST /priority {\"name\":\"NAME\",\"priority\":80}   sets NAME's priority\n  \
        POST /pause, POST /resume                       pauses the group, and ends that\n\n\
        The operator needs no right but to look (quorate operator new --read-only), unless it is to take orders.\n\n\
        Example:\n  quorate agent --operator-file /etc/mysql/monitor.operator",
    mut_arg("ssl_cert", |arg| arg.requires("ssl_ca"))
)]
pub struct Agent {
    /// Group address of the member, HOST:PORT
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4567", value_parser = address)]
    pub member: String,

    /// Where HTTP is spoken: it tells how the group is, and of no data
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8008")]
    pub listen: SocketAddr,

    /// This operator's credential (`quorate operator new`) [default: $QUORATE_OPERATOR_FILE, unless there is
    /// --ssl-cert]
    #[arg(long, value_name = "FILE")]
    pub operator_file: Option<PathBuf>,

    /// The agent's own certificate (PEM): it speaks HTTPS then, and nothing else, and takes orders from other hosts, too.
    /// The files are read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub certificate: Certificate,

    /// Seconds from one question to the next
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = seconds)]
    pub interval: f64,

    /// Seconds after which an answer counts for nothing; the member's election timeout, if that is shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub stale: f64,

    /// A file with the token of those who may give orders, which only its owner may read [default: nobody may]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=60.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds between 0.05 and 60".to_owned())
}
