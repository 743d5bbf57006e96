//! A member that lies about what it writes: it has the group's secret, and no database.

use anyhow::{ensure, Context, Result};
use bytes::Bytes;
use quorate_certify::{process_uuid, Codec, Header, Packed, PartsOf, WriteSetBuilder};
use quorate_consensus::{MemberId, MemberRole};
use quorate_lab::server::secret_in;
use quorate_live::{
    Committed, Frozen, Group, GroupOptions, LogLevel, Observer, SecretOptions, Security,
    StateMachine, View,
};
use quorate_tests::TestCluster;
use std::fs;
use std::net::TcpListener;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

struct Liar {
    group: Group,
    views: Receiver<View>,
}

impl Liar {
    fn join(cluster: &TestCluster) -> Result<Liar> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (addr, dir) = (format!("127.0.0.1:{port}"), cluster.dir.join("liar"));
        fs::create_dir(&dir)?;
        let file = secret_in(&cluster.dir).context("the cluster has no secret")?;
        let status = cluster.status()?;
        let name = status["cluster"].as_str().context("a group without a name")?;
        let options = GroupOptions {
            listen: addr.clone(),
            seeds: cluster.all().into_iter().map(|node| cluster.group_address(node)).collect(),
            name: "liar".into(),
            role: MemberRole::Learner,
            security: Security::Secret(SecretOptions { file, dynamic: false }),
            blank: true,
            ..GroupOptions::new(&dir, name, &addr)
        };
        let (group, _) = Group::open(options, Arc::new(Deaf))?;
        group.wait_joined(PATIENCE)?;
        let (told, views) = channel();
        group.start(Box::new(Empty(told)), &mut |_, _| true)?;
        Ok(Liar { group, views })
    }

    /// What the servers know its process by.
    fn origin(&self) -> Result<u128> {
        let own = self.group.status().member;
        loop {
            let view = self.views.recv_timeout(PATIENCE).context("no view has it")?;
            if let Some(member) = view.members.iter().find(|member| member.id == own) {
                return Ok(process_uuid(own.0, member.incarnation));
            }
        }
    }
}

/// A state machine without a state.
struct Empty(Sender<View>);

impl StateMachine for Empty {
    fn apply(&mut self, entry: Committed) -> Result<(), String> {
        if let Committed::View { view, .. } = entry {
            // The test may have ended.
            let _told = self.0.send(view);
        }
        Ok(())
    }

    fn freeze(&mut self) -> Frozen {
        Box::new(Bytes::new)
    }

    fn restore(&mut self, _index: u64, _snapshot: Bytes) -> Result<(), String> {
        Ok(())
    }
}

struct Deaf;

impl Observer for Deaf {
    fn may_propose(&self, _member: MemberId, _proposal: &Bytes) -> bool {
        true
    }
    fn leader(&self, _term: u64, _leader: Option<MemberId>, _leads: bool) {}
    fn primary(&self, _primary: bool) {}
    fn fatal(&self, _message: String) {}
    fn log(&self, _level: LogLevel, _message: String) {}
}

/// Else one write set would have all others fetch their data from the one that made it.
#[test]
fn data_that_nobody_can_read_is_an_error_of_all_and_no_server_goes() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    cluster.sql(1, "CREATE DATABASE test_liar")?;
    cluster.sql(1, "CREATE TABLE test_liar.t (id INT PRIMARY KEY)")?;
    cluster.wait_level(&cluster.all(), PATIENCE)?;
    let liar = Liar::join(&cluster)?;
    let origin = liar.origin()?;
    let packed = |codec, bytes| Some(Packed { codec, bytes });
    let parts = |stream, count, bytes| Some(PartsOf { stream, count, bytes });
    // Each with a part that goes before it.
    let lies = [
        (None, Header { packed: packed(Codec::Lz4, 4096), ..plain(origin, 1) }),
        (None, Header { packed: packed(Codec::Zstd, u64::MAX), ..plain(origin, 2) }),
        (None, Header { parts: parts(7, 0, 77), ..plain(origin, 3) }),
        (
            Some(Header::part(origin, 100, 8, 0)),
            Header { parts: parts(8, 1, u64::MAX), ..plain(origin, 4) },
        ),
        (
            Some(Header::part(origin, 101, 9, 0)),
            Header { parts: parts(9, 1, 1 << 30), ..plain(origin, 5) },
        ),
        (
            Some(Header {
                packed: packed(Codec::Lz4, 64 << 20),
                ..Header::part(origin, 102, 10, 0)
            }),
            Header { parts: parts(10, 1, 64 << 20), ..plain(origin, 6) },
        ),
    ];
    let count = lies.len();
    for (at, (part, lie)) in (1..).zip(lies) {
        cluster.wait_level(&cluster.all(), PATIENCE)?;
        let last_seen = cluster.node_status(1)?["seqno"].as_i64().context("no seqno")?;
        if let Some(part) = part {
            liar.group.propose(part.serial, with_data(&part))?;
        }
        liar.group.propose(lie.serial, with_data(&Header { last_seen, ..lie }))?;
        cluster.sql(1, &format!("INSERT INTO test_liar.t VALUES ({at})"))?;
    }
    cluster.wait_level(&cluster.all(), PATIENCE)?;
    for node in cluster.all() {
        let log = cluster.error_log(node)?;
        let stands = log.matches("is the group's result: going on").count();
        ensure!(stands == count, "node {node}: {stands} errors stand: {log}");
    }
    liar.group.close();
    cluster.passed()
}

fn plain(origin: u128, serial: u64) -> Header {
    Header::transaction(origin, serial, 0)
}

fn with_data(header: &Header) -> Bytes {
    let mut builder = WriteSetBuilder::new();
    builder.append_data(b"what no codec makes of anything");
    builder.finish(header)
}
