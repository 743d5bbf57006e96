//! `quorate switchover`

use super::{appointed, say};
use crate::args::Switchover;
use crate::remote::{may_order, member_named, refused, Remote};
use anyhow::Result;
use quorate_live::port::{Answer, Request};
use serde_json::json;
use std::time::Instant;

/// `group`: found anew each time, since an order may have to wait for hours.
pub fn switchover(group: impl Fn() -> Result<Remote>, args: &Switchover) -> Result<u8> {
    appointed::wait(&args.when, "Switchover", || possible(&group()?, args).map(drop))?;
    let group = group()?;
    let (address, to) = possible(&group, args)?;
    let began = Instant::now();
    let (_, asked) = group.order_to(&address, &Request::Switchover { to })?;
    let Answer::Leads { name } = &asked.answer else {
        return Err(refused(&asked.node, asked.answer));
    };
    let took_ms = began.elapsed().as_millis() as u64;
    say(args.json, json!({ "leader": name, "former": asked.node, "took_ms": took_ms }), || {
        match *name == asked.node {
            true => format!("{name} leads already\n"),
            false => format!("{name} leads now ({} did); it took {took_ms} ms\n", asked.node),
        }
    })
}

/// Whom to tell, and the name of the one that is to lead; or why that cannot be.
fn possible(group: &Remote, args: &Switchover) -> Result<(String, Option<String>)> {
    let (address, report) = group.leaders_report()?;
    may_order(&report)?;
    let to = args.to.as_deref().map(|to| group.name(to));
    to.iter().try_for_each(|to| member_named(&report, to).map(drop))?;
    Ok((address, to))
}
