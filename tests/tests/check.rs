//! `quorate check` on servers that run: what it finds, and what it says of servers that it cannot ask.

use anyhow::{Context, Result};
use quorate_lab::server::secret_in;
use quorate_tests::cluster::shown;
use quorate_tests::{await_that, TestCluster};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::process::Output;
use std::time::Duration;

const LEVEL_LIMIT: Duration = Duration::from_secs(60);

fn check(cluster: &TestCluster, more: &[&str]) -> Result<Output> {
    let servers: Vec<String> =
        cluster.all().into_iter().map(|node| address(cluster, node)).collect();
    let password = cluster.dir.join("password");
    fs::write(&password, "it's only read\n")?;
    let mut arguments = vec!["check", "--user", "checker", "--password-file"];
    let password = password.display().to_string();
    arguments.push(&password);
    arguments.extend(servers.iter().map(String::as_str));
    arguments.extend(more);
    cluster.try_quorate(&arguments)
}

fn address(cluster: &TestCluster, node: u16) -> String {
    format!("127.0.0.1:{}", cluster.base_port + 10 * node)
}

/// What the findings of a JSON document say, a line each.
fn whats(findings: &Value) -> String {
    let all = findings.as_array().into_iter().flatten();
    all.filter_map(|finding| finding["what"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn servers_are_checked_by_an_account_that_only_reads() -> Result<()> {
    let cluster = TestCluster::up(2, "")?;
    cluster.sql(1, "CREATE USER checker IDENTIFIED BY 'it''s only read'")?;
    cluster.sql(1, "GRANT SELECT ON *.* TO checker")?;
    cluster.wait_level(&cluster.all(), LEVEL_LIMIT)?;

    let folder = cluster.dir.display().to_string();
    let good = check(&cluster, &["--disk", &folder, "--json"])?;
    let text = shown(&good);
    assert_eq!(good.status.code(), Some(0), "{text}");
    let found: Value = serde_json::from_slice(&good.stdout)?;
    let servers = found["servers"].as_array().into_iter().flatten();
    for part in servers.chain([&found]) {
        for finding in part["findings"].as_array().into_iter().flatten() {
            // How long a sync takes is up to whatever else writes to this disk.
            let of_disk = finding["what"].as_str().is_some_and(|what| what.contains("disk takes"));
            assert!(of_disk || finding["weight"] == "note", "{text}");
        }
    }
    let between = whats(&found["findings"]);
    assert!(between.contains("disk takes"), "{text}");
    assert!(between.contains("2 servers survive the loss of as many as 1 do"), "{text}");

    cluster.sql(1, "CREATE DATABASE shop")?;
    cluster.sql(1, "CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE=MyISAM")?;
    let kept = "(id INT PRIMARY KEY) ENGINE=Aria WITH SYSTEM VERSIONING";
    cluster.sql(1, &format!("CREATE TABLE shop.kept {kept}"))?;
    cluster.sql(1, "CREATE TABLE shop.events (what TEXT)")?;
    cluster.sql(1, "CREATE TABLE shop.torn (id INT PRIMARY KEY)")?;
    cluster.sql(2, "SET GLOBAL sql_mode = 'ANSI'")?;
    cluster.wait_level(&cluster.all(), LEVEL_LIMIT)?;
    fs::write(cluster.node_dir(1).join("data/shop/torn.frm"), "no definition of a table")?;
    cluster.sql(1, "FLUSH LOCAL TABLES")?;
    let bad = check(&cluster, &["--json"])?;
    assert_eq!(bad.status.code(), Some(1), "{}", shown(&bad));
    let found: Value = serde_json::from_slice(&bad.stdout)?;
    let first = whats(&found["servers"][0]["findings"]);
    assert!(first.contains("shop.kept (Aria), shop.old (MyISAM)"), "{first}");
    assert!(first.contains("tables without a primary key (1): shop.events"), "{first}");
    assert!(first.contains("cannot open") && first.contains("shop.torn (Incorrect"), "{first}");
    assert!(whats(&found["findings"]).contains("sql_mode differ"), "{found:#}");

    // One is down, and the others are checked all the same.
    cluster.quorate(&["stop", "2"])?;
    let partly = check(&cluster, &[])?;
    let text = shown(&partly);
    assert_eq!(partly.status.code(), Some(69), "{text}");
    let down = format!("{}: not checked: connecting to", address(&cluster, 2));
    assert!(text.contains(&down) && text.contains("shop.old"), "{text}");
    let stranger = cluster.try_quorate(&["check", "--user", "nobody", &address(&cluster, 1)])?;
    assert!(shown(&stranger).contains("logging in as nobody"), "{}", shown(&stranger));
    assert_eq!(stranger.status.code(), Some(77), "{}", shown(&stranger));
    cluster.passed()
}

/// Two servers and a logger, which are asked at the group's port, with and without SQL beside it.
#[test]
fn a_group_is_checked_without_an_account() -> Result<()> {
    let cluster = TestCluster::unstarted(2, None)?;
    cluster.start("", &["--loggers", "1"])?;
    let well = cluster.try_quorate(&["check"])?;
    let text = shown(&well);
    assert_eq!(well.status.code(), Some(0), "{text}");
    assert!(text.contains("0 to mend first") && text.contains("node2 ("), "{text}");

    cluster.sql(1, "CREATE USER checker IDENTIFIED BY 'it''s only read'")?;
    cluster.sql(1, "GRANT SELECT ON *.* TO checker")?;
    cluster.wait_level(&[1, 2], LEVEL_LIMIT)?;
    let secret = secret_in(&cluster.dir).context("the cluster has no secret")?;
    let (secret, ann) = (secret.display().to_string(), cluster.dir.join("ann.operator"));
    let ann = ann.display().to_string();
    let new = ["operator", "new", "ann", "--read-only", "--secret-file", &secret, "--out", &ann];
    cluster.quorate(&new)?;
    let seed = cluster.group_address(1);
    let operator = ["--seed", &seed, "--operator-file", &ann, "--json"];
    let both = check(&cluster, &operator)?;
    assert_eq!(both.status.code(), Some(0), "{}", shown(&both));
    let found: Value = serde_json::from_slice(&both.stdout)?;
    let count = |what: &str| found[what].as_array().map(Vec::len);
    assert_eq!((count("members"), count("servers"), count("peers")), (Some(3), Some(2), Some(0)));
    // The logger's vote counts.
    assert!(!whats(&found["findings"]).contains("survive"), "{found:#}");

    // Without the logger, each of the two is needed.
    cluster.quorate(&["kill", "node3"])?;
    let thin = "missing: node3. The loss of node1 or node2, too, stops all writes";
    // The others notice when its connections end.
    await_that("the thin majority is found", || {
        let fewer = cluster.try_quorate(&[&["check"][..], &operator].concat())?;
        assert_eq!(fewer.status.code(), Some(69), "{}", shown(&fewer));
        let found: Value = serde_json::from_slice(&fewer.stdout)?;
        Ok(whats(&found["findings"]).contains(thin))
    })?;
    let stranger = cluster.try_quorate(&["check", "--seed", &seed])?;
    assert_eq!(stranger.status.code(), Some(77), "{}", shown(&stranger));
    cluster.passed()
}

#[test]
fn the_network_is_checked_without_a_server() -> Result<()> {
    let group = TcpListener::bind("127.0.0.1:0")?;
    let peer = group.local_addr()?.to_string();
    let cluster = TestCluster::unstarted(1, None)?;
    let check = |peers: &str| -> Result<(Option<i32>, Value)> {
        let output = cluster.try_quorate(&["check", "--peers", peers, "--json"])?;
        Ok((output.status.code(), serde_json::from_slice(&output.stdout)?))
    };
    let (code, found) = check(&peer)?;
    assert_eq!(code, Some(0), "{found:#}");
    let reached = &found["peers"][0];
    assert_eq!(reached["ports"][0]["answer"], "open", "{found:#}");
    assert!(reached["round_trip_ms"].as_f64().is_some_and(|ms| ms < 1000.0), "{found:#}");
    drop(group);
    let (code, found) = check(&peer)?;
    assert_eq!((code, &found["peers"][0]["ports"][0]["answer"]), (Some(0), &"refused".into()));
    // Nobody connects to a multicast address: the kernel says so at once, as for a network without a route.
    let (code, found) = check("224.0.0.1")?;
    assert_eq!(code, Some(69), "{found:#}");
    let advice = found["peers"][0]["findings"][0]["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("tcp dport 4567 accept"), "{found:#}");
    Ok(())
}
