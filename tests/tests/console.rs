//! The console in real Chromium: who is a member, a kill, also of the leader beside the agent, and orders by mouse and by
//! keyboard. It asks nobody but its agent, and complains about nothing.

use anyhow::{ensure, Context, Result};
use quorate_report::browser::{Browser, View};
use quorate_tests::agent::{Agent, TOKEN};
use quorate_tests::{await_that, sized, TestCluster};
use std::path::Path;
use std::time::Duration;

/// The node beside which the agent is.
const BESIDE: u16 = 1;
const WIDE: View = View { width: 1200, dark: false, print: false };

/// A kill is on the page in so long: two seconds, if the machine does nothing else.
fn seen_max() -> Duration {
    Duration::from_secs(sized(10, 2))
}

fn text(browser: &mut Browser, selector: &str) -> Result<String> {
    let found = browser.evaluate(&format!("document.querySelector({selector:?}).textContent"))?;
    Ok(found.as_str().unwrap_or_default().to_owned())
}

/// What screen readers were told, oldest first.
fn announced(browser: &mut Browser) -> Result<Vec<String>> {
    let told = "[...document.querySelectorAll('#announced p')].map(said => said.textContent)";
    let told = browser.evaluate(told)?;
    let told = told.as_array().into_iter().flatten().filter_map(|said| said.as_str());
    Ok(told.map(str::to_owned).collect())
}

fn focused(browser: &mut Browser) -> Result<String> {
    let id = browser.evaluate("document.activeElement.id")?;
    Ok(id.as_str().unwrap_or_default().to_owned())
}

/// Whether it is there to be seen.
fn is_shown(browser: &mut Browser, selector: &str) -> Result<bool> {
    let height = format!("document.querySelector({selector:?}).getBoundingClientRect().height");
    Ok(browser.evaluate(&height)?.as_f64().is_some_and(|height| height > 0.0))
}

fn asks(browser: &mut Browser) -> Result<bool> {
    Ok(browser.evaluate("document.querySelector('#confirm').open")? == true)
}

/// Once the page lets it be chosen, which it does when its node is well and does not lead.
fn click_lead(browser: &mut Browser, node: u16) -> Result<()> {
    let button = format!("#lead-node{node}");
    let disabled = format!("document.querySelector('{button}').getAttribute('aria-disabled')");
    await_that(&button, || Ok(browser.evaluate(&disabled)? == "false"))?;
    browser.click(&button)
}

#[test]
fn a_group_is_watched_and_led_from_the_console() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let agent = Agent::of(&cluster, BESIDE)?;
    let origin = format!("http://{}/", agent.address);
    let mut browser = Browser::start()?;
    browser.visit(&format!("{origin}console"), WIDE)?;
    await_that("all members on the page", || {
        let rows = browser.evaluate("document.querySelectorAll('#members tr').length")?;
        Ok(rows == 3 && text(&mut browser, "#state")? == "all members are well")
    })?;

    let followers = cluster.followers()?;
    let killed = followers.into_iter().find(|node| *node != BESIDE).context("a follower")?;
    cluster.quorate(&["kill", &killed.to_string()])?;
    let seen = await_that("the kill on the page", || {
        Ok(text(&mut browser, "#state")? == format!("no answer from node{killed}"))
    })?;
    ensure!(seen < seen_max(), "{seen:?}");
    cluster.quorate(&["start", &killed.to_string()])?;
    await_that("all members well again", || {
        Ok(text(&mut browser, "#state")? == "all members are well")
    })?;

    // By mouse.
    let to = cluster.followers()?[0];
    let leads = format!("node{to} leads");
    click_lead(&mut browser, to)?;
    ensure!(text(&mut browser, "#ask")?.contains("none is lost"), "no question before it is done");
    ensure!(!is_shown(&mut browser, "#number")?, "a priority is asked for");
    browser.click("#no")?;
    ensure!(!asks(&mut browser)?, "Cancel does not end it");
    // Also after the next second.
    std::thread::sleep(Duration::from_millis(1500));
    ensure!(focused(&mut browser)? == format!("lead-node{to}"), "Cancel loses the place");
    click_lead(&mut browser, to)?;
    browser.click("#token")?;
    browser.enter(TOKEN)?;
    browser.click("#yes")?;
    await_that("the new leader", || Ok(text(&mut browser, "#facts")?.starts_with(&leads)))?;
    ensure!(cluster.leader()? == to);
    await_that("what the group's log has of it", || {
        Ok(text(&mut browser, "#events")?.contains(&format!("{leads} in term ")))
    })?;

    // By keyboard alone: from button to button, into the dialog, past the token (which is remembered) and Cancel.
    let to = cluster.followers()?[0];
    for wanted in [format!("lead-node{to}"), "yes".to_owned()] {
        let mut steps = 0;
        while focused(&mut browser)? != wanted {
            browser.press("Tab")?;
            steps += 1;
            ensure!(steps < 50, "{wanted} is not reached by Tab");
        }
        browser.press("Enter")?;
    }
    let leads = format!("node{to} leads");
    await_that("the other leader", || Ok(text(&mut browser, "#facts")?.starts_with(&leads)))?;
    // What happened is asked for by itself: it may come after the facts.
    await_that("the order in what happened", || {
        Ok(text(&mut browser, "#events")?.contains(&format!("node{to} leads now")))
    })?;
    ensure!(focused(&mut browser)? == format!("lead-node{to}"), "an order loses the place");
    // The answer to the order names the leader, too: the change itself is told apart from it.
    let announced = announced(&mut browser)?;
    let is_told = announced.contains(&leads);
    ensure!(is_told, "screen readers are not told that {leads}: {announced:?}");
    let is_told = announced.iter().any(|said| said.starts_with("order switchover"));
    ensure!(is_told, "screen readers are not told of the order: {announced:?}");

    // Enter in the field of the token does what was asked about.
    let to = cluster.followers()?[0];
    click_lead(&mut browser, to)?;
    ensure!(focused(&mut browser)? == "token", "the question begins elsewhere");
    browser.press("Enter")?;
    let leads = format!("node{to} leads");
    await_that("the leader by Enter", || Ok(text(&mut browser, "#facts")?.starts_with(&leads)))?;

    // A pause by mouse, its banner, and its end.
    ensure!(!is_shown(&mut browser, "#paused")?, "nothing is paused");
    for (paused, label) in [(true, "Resume the group"), (false, "Pause the group")] {
        browser.click("#pause")?;
        ensure!(!is_shown(&mut browser, "#number")?, "a priority is asked for");
        browser.click("#yes")?;
        await_that("the banner", || {
            Ok(is_shown(&mut browser, "#paused")? == paused
                && text(&mut browser, "#pause")? == label)
        })?;
        await_that("the order in what happened", || {
            let entries =
                "[...document.querySelectorAll('#events li')].map(entry => entry.textContent)";
            let entries = browser.evaluate(entries)?;
            let ordered = |entry: &str| {
                let is_order = entry.contains("rules ") && entry.contains("ordered by agent");
                is_order && entry.contains("paused=yes") == paused
            };
            let mut entries = entries.as_array().into_iter().flatten().filter_map(|e| e.as_str());
            Ok(entries.any(ordered))
        })?;
    }

    // A priority: of the leader, which so goes on to lead. None at all is not sent.
    browser.click(&format!("#rank-node{to}"))?;
    ensure!(is_shown(&mut browser, "#number")?, "no priority is asked for");
    browser.evaluate("document.querySelector('#number').value = ''")?;
    browser.click("#yes")?;
    ensure!(asks(&mut browser)?, "an order without a priority was sent");
    browser.click("#number")?;
    browser.enter("70")?;
    browser.press("Enter")?;
    let cell =
        format!("document.querySelector('#rank-node{to}').closest('tr').cells[3].textContent");
    await_that("the new priority", || Ok(browser.evaluate(&cell)? == "70"))?;

    the_leader_beside_the_agent_is_killed(&cluster, &agent, &mut browser)?;

    assert_eq!(browser.complaints(&origin), Vec::<String>::new());
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/console");
    std::fs::create_dir_all(&pictures)?;
    for view in View::ALL {
        browser.visit(&format!("{origin}console"), view)?;
        await_that("the page", || Ok(text(&mut browser, "#facts")?.contains("leads")))?;
        browser.screenshot(&pictures.join(format!("{}.png", view.name())))?;
        let wide = browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")?;
        ensure!(wide == true, "{}: wider than its window", view.name());
    }
    cluster.passed()
}

/// What its own agent knew last does not count any more: the page says who leads now, as the others do.
fn the_leader_beside_the_agent_is_killed(
    cluster: &TestCluster,
    agent: &Agent,
    browser: &mut Browser,
) -> Result<()> {
    let bearer = format!("Bearer {TOKEN}");
    let order = format!("{{\"candidate\":\"node{BESIDE}\"}}");
    let (code, said) = agent.order("/switchover", &order, Some(&bearer))?;
    ensure!(code == 200, "{code} {said}");
    let leads = |browser: &mut Browser, node: u16| {
        Ok(text(browser, "#facts")?.starts_with(&format!("node{node} leads")))
    };
    await_that("the agent's own node to lead", || leads(browser, BESIDE))?;

    cluster.quorate(&["kill", &BESIDE.to_string()])?;
    await_that("the kill of the leader on the page", || {
        Ok(text(browser, "#state")? == format!("no answer from node{BESIDE}"))
    })?;
    let mut next = BESIDE;
    await_that("the next leader", || {
        next = cluster.leader()?;
        Ok(next != BESIDE)
    })?;
    await_that("the next leader on the page", || leads(browser, next))?;
    let role = |node: u16| {
        format!("document.querySelector('#lead-node{node}').closest('tr').cells[1].textContent")
    };
    ensure!(browser.evaluate(&role(next))? == "leads", "the row of node{next}");
    ensure!(browser.evaluate(&role(BESIDE))? == "unknown", "the row of the dead node");
    let announced = announced(browser)?;
    let told = |node: u16| announced.iter().rposition(|said| *said == format!("node{node} leads"));
    ensure!(told(next) > told(BESIDE), "screen readers are not told who leads now: {announced:?}");

    cluster.quorate(&["start", &BESIDE.to_string()])?;
    await_that("all members well once more", || {
        Ok(text(browser, "#state")? == "all members are well")
    })?;
    Ok(())
}
