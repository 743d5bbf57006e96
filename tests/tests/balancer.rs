//! Writers behind a real HAProxy, which asks the agents who the primary is: how long they stand still when that
//! one is killed, hangs, or hands over, in a group with a single primary. Nothing acknowledged is lost.

use anyhow::{bail, Context, Result};
use mysql::{Conn, OptsBuilder};
use quorate_lab::server::find_program;
use quorate_tests::agent::Agent;
use quorate_tests::probe::median;
use quorate_tests::writers::{create_table, missing, Client, Door, Writers};
use quorate_tests::{await_that, sized, TestCluster};
use rustix::process::Signal;
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const WRITERS: usize = 8;
/// Of a client that is connected to a server which hangs: HAProxy ends its connection sooner.
const PATIENCE: Duration = Duration::from_secs(10);
const CALM: Duration = Duration::from_secs(1);
/// Far above what full rounds measure: the machine may be busy with other things.
const WORST: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Kill,
    Stop,
    Switchover,
}

impl Fault {
    /// What half of the rounds have to keep, where there are ten.
    fn limit(self) -> Duration {
        Duration::from_millis(match self {
            Fault::Kill => 1000,
            Fault::Stop => 2000,
            Fault::Switchover => 300,
        })
    }
}

struct Balancer {
    child: Child,
    port: u16,
}

impl Balancer {
    fn start(cluster: &TestCluster, agents: &[Agent]) -> Result<Balancer> {
        // The last of the cluster's own block of ports.
        let port = cluster.base_port + 99;
        let servers = cluster.all().into_iter().zip(agents).map(|(node, agent)| {
            let (mysql, http) = (cluster.base_port + 10 * node, agent.address.rsplit(':').next());
            format!(
                "    server n{node} 127.0.0.1:{mysql} check port {}\n",
                http.unwrap_or_default()
            )
        });
        let config = format!(
            "defaults\n    mode tcp\n    timeout connect 1s\n    timeout client 1m\n    timeout server 1m\n\
             listen write\n    bind 127.0.0.1:{port}\n    option httpchk GET /primary\n    \
             http-check expect status 200\n    default-server inter 100ms fall 2 rise 1 \
             on-marked-down shutdown-sessions\n{}",
            servers.collect::<String>()
        );
        let path = cluster.dir.join("haproxy.cfg");
        std::fs::write(&path, config)?;
        let child = Command::new(
            find_program("haproxy").context("haproxy is missing: apt-get install haproxy")?,
        )
        .arg("-db")
        .arg("-f")
        .arg(&path)
        .spawn()?;
        let balancer = Balancer { child, port };
        await_that("HAProxy", || Ok(TcpStream::connect(("127.0.0.1", port)).is_ok()))?;
        Ok(balancer)
    }

    fn door(&self) -> Door {
        let port = self.port;
        Arc::new(move |timeout| {
            Conn::new(
                OptsBuilder::new()
                    .ip_or_hostname(Some("127.0.0.1"))
                    .tcp_port(port)
                    .user(Some("writer"))
                    .prefer_socket(false)
                    .tcp_connect_timeout(Some(timeout))
                    .read_timeout(Some(timeout))
                    .write_timeout(Some(timeout)),
            )
        })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn writers_behind_haproxy_follow_the_primary() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    cluster.start("", &["--provider-options", "quorate.primary_mode=single"])?;
    create_table(&cluster)?;
    let primary = cluster.leader()?;
    cluster.sql(primary, "CREATE USER writer@'127.0.0.1'")?;
    cluster.sql(primary, "GRANT ALL ON written.* TO writer@'127.0.0.1'")?;
    let agents: Vec<Agent> =
        cluster.all().into_iter().map(|node| Agent::of(&cluster, node)).collect::<Result<_>>()?;
    let balancer = Balancer::start(&cluster, &agents)?;
    for fault in [Fault::Kill, Fault::Stop, Fault::Switchover] {
        let rounds = sized(1, 10);
        let mut gaps = (0..rounds)
            .map(|round| gap(&cluster, &balancer, fault, round + 1))
            .collect::<Result<Vec<Duration>>>()?;
        gaps.sort();
        println!("{fault:?}: p50 {:.2?}, worst {:.2?}", median(gaps.clone()), gaps[gaps.len() - 1]);
        assert!(gaps[gaps.len() - 1] < WORST, "{fault:?}: {gaps:?}");
        let full = rounds >= 10;
        assert!(!full || median(gaps.clone()) <= fault.limit(), "{fault:?}: {gaps:?}");
    }
    cluster.passed()
}

/// One fault of the primary under load: the longest time without an acknowledgement.
fn gap(cluster: &TestCluster, balancer: &Balancer, fault: Fault, round: u64) -> Result<Duration> {
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    let primary = cluster.leader()?;
    let client = Client { doors: vec![balancer.door()], timeout: PATIENCE, pause: Duration::ZERO };
    let run = 100 * (fault as u64 + 1) + round;
    let writers = Writers::start(vec![client; WRITERS], run);
    thread::sleep(CALM);
    let begun = Instant::now();
    match fault {
        Fault::Kill => drop(cluster.quorate(&["kill", &primary.to_string()])?),
        Fault::Stop => cluster.signal(primary, Signal::STOP)?,
        Fault::Switchover => drop(cluster.quorate(&["switchover"])?),
    }
    thread::sleep(3 * CALM);
    let acks = writers.stop();
    match fault {
        Fault::Kill => drop(cluster.quorate(&["start", &primary.to_string()])?),
        Fault::Stop => cluster.signal(primary, Signal::CONT)?,
        Fault::Switchover => {}
    }
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    for node in cluster.all() {
        let lost = missing(cluster, node, &acks.ids())?;
        if !lost.is_empty() {
            bail!("{fault:?}: node{node} lacks {} acknowledged rows", lost.len());
        }
    }
    let last = acks.ids().len();
    let gap = acks.longest_gap_in(begun, begun + 3 * CALM);
    println!("{fault:?}: {last} rows acknowledged, {} failed, gap {gap:.2?}", acks.failed.len());
    acks.first_sent_after(begun + CALM).context("nothing was acknowledged after the fault")?;
    Ok(gap)
}
