//! The console in real Chromium: who is a member, a kill, and a hand-over by mouse and by keyboard. It asks nobody but
//! its agent, and complains about nothing.

use anyhow::{ensure, Context, Result};
use quorate_report::browser::{Browser, View};
use quorate_tests::agent::{Agent, TOKEN};
use quorate_tests::{await_that, TestCluster};
use std::path::Path;
use std::time::Duration;

const WIDE: View = View { width: 1200, dark: false, print: false };
/// A kill is on the page in so long; a second or two, if the machine does nothing else.
const SEEN_MAX: Duration = Duration::from_secs(4);

fn text(browser: &mut Browser, selector: &str) -> Result<String> {
    let found = browser.evaluate(&format!("document.querySelector({selector:?}).textContent"))?;
    Ok(found.as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_group_is_watched_and_led_from_the_console() -> Result<()> {
    let cluster = TestCluster::up(3, "")?;
    let agent = Agent::of(&cluster, 1)?;
    let origin = format!("http://{}/", agent.address);
    let mut browser = Browser::start()?;
    browser.visit(&format!("{origin}console"), WIDE)?;
    await_that("all members on the page", || {
        let rows = browser.evaluate("document.querySelectorAll('#members tr').length")?;
        Ok(rows == 3 && text(&mut browser, "#state")? == "all members are well")
    })?;

    let killed = cluster.followers()?.into_iter().find(|node| *node != 1).context("a follower")?;
    cluster.quorate(&["kill", &killed.to_string()])?;
    let seen = await_that("the kill on the page", || {
        Ok(text(&mut browser, "#state")? == format!("no answer from node{killed}"))
    })?;
    ensure!(seen < SEEN_MAX, "{seen:?}");
    cluster.quorate(&["start", &killed.to_string()])?;
    await_that("all members well again", || {
        Ok(text(&mut browser, "#state")? == "all members are well")
    })?;

    // By mouse.
    let to = cluster.followers()?[0];
    let leads = format!("node{to} leads");
    browser.click(&format!("#lead-node{to}"))?;
    ensure!(text(&mut browser, "#ask")?.contains("none is lost"), "no question before it is done");
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
    let focused = |browser: &mut Browser| -> Result<String> {
        let id = browser.evaluate("document.activeElement.id")?;
        Ok(id.as_str().unwrap_or_default().to_owned())
    };
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
    let events = text(&mut browser, "#events")?;
    ensure!(events.contains(&format!("node{to} leads now")), "{events}");

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
