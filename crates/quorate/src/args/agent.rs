//! What `agent` is told.

use super::certificate::Certificate;
use super::logger::address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    about = "Report a member's state over HTTP, for load balancers and monitoring",
    long_about = "Runs beside a member, in the foreground, and reports the member's state over HTTP, for load \
        balancers, orchestrators and monitoring. It asks the member ten times a second on its group port, as an \
        operator. It answers from memory: at once, even while the member hangs. An answer of the member that is older \
        than --stale, or than the member's election timeout, does not count: the member is then unknown, and an \
        unknown member is never primary.\n\n\
        Each path answers 200 if the following holds, and 503 if not, with a short JSON object (GET, HEAD or \
        OPTIONS):\n  \
        /primary (/leader, /master, /)   the member leads, and takes writes\n  \
        /read-write                      it takes writes: each server does, unless the group has a single primary\n  \
        /replica?max_lag=2s              it can be read from, does not lead, and does not lag by more than that\n  \
        /read-only?max_lag=2s            it can be read from, and does not lag by more than that\n  \
        /readiness?max_lag=2s            the same\n  \
        /health                          its server answers clients, and is in step with the group\n  \
        /liveness                        this agent runs\n\
        max_lag is a time (2s, 200ms), a number of write sets (500), or a size (16MB).\n\n\
        Other paths: /console (the group live, for a browser), /cluster (what the member knows about the group), \
        /history (what happened), /metrics (OpenMetrics).\n\n\
        Orders are accepted from this host or over TLS, with the token of --token-file: as `Authorization: Bearer \
        TOKEN`, or as the password of any user:\n  \
        POST /switchover {\"candidate\":\"NAME\"}          hands the leadership over to NAME\n  \
        DELETE /switchover                              drops a switchover that is scheduled (scheduled_at)\n  \
        POST /priority {\"name\":\"NAME\",\"priority\":80}   sets NAME's priority\n  \
        POST /pause, POST /resume                       pauses the group, and resumes it\n\n\
        A read-only credential is enough (quorate operator new --read-only), unless the agent is to take orders.\n\n\
        Example:\n  quorate agent --operator-file /etc/quorate/agent.operator",
    mut_arg("ssl_cert", |arg| arg.requires("ssl_ca"))
)]
pub struct Agent {
    /// Group address of the member, HOST:PORT
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4567", value_parser = address)]
    pub member: String,

    /// The address to listen on. Whoever reaches it can see the state of the group, but no data
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8008")]
    pub listen: SocketAddr,

    /// The agent's credential (`quorate operator new`) [default: $QUORATE_OPERATOR_FILE, unless --ssl-cert is given]
    #[arg(long, value_name = "FILE")]
    pub operator_file: Option<PathBuf>,

    /// The agent's own certificate (PEM). With it the agent speaks only HTTPS, and takes orders from other hosts, too.
    /// The files are read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub certificate: Certificate,

    /// Seconds between two questions to the member
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = seconds)]
    pub interval: f64,

    /// Answers older than this, in seconds, do not count. If the member's election timeout is shorter, that counts
    /// instead
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub stale: f64,

    /// The file with the token of those who may give orders. Only its owner may be able to read it [default: nobody may
    /// give orders]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=60.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds between 0.05 and 60".to_owned())
}
