//! The console in real Chromium: who is a member, a kill, and orders by mouse and by keyboard. It asks nobody but its
//! agent, and complains about nothing.

use anyhow::{ensure, Context, Result};
use quorate_report::browser::{Browser, View};
use quorate_tests::agent::{Agent, TOKEN};
use quorate_tests::{await_that, sized, TestCluster};
use std::path::Path;
use std::time::Duration;

const WIDE: View = View { width: 1200, dark: false, print: false };

/// A kill is on the page in so long: two seconds, if the machine does nothing else.
fn seen_max() -> Duration {
    Duration::from_secs(sized(4, 2))
}

fn text(browser: &mut Browser, selector: &str) -> Result<String> {
    let found = browser.evaluate(&format!("document.querySelector({selector:?}).textContent"))?;
    Ok(found.as_str().unwrap_or_default().to_owned())
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
    let disabled = format!("document.querySelector('{button}').disabled");
    await_that(&button, || Ok(browser.evaluate(&disabled)? == false))?;
    browser.click(&button)
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
    let events = text(&mut browser, "#events")?;
    ensure!(events.contains(&format!("node{to} leads now")), "{events}");

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
