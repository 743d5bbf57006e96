//! `quorate agent` beside each server: what load balancers, monitoring and scripts are told, also of servers that
//! hang, and who may give orders.

use anyhow::{ensure, Context, Result};
use quorate_tests::agent::{Agent, TOKEN};
use quorate_tests::{await_that, TestCluster};
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;

/// Of answers from memory, on a machine that does other things, too.
const ANSWER_MAX: Duration = Duration::from_millis(10);
/// The token, as Patroni's clients show it: as the password of `patroni`.
const BASIC: &str = "Basic cGF0cm9uaTphIHRva2VuIHRoYXQgaXMgbG9uZyBlbm91Z2g=";

/// From the leader to the agent's own `node`: given up before its time, and then not, and back again.
fn a_switchover_is_scheduled(agent: &Agent, node: u16, leader: u16) -> Result<()> {
    let schedule = |at: &str| {
        let order = format!("{{\"candidate\":\"node{node}\",\"scheduled_at\":\"{at}\"}}");
        agent.order("/switchover", &order, Some(BASIC))
    };
    for (at, code) in [("2099-01-01T00:00", 400), ("2001-01-01T00:00Z", 422), ("soon", 422)] {
        assert_eq!(schedule(at)?.0, code, "{at}");
    }
    assert_eq!(schedule("2099-01-01T02:00+02:00")?.0, 202);
    let told = agent.json("/cluster")?["scheduled_switchover"].clone();
    assert_eq!(told["at"], "2099-01-01T00:00:00+00:00");
    assert_eq!(told["to"], format!("node{node}"));
    for code in [200, 404] {
        let authorization = format!("Authorization: {BASIC}\r\n\r\n");
        assert_eq!(agent.ask("DELETE /switchover", &authorization)?.0, code);
    }
    ensure!(agent.json("/cluster")?.get("scheduled_switchover").is_none(), "it is given up");

    // The fraction of the second is cut off: one or two of them could have passed when it arrives.
    let soon = Command::new("date").args(["-u", "-d", "5 seconds", "+%FT%TZ"]).output()?;
    let soon = String::from_utf8(soon.stdout)?;
    assert_eq!(schedule(soon.trim())?.0, 202, "{soon}");
    await_that("the scheduled leader", || Ok(agent.code("/primary")? == 200))?;
    ensure!(agent.json("/cluster")?.get("scheduled_switchover").is_none(), "it is done");
    let back = format!("{{\"candidate\":\"node{leader}\"}}");
    assert_eq!(agent.order("/switchover", &back, Some(BASIC))?.0, 200);
    await_that("the former leader", || Ok(agent.code("/replica")? == 200))?;
    Ok(())
}

#[test]
fn agents_say_who_is_what_also_of_a_server_that_hangs() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let agents: Vec<Agent> =
        cluster.all().into_iter().map(|node| Agent::of(&cluster, node)).collect::<Result<_>>()?;
    let agent = |node: u16| &agents[usize::from(node) - 1];
    let (leader, followers) = (cluster.leader()?, cluster.followers()?);
    let follower = followers[0];
    await_that("what the agents know", || {
        Ok(agents.iter().all(|agent| agent.code("/health").is_ok_and(|code| code == 200)))
    })?;

    for (path, of_leader, of_follower) in [
        ("/", 200, 503),
        ("/primary", 200, 503),
        ("/replica", 503, 200),
        ("/replica?max_lag=30s", 503, 200),
        ("/replica?lag=16MB", 503, 200),
        ("/replica?lag=1048576", 503, 200),
        ("/read-write", 200, 200),
        ("/read-only?max_lag=100000", 200, 200),
        ("/readiness", 200, 200),
        ("/readiness?lag=16MB&mode=apply", 200, 200),
        ("/liveness", 200, 200),
        ("/replica?max_lag=soon", 400, 400),
        ("/nowhere", 404, 404),
    ] {
        let codes = (agent(leader).code(path)?, agent(follower).code(path)?);
        assert_eq!(codes, (of_leader, of_follower), "{path}");
    }
    for method in ["HEAD", "OPTIONS"] {
        assert_eq!(agent(leader).ask(&format!("{method} /primary"), "\r\n")?.0, 200, "{method}");
    }
    let (_, metrics, _) = agent(leader).ask("GET /metrics", "\r\n")?;
    for line in ["quorate_primary 1", "quorate_writable 1", "# EOF"] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    let members = agent(follower).json("/cluster")?["report"]["members"].clone();
    assert_eq!(members.as_array().map(Vec::len), Some(3), "{members}");
    await_that("all members as Patroni tells them", || {
        let cluster = agent(follower).json("/cluster")?;
        let is_told = |node: u16| {
            let (name, leads) = (format!("node{node}"), node == leader);
            let member = cluster["members"].as_array()?.iter().find(|told| told["name"] == name)?;
            let role = if leads { "leader" } else { "replica" };
            let state = if leads { "running" } else { "streaming" };
            Some(member["role"] == role && member["state"] == state && member["port"].is_u64())
        };
        Ok(cluster["pause"] == false
            && [1, 2, 3].into_iter().all(|node| is_told(node) == Some(true)))
    })?;

    // Orders: by whom, and what comes of them.
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(agent(follower).order("/switchover", "{}", None)?.0, 401);
    assert_eq!(agent(follower).order("/pause", "", Some("Bearer something else"))?.0, 401);
    for (path, paused) in [("/pause", true), ("/resume", false)] {
        assert_eq!(agent(follower).order(path, "", Some(BASIC))?, (200, "done".to_owned()));
        await_that("the others to know of it", || {
            Ok(agent(leader).json("/cluster")?["pause"] == paused)
        })?;
    }
    a_switchover_is_scheduled(agent(follower), follower, leader)?;
    await_that("all agents to know who leads again", || {
        let knows = |agent: &Agent| -> Result<bool> {
            let cluster = agent.json("/cluster")?;
            let members = cluster["members"].as_array().context("members")?;
            let leads = members.iter().find(|member| member["role"] == "leader");
            Ok(leads.is_some_and(|member| member["name"] == format!("node{leader}")))
        };
        agents.iter().try_fold(true, |all, agent| Ok(all && knows(agent)?))
    })?;
    let stale = format!("{{\"leader\":\"node{follower}\"}}");
    let (code, said) = agent(follower).order("/switchover", &stale, Some(&bearer))?;
    assert_eq!((code, said.contains("nothing was done")), (412, true), "{said}");
    let wanted = format!("{{\"leader\":\"node{leader}\",\"candidate\":\"node{follower}\"}}");
    let (code, said) = agent(followers[1]).order("/switchover", &wanted, Some(&bearer))?;
    assert_eq!((code, said), (200, format!("node{follower} leads now")));
    await_that("the new primary", || Ok(agent(follower).code("/primary")? == 200))?;
    // Each agent asks its own member ten times a second.
    await_that("the end of the former primary", || Ok(agent(leader).code("/primary")? == 503))?;
    // As all agents tell it, from the group's log.
    for node in cluster.all() {
        let led = format!("node{follower} leads in term ");
        await_that("the hand-over in the history", || {
            let history = agent(node).json("/history")?;
            let noted = history.as_array().context("a list")?.iter();
            let noted = noted.filter(|event| event["source"] == "log");
            Ok(noted.filter_map(|event| event["what"].as_str()).any(|what| what.contains(&led)))
        })?;
    }

    // A server that hangs is nothing, and its agent says so at once.
    cluster.signal(follower, Signal::STOP)?;
    let hung = await_that("a primary that hangs to be none", || {
        Ok(agent(follower).code("/primary")? == 503)
    });
    let mut slow = Vec::new();
    for _ in 0..100 {
        let (code, _, took) = agent(follower).ask("GET /read-only", "\r\n")?;
        ensure!(code == 503, "{code} of a server that hangs");
        slow.push(took);
    }
    slow.sort();
    let found = await_that("another primary", || {
        Ok([leader, followers[1]]
            .iter()
            .any(|node| agent(*node).code("/primary").ok() == Some(200)))
    });
    cluster.signal(follower, Signal::CONT)?;
    let (hung, _) = (hung?, found?);
    println!("answers of the agent of a hung server: p50 {:?}, worst {:?}", slow[50], slow[99]);
    assert!(hung < Duration::from_secs(2), "{hung:?}");
    assert!(slow[50] < ANSWER_MAX, "{slow:?}");
    await_that("the server back", || Ok(agent(follower).code("/read-only")? == 200))?;
    // Late, or never, if it hung for longer than the agent waits.
    let events = agent(follower).json("/history")?.to_string();
    assert!(
        ["s to answer", "does not answer"].iter().any(|what| events.contains(what)),
        "{events}"
    );

    // None is at that port.
    cluster.quorate(&["kill", &leader.to_string()])?;
    await_that("a killed server to be none", || Ok(agent(leader).code("/health")? == 503))?;
    assert_eq!(agent(leader).code("/liveness")?, 200);
    let events = agent(leader).json("/history")?.to_string();
    assert!(events.contains("the member does not answer"), "{events}");
    cluster.passed()
}
