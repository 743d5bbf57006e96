//! Who reaches the group port without the group's secret gets nothing, and disturbs nobody; the secret, or the
//! certificates and their CA, are changed under load.

use anyhow::{ensure, Context, Result};
use quorate_lab::server::{secret_in, Account};
use quorate_live::{query_status, Secret, SecretOptions, Security};
use quorate_tests::writers::{self, create_table, missing, Writers};
use quorate_tests::TestCluster;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// What nobody takes for an outage, on a machine with two busy cores and a busy disk.
const GAP: Duration = Duration::from_secs(3);

fn secret_file(cluster: &TestCluster) -> Result<PathBuf> {
    secret_in(&cluster.dir).context("the cluster has no secret")
}

fn by(file: &Path) -> Security {
    Security::Secret(SecretOptions { file: file.to_owned(), dynamic: false })
}

fn reload(cluster: &TestCluster) -> Result<()> {
    let order = "SET GLOBAL wsrep_provider_options = 'socket.ssl_reload=1'";
    cluster.all().into_iter().try_for_each(|node| cluster.sql(node, order))
}

#[test]
fn without_the_secret_nothing_is_heard_and_nobody_is_disturbed() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    create_table(&cluster)?;
    let own = secret_file(&cluster)?;
    let other = cluster.dir.join("another-secret");
    Secret::new()?.write(&other)?;
    let leader = cluster.leader()?;
    let port = cluster.group_address(leader);
    let known = query_status(&port, &by(&own))?;
    ensure!(known.iter().any(|(name, _)| name == "voters"), "{known:?}");

    let writers = writers::start(&cluster, &cluster.all(), 2, 1);
    writers.wait_acked(Instant::now(), LIMIT)?;
    let begun = Instant::now();
    for security in [by(&other), Security::ThisHost, Security::Insecure] {
        let refused = query_status(&port, &security);
        ensure!(refused.is_err(), "{security:?}: {refused:?}");
    }
    // Who speaks in the clear is told so, and nothing else: no name of a group, no member, no address.
    let mut plain = TcpStream::connect(&port)?;
    plain.set_read_timeout(Some(LIMIT))?;
    plain.write_all(b"QRT\x01hello")?;
    let mut answer = Vec::new();
    let _ended = plain.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    ensure!(answer.contains("demands") && !answer.contains(&port), "{answer}");

    // A flood of connections that say nothing, and some that begin TLS and stop.
    let flood: Vec<TcpStream> = (0..500)
        .filter_map(|at| {
            let mut stream = TcpStream::connect(&port).ok()?;
            if at % 2 == 0 {
                stream.write_all(&[0x16, 3, 1, 1, 0]).ok()?;
            }
            Some(stream)
        })
        .collect();
    writers.wait_acked(Instant::now(), LIMIT)?;
    let heard = query_status(&port, &by(&own));
    ensure!(heard.is_ok(), "the flood keeps those out who have the secret: {heard:?}");
    drop(flood);
    writers.wait_acked(Instant::now(), LIMIT)?;
    let ended = Instant::now();
    let acks = writers.stop();
    let gap = acks.longest_gap_in(begun, ended);
    ensure!(gap < GAP, "a pause of {gap:?}");
    ensure!(acks.failed.is_empty(), "{:?}", acks.failed);
    cluster.wait_level(&cluster.all(), LIMIT)?;
    ensure!(cluster.leader()? == leader, "leadership moved");
    let log = cluster.error_log(leader)?;
    ensure!(log.contains("does not have the group's secret"), "node{leader} says nothing of it");
    for node in cluster.all() {
        ensure!(missing(&cluster, node, &acks.ids())?.is_empty(), "node{node} lacks rows");
    }
    cluster.passed()
}

/// Clients of all nodes write while `change` is made: none of them notices, and all rows are there afterwards, also when
/// all nodes were started again.
fn under_load(
    cluster: &TestCluster,
    change: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<()>,
) -> Result<()> {
    create_table(cluster)?;
    let leader = cluster.leader()?;
    let writers: Writers = writers::start(cluster, &cluster.all(), 2, 1);
    let goes_on = || writers.wait_acked(Instant::now(), LIMIT);
    goes_on()?;
    let begun = Instant::now();
    change(&goes_on)?;
    goes_on()?;
    let ended = Instant::now();
    let acks = writers.stop();
    let gap = acks.longest_gap_in(begun, ended);
    ensure!(acks.failed.is_empty(), "{:?}", acks.failed);
    ensure!(gap < GAP, "a pause of {gap:?}");
    ensure!(cluster.leader()? == leader, "leadership moved");
    cluster.wait_level(&cluster.all(), LIMIT)?;
    cluster.quorate(&["down"])?;
    cluster.quorate(&["up"])?;
    for node in cluster.all() {
        ensure!(missing(cluster, node, &acks.ids())?.is_empty(), "node{node} lacks rows");
    }
    Ok(())
}

/// All nodes take the new one, and none the former one.
fn ensure_changed(cluster: &TestCluster, former: &Security, new: &Security) -> Result<()> {
    for node in cluster.all() {
        let port = cluster.group_address(node);
        ensure!(query_status(&port, former).is_err(), "node{node} takes the former one");
        let heard = query_status(&port, new);
        ensure!(heard.is_ok(), "node{node} does not take the new one: {heard:?}");
    }
    Ok(())
}

#[test]
fn the_secret_is_changed_under_load() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let file = secret_file(&cluster)?;
    let former = cluster.dir.join("former-secret");
    fs::copy(&file, &former)?;
    under_load(&cluster, |goes_on| {
        cluster.quorate(&["secret", "add", &file.display().to_string()])?;
        let both = fs::read_to_string(&file)?;
        let secrets: Vec<&str> = both.lines().filter(|line| !line.starts_with('#')).collect();
        let [old, new] = secrets[..] else { anyhow::bail!("two secrets: {}", secrets.len()) };
        for text in [both.clone(), format!("{new}\n{old}\n"), format!("{new}\n")] {
            fs::write(&file, text)?;
            reload(&cluster)?;
            goes_on()?;
        }
        ensure_changed(&cluster, &by(&former), &by(&file))?;
        // What cannot be used changes nothing.
        let kept = fs::read(&file)?;
        fs::write(&file, "no secret")?;
        ensure!(reload(&cluster).is_err(), "a file without a secret was taken");
        Ok(fs::write(&file, kept)?)
    })?;
    cluster.passed()
}

/// Of one name, which all nodes show; made as an administrator would.
struct Certificates {
    dir: PathBuf,
    account: Account,
}

impl Certificates {
    fn new(dir: PathBuf) -> Result<Self> {
        let account = Account::choose()?;
        fs::create_dir_all(&dir)?;
        account.own(&dir, 0o700)?;
        let made = Self { dir, account };
        let extensions = "basicConstraints=CA:FALSE\nsubjectAltName=DNS:db.example\n";
        fs::write(made.path("extensions"), extensions)?;
        Ok(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn openssl(&self, arguments: &str) -> Result<()> {
        let words = arguments.split_whitespace();
        let output = Command::new("openssl").args(words).current_dir(&self.dir).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// A CA of this name, and a certificate of it: `NAME-cert.pem`, `NAME-key.pem`.
    fn make(&self, name: &str) -> Result<()> {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        self.openssl(&format!(
            "req -x509 -days 99 -subj /CN={name} {key} -keyout {name}-ca-key.pem -out {name}-ca.pem"
        ))?;
        self.openssl(&format!("req -subj /CN=db {key} -keyout {name}-key.pem -out request.pem"))?;
        self.openssl(&format!(
            "x509 -req -days 99 -in request.pem -CA {name}-ca.pem -CAkey {name}-ca-key.pem -CAcreateserial -extfile \
             extensions -out {name}-cert.pem"
        ))
    }

    /// A file that the servers read has the text of these.
    fn put(&self, file: &str, of: &[&str]) -> Result<()> {
        let texts = of.iter().map(|name| fs::read(self.path(name)));
        let texts: Vec<Vec<u8>> = texts.collect::<Result<_, _>>()?;
        fs::write(self.path(file), texts.concat())?;
        self.account.own(&self.path(file), 0o600)
    }

    fn put_certificate(&self, name: &str) -> Result<()> {
        self.put("key.pem", &[&format!("{name}-key.pem")])?;
        self.put("cert.pem", &[&format!("{name}-cert.pem")])
    }

    fn options(&self, ca: &str, name: &str) -> String {
        let path = |file: &str| self.path(file).display().to_string();
        format!(
            "socket.ssl_ca={};socket.ssl_cert={};socket.ssl_key={};quorate.ssl_names=*",
            path(ca),
            path(&format!("{name}cert.pem")),
            path(&format!("{name}key.pem"))
        )
    }

    /// Of who trusts one CA, and shows a certificate of one.
    fn security(&self, ca: &str, name: &str) -> Result<Security> {
        let options = self.options(&format!("{ca}-ca.pem"), &format!("{name}-"));
        Security::in_options(&options)?.context("certificates")
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn the_certificates_and_their_ca_are_changed_under_load() -> Result<()> {
    let cluster = TestCluster::unstarted(3, None)?;
    let files = Certificates::new(cluster.dir.with_extension("certificates"))?;
    files.make("former")?;
    files.make("new")?;
    files.put("ca.pem", &["former-ca.pem"])?;
    files.put_certificate("former")?;
    cluster.start("", &["--provider-options", &files.options("ca.pem", "")])?;
    under_load(&cluster, |goes_on| {
        files.put("ca.pem", &["former-ca.pem", "new-ca.pem"])?;
        reload(&cluster)?;
        goes_on()?;
        files.put_certificate("new")?;
        reload(&cluster)?;
        goes_on()?;
        files.put("ca.pem", &["new-ca.pem"])?;
        reload(&cluster)?;
        goes_on()?;
        // What does not fit together changes nothing.
        files.put("key.pem", &["former-key.pem"])?;
        ensure!(reload(&cluster).is_err(), "a key of another certificate was taken");
        files.put_certificate("new")
    })?;
    let (former, new) = (files.security("new", "former")?, files.security("new", "new")?);
    ensure_changed(&cluster, &former, &new)?;
    cluster.passed()
}

#[test]
fn the_servers_allow_list_is_honoured() -> Result<()> {
    let cluster = TestCluster::up(1, "")?;
    let (port, secret) = (cluster.group_address(1), by(&secret_file(&cluster)?));
    ensure!(query_status(&port, &secret).is_ok(), "an empty list lets everybody in");
    // What the server said of an address is remembered for a second.
    let becomes = |admitted: bool, why: &str| {
        let end = Instant::now() + LIMIT;
        while query_status(&port, &secret).is_ok() != admitted {
            ensure!(Instant::now() < end, "{why}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    };
    cluster.sql(1, "INSERT INTO mysql.wsrep_allowlist VALUES ('192.0.2.1')")?;
    becomes(false, "127.0.0.1 is not on the list")?;
    cluster.sql(1, "INSERT INTO mysql.wsrep_allowlist VALUES ('127.0.0.1')")?;
    becomes(true, "127.0.0.1 is on the list")?;
    ensure!(cluster.error_log(1)?.contains("wsrep_allowlist"), "the log does not say why");
    cluster.passed()
}
