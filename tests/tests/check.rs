//! `quorate check` on servers that run: what it finds, and what it says of servers that it cannot ask.

use anyhow::Result;
use quorate_tests::cluster::shown;
use quorate_tests::TestCluster;
use serde_json::Value;
use std::fs;
use std::process::Output;

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

#[test]
fn servers_are_checked_by_an_account_that_only_reads() -> Result<()> {
    let cluster = TestCluster::up(2, "")?;
    cluster.sql(1, "CREATE USER checker IDENTIFIED BY 'it''s only read'")?;
    cluster.sql(1, "GRANT SELECT ON *.* TO checker")?;
    cluster.wait_level(&cluster.all(), std::time::Duration::from_secs(20))?;

    let folder = cluster.dir.display().to_string();
    let good = check(&cluster, &["--disk", &folder])?;
    let text = shown(&good);
    assert_eq!(good.status.code(), Some(0), "{text}");
    assert!(text.contains("0 to mend first, 0 to look at"), "{text}");
    assert!(text.contains("a sync of this host's disk takes"), "{text}");
    assert!(text.contains("2 servers survive the loss of as many as 1 do"), "{text}");

    cluster.sql(1, "CREATE DATABASE shop")?;
    cluster.sql(1, "CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE=MyISAM")?;
    cluster.sql(1, "CREATE TABLE shop.events (what TEXT)")?;
    cluster.sql(2, "SET GLOBAL sql_mode = 'ANSI'")?;
    cluster.wait_level(&cluster.all(), std::time::Duration::from_secs(20))?;
    let bad = check(&cluster, &["--json"])?;
    assert_eq!(bad.status.code(), Some(1), "{}", shown(&bad));
    let found: Value = serde_json::from_slice(&bad.stdout)?;
    let whats = |findings: &Value| -> String {
        let all = findings.as_array().into_iter().flatten();
        all.filter_map(|finding| finding["what"].as_str()).collect::<Vec<_>>().join("\n")
    };
    let first = whats(&found["servers"][0]["findings"]);
    assert!(first.contains("shop.old (MyISAM)"), "{first}");
    assert!(first.contains("tables without a primary key (1): shop.events"), "{first}");
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
