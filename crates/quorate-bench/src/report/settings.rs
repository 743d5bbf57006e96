//! How it was measured: systems with all their settings, machine, networks, and what failed.

use super::Told;
use crate::record::{Cell, Place, Setup, Spread};
use maud::{html, Markup};
use quorate_report::page::{self, Section};

pub(super) fn sections(told: &Told) -> Vec<Section> {
    let section =
        |id: &str, title: &str, body| Section { id: id.into(), title: title.into(), body };
    vec![
        section("systems", "Systems and their settings", systems(told)),
        section("networks", "Networks", networks(told)),
        section("machine", "Machine", machine(told)),
        section("failed", "What failed", failed(told)),
    ]
}

fn systems(told: &Told) -> Markup {
    html! {
        p { "What decides on durability was read back from the running servers." }
        @for setup in &told.results.run.systems { (system(setup)) }
    }
}

fn system(setup: &Setup) -> Markup {
    let title = if setup.title.is_empty() { &setup.name } else { &setup.title };
    let encrypted = if setup.encrypted { "encrypted" } else { "not encrypted" };
    let all = |options: &[(String, String)]| {
        page::pairs(options.iter().map(|(name, value)| (name.as_str(), value.clone())))
    };
    html! {
        h3 { (page::system(&setup.name, title)) }
        p.faint { code { (setup.name) } " · " (setup.version) " · connections between members " (encrypted) }
        h4 { "Read back" }
        @if setup.read_back.is_empty() { p.faint { "It was not run." } } @else { (all(&setup.read_back)) }
        @if !setup.told.is_empty() { details { summary { "What else its first member says" } (all(&setup.told)) } }
        details { summary { "Its " (setup.options.len()) " options" } (all(&setup.options)) }
    }
}

/// From so many on, packets travel together.
const MANY_CLIENTS: u32 = 16;

/// What the lab needs for a packet then, in µs of CPU: the median of all cells of `oltp`.
fn packet_under_load(told: &Told, network: &str) -> Option<f64> {
    let cells = told.results.cells.iter();
    let here = cells.filter(|cell| {
        let Place { test, network: at, clients, .. } = &cell.place;
        test == "oltp" && at == network && *clients >= MANY_CLIENTS && cell.failed.is_none()
    });
    let costs = here.filter_map(|cell| {
        let figure = |name: &str| cell.figures.get(name).copied();
        let packets = figure("packets_per_trx").filter(|packets| *packets > 0.0)?;
        Some(figure("lab_us_per_trx")? / packets)
    });
    Spread::of(costs).map(|spread| spread.median)
}

fn networks(told: &Told) -> Markup {
    let [first, second, third] = ["node1–node2", "node1–node3", "node2–node3"];
    let table = html! { table {
        thead { tr {
            th { "network" }
            th.n { (first) small { "round trip, ms: made for, measured" } }
            th.n { (second) } th.n { (third) }
            th.n { "the lab's own cost" small { "µs of CPU/packet, one at a time" } }
            th.n { "under load" small { "oltp, 16 clients and more" } }
        } }
        tbody { @for network in &told.results.run.networks { tr {
            td { (network.name) }
            @for (made_for, measured) in network.round_trips_ms.iter().zip(network.measured_ms) {
                td.n { (made_for) " → " (format!("{measured:.2}")) }
            }
            td.n { (format!("{:.1}", network.packet_cost_us)) }
            td.n { @if let Some(cost) = packet_under_load(told, &network.name) { (format!("{cost:.1}")) } }
        } } }
    } };
    page::scroll(table)
}

fn machine(told: &Told) -> Markup {
    let run = &told.results.run;
    let machine = &run.machine;
    let memory = machine.memory_bytes as f64 / f64::from(1 << 30);
    let tools: Vec<_> =
        machine.tools.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let tools = if tools.is_empty() { "not recorded".to_owned() } else { tools.join(", ") };
    html! {
        (page::pairs([
            ("processors", format!("{} × {}", machine.processors, machine.processor)),
            ("memory", format!("{memory:.1} GiB")),
            ("kernel", machine.kernel.clone()),
            ("disk", machine.disk.clone()),
            ("sync", format!("{:.0} µs, median of a 4 KiB overwrite with fdatasync", machine.sync_us)),
            ("tools", tools),
        ]))
        (invocations(told))
        (measured(told))
        @for warning in told.results.run.notes.iter().chain(&told.results.warnings) { p { (page::badge(page::Tone::Warn, "note")) " " (warning) } }
    }
}

/// Each time that the run was begun or gone on with.
fn invocations(told: &Told) -> Markup {
    page::scroll(html! { table {
        thead { tr { th { "began" } th.n { "took" small { "min" } } th { "command" } } }
        tbody { @for invocation in &told.results.run.invocations { tr {
            td { (invocation.began) }
            td.n { (format!("{:.0}", invocation.took_s / 60.0)) }
            td.text { code { (invocation.command) } }
        } } }
    } })
}

/// How each test was measured.
fn measured(told: &Told) -> Markup {
    page::scroll(html! { table {
        thead { tr {
            th { "test" } th { "grid" } th.n { "steady load" small { "s" } } th { "tables" } th { "build" }
        } }
        tbody { @for (test, settings) in &told.results.run.settings { tr {
            td { (test) }
            td { (settings.grid) }
            td.n { (settings.seconds) }
            td { (settings.tables) }
            td { code { (settings.build) } }
        } } }
    } })
}

fn failed(told: &Told) -> Markup {
    let failed: Vec<(&Cell, &String)> =
        told.results.cells.iter().filter_map(|cell| Some((cell, cell.failed.as_ref()?))).collect();
    if failed.is_empty() {
        return html! { p { "Nothing." } };
    }
    page::scroll(html! { table {
        thead { tr { th { "test" } th { "place" } th { "system" } th.n { "round" } th { "reason" } } }
        tbody { @for (cell, reason) in failed { tr {
            td { (cell.place.test) }
            td { (cell.place.words()) }
            td { (page::system(&cell.system, &told.title(&cell.system))) }
            td.n { (cell.round) }
            td.text { (reason) }
        } } }
    } })
}
