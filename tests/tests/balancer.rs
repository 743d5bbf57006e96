//! Writers behind a real HAProxy, which asks the agents who the primary is: how long they stand still when that
//! one is killed, hangs, or hands over, in a group with a single primary. Nothing acknowledged is lost, and a former
//! primary acknowledges nothing that is sent to it once the new one has acknowledged something.

use anyhow::{bail, ensure, Context, Result};
use mysql::{Conn, OptsBuilder};
use quorate_tests::agent::Agent;
use quorate_tests::probe::median;
use quorate_tests::program::Program;
use quorate_tests::writers::{
    create_table, missing, sign_rows, signed, Ack, Client, Door, Writers,
};
use quorate_tests::{sized, TestCluster};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const WRITERS: usize = 8;
/// Of a client that is connected to a server which hangs: HAProxy ends its connection sooner.
const PATIENCE: Duration = Duration::from_secs(10);
const CALM: Duration = Duration::from_secs(1);
/// How long writers are watched after a fault, and until they write again.
const WATCHED: Duration = Duration::from_secs(3);
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// Between two health checks of HAProxy; two that fail count.
const INTER: Duration = Duration::from_millis(100);
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

fn balancer(cluster: &TestCluster, agents: &[Agent]) -> Result<Program> {
    // The last of the cluster's own block of ports.
    let port = cluster.base_port + 99;
    let servers = cluster.all().into_iter().zip(agents).map(|(node, agent)| {
        let (mysql, http) = (cluster.base_port + 10 * node, agent.address.rsplit(':').next());
        format!("    server n{node} 127.0.0.1:{mysql} check port {}\n", http.unwrap_or_default())
    });
    let config = format!(
        "defaults\n    mode tcp\n    timeout connect 1s\n    timeout client 1m\n    timeout server 1m\n\
         listen write\n    bind 127.0.0.1:{port}\n    option httpchk GET /primary\n    \
         http-check expect status 200\n    default-server inter {}ms fall 2 rise 1 \
         on-marked-down shutdown-sessions\n{}",
        INTER.as_millis(),
        servers.collect::<String>()
    );
    let path = cluster.dir.join("haproxy.cfg");
    std::fs::write(&path, config)?;
    Program::start("haproxy", port, |command| command.arg("-db").arg("-f").arg(&path))
}

/// To whatever listens there.
fn door(port: u16) -> Door {
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

#[test]
fn writers_behind_haproxy_follow_the_primary() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    cluster.start("", &["--provider-options", "quorate.primary_mode=single"])?;
    create_table(&cluster)?;
    let primary = cluster.leader()?;
    sign_rows(&cluster, primary)?;
    cluster.sql(primary, "CREATE USER writer@'127.0.0.1'")?;
    cluster.sql(primary, "GRANT ALL ON written.* TO writer@'127.0.0.1'")?;
    let agents: Vec<Agent> =
        cluster.all().into_iter().map(|node| Agent::of(&cluster, node)).collect::<Result<_>>()?;
    let haproxy = balancer(&cluster, &agents)?;
    let mut measured = Vec::new();
    for fault in [Fault::Kill, Fault::Stop, Fault::Switchover] {
        let gaps = (1..=sized(1, 10)).map(|round| gap(&cluster, haproxy.port, fault, round));
        let mut gaps = gaps.collect::<Result<Vec<Duration>>>()?;
        gaps.sort();
        measured.push((fault, gaps));
    }
    println!("| fault | rounds | p50 | worst | inter |\n|---|---|---|---|---|");
    for (fault, gaps) in &measured {
        let (rounds, p50, worst) = (gaps.len(), median(gaps.clone()), gaps[gaps.len() - 1]);
        println!("| {fault:?} | {rounds} | {p50:.2?} | {worst:.2?} | {INTER:?} |");
    }
    for (fault, gaps) in measured {
        assert!(gaps[gaps.len() - 1] < WORST, "{fault:?}: {gaps:?}");
        let kept = gaps.len() < 10 || median(gaps.clone()) <= fault.limit();
        assert!(kept, "{fault:?}: {gaps:?}");
    }
    cluster.passed()
}

/// One fault of the primary under load: the longest time without an acknowledgement.
fn gap(cluster: &TestCluster, port: u16, fault: Fault, round: u64) -> Result<Duration> {
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    let primary = cluster.leader()?;
    let client = Client { doors: vec![door(port)], timeout: PATIENCE, pause: Duration::ZERO };
    let run = 100 * (fault as u64 + 1) + round;
    let (calm, writers) = (Instant::now(), Writers::start(vec![client; WRITERS], run));
    thread::sleep(CALM);
    let begun = Instant::now();
    match fault {
        Fault::Kill => drop(cluster.quorate(&["kill", &primary.to_string()])?),
        Fault::Stop => cluster.signal(primary, Signal::STOP)?,
        Fault::Switchover => drop(cluster.quorate(&["switchover"])?),
    }
    writers.wait_acked(Instant::now(), WRITE_LIMIT).with_context(|| format!("{fault:?}"))?;
    thread::sleep(WATCHED.saturating_sub(begun.elapsed()));
    let watched = Instant::now();
    if fault == Fault::Stop {
        // While clients write: it does not know yet that another one leads.
        cluster.signal(primary, Signal::CONT)?;
        thread::sleep(CALM);
    }
    let acks = writers.stop();
    if fault == Fault::Kill {
        cluster.quorate(&["start", &primary.to_string()])?;
    }
    cluster.wait_level(&cluster.all(), Duration::from_secs(60))?;
    for node in cluster.all() {
        let lost = missing(cluster, node, &acks.ids())?;
        if !lost.is_empty() {
            bail!("{fault:?}: node{node} lacks {} acknowledged rows", lost.len());
        }
    }
    let rows = signed(cluster, cluster.leader()?, &acks, calm)?;
    let led = primaries(&rows).with_context(|| format!("{fault:?}"))?;
    ensure!(led.len() > 1 && led[0] == format!("node{primary}"), "{fault:?}: {led:?} took writes");
    let gap = acks.longest_gap_in(begun, watched);
    println!(
        "{fault:?}: {} rows acknowledged, {} failed, gap {gap:.2?}",
        rows.len(),
        acks.failed.len()
    );
    Ok(gap)
}

/// Who acknowledged rows, the first one first: each takes over from the one before. What was sent to that one when the
/// next had acknowledged a row, it must not have acknowledged. (What was sent before, it may have committed before,
/// whenever its answer came.)
fn primaries(rows: &[(Ack, String)]) -> Result<Vec<&str>> {
    // When each one's first row was acknowledged, and its last one sent.
    let mut seen: BTreeMap<&str, (Instant, Instant)> = BTreeMap::new();
    for (ack, server) in rows {
        let (first, last) = seen.entry(server).or_insert((ack.at, ack.sent));
        *first = ack.at.min(*first);
        *last = ack.sent.max(*last);
    }
    let mut order: Vec<_> = seen.into_iter().collect();
    order.sort_by_key(|(_, (first, _))| *first);
    for pair in order.windows(2) {
        let [(old, (_, last)), (new, (first, _))] = pair else { unreachable!("pairs") };
        let late = last.saturating_duration_since(*first);
        ensure!(late.is_zero(), "{old} took a write {late:.2?} after {new} had acknowledged one");
    }
    Ok(order.into_iter().map(|(server, _)| server).collect())
}

#[test]
fn a_write_of_the_former_primary_after_one_of_the_new_one_is_noticed() {
    let begin = Instant::now();
    let row = |server: &str, sent: u64, at: u64| {
        let time = |ms| begin + Duration::from_millis(ms);
        (Ack { id: sent, sent: time(sent), at: time(at) }, server.to_owned())
    };
    let handed_over = [row("node2", 1, 2), row("node2", 3, 9), row("node1", 4, 8)];
    assert_eq!(primaries(&handed_over).unwrap(), ["node2", "node1"]);
    let both = [&handed_over[..], &[row("node2", 9, 10)]].concat();
    let refused = primaries(&both).unwrap_err().to_string();
    assert_eq!(refused, "node2 took a write 1.00ms after node1 had acknowledged one");
    let on = [&handed_over[..], &[row("node3", 8, 12)]].concat();
    assert_eq!(primaries(&on).unwrap(), ["node2", "node1", "node3"]);
}
