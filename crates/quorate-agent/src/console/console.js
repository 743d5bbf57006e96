"use strict";
// What is known, as the agent sends it, and the page that shows it. Charts: charts.js; orders: orders.js.

const MINUTES = 10, KEPT = 600;
const $ = id => document.getElementById(id);
let samples = [], takesOrders = false;
// While a mouse button is down on the members: a click needs the same element under it from its begin to its end.
let pressed = false;

const make = (tag, text, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
const bytes = n => {
  if (n == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
  return `${n.toFixed(unit && n < 100 ? 1 : 0)} ${units[unit]}`;
};
const clock = time => new Date(time).toLocaleTimeString([], { hour12: false });
const colour = name => `var(--s${names().indexOf(name) % 9})`;
const names = () => samples.length ? samples[samples.length - 1].nodes.map(node => node.name) : [];
const of = (sample, name) => sample.nodes.find(node => node.name === name) || {};

// The others are asked once a second: who led until a moment ago may still say so.
const role = (node, now) => node.name === now.leader ? "leads" : node.role === "primary" ? "replica" : node.role;

function showHead(now) {
  $("group").textContent = now.group;
  document.title = `Quorate ${now.group}`;
  const silent = now.nodes.filter(node => node.role === "unknown").map(node => node.name);
  const none = now.nodes.filter(node => node.role === "none").map(node => node.name);
  let [text, kind] = ["all members are well", "good"];
  if (!now.leader) [text, kind] = ["nobody leads: nothing can be written", "bad"];
  else if (silent.length) [text, kind] = [`no answer from ${silent.join(", ")}`, "warn"];
  else if (none.length) [text, kind] = [`serving nobody: ${none.join(", ")}`, "warn"];
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").className = kind;
  const last = samples.length > 1 ? rate(samples[samples.length - 2], now) : null;
  $("facts").textContent = `${now.leader ? now.leader + " leads" : "no leader"}, term ${now.term}, level ${now.level}, ` +
    `${now.primary_mode === "single" ? "one primary" : "every server takes writes"}` +
    (last == null ? "" : `, ${Math.round(last)} commits a second`);
}

function showMembers(now) {
  const before = samples.length > 1 ? samples[samples.length - 2] : null;
  const focused = document.activeElement && document.activeElement.id;
  const rows = [];
  const zones = [...new Set(now.nodes.map(node => node.zone))].sort();
  for (const zone of zones) {
    if (zones.length > 1) {
      const row = make("tr", undefined, "zone"), head = make("th", zone ? `zone ${zone}` : "without a zone");
      head.colSpan = 10;
      head.scope = "rowgroup";
      row.append(head);
      rows.push(row);
    }
    for (const node of now.nodes.filter(node => node.zone === zone)) {
      const row = make("tr"), name = make("th", node.name);
      name.scope = "row";
      const kind = node.role === "unknown" || node.role === "none" ? "bad" : "good";
      const took = before && node.syncs != null ? sync(of(before, node.name), node) : null;
      const lag = node.lag == null ? "–" : node.lag_ms >= 50 ? `${node.lag}, ${(node.lag_ms / 1000).toFixed(1)} s` : `${node.lag}`;
      const number = text => make("td", text, "number");
      row.append(name, make("td", role(node, now)), make("td", node.state, kind), number(`${node.priority}`),
        number(node.seqno == null ? "–" : node.seqno.toLocaleString("en")), number(lag), number(node.queue ?? "–"),
        number(bytes(node.log_bytes)), number(took == null ? "–" : `${took.toFixed(2)} ms`));
      const cell = make("td");
      if (takesOrders) cell.append(...orderButtons(node, now));
      row.append(cell);
      rows.push(row);
    }
  }
  $("members").replaceChildren(...rows);
  if (focused && $(focused)) $(focused).focus();
}

function addEvents(news) {
  for (const event of news) {
    const entry = make("li"), time = make("time", clock(event.time));
    time.dateTime = event.time;
    // Noted in the group's log, by a node; or seen by this agent.
    entry.append(time, event.node ? `${event.node}: ${event.what}` : event.what);
    if (event.order) entry.append(`, ordered by ${event.order.by}: ${event.order.outcome}`);
    $("events").prepend(entry);
  }
  while ($("events").childElementCount > 200) $("events").lastElementChild.remove();
}

function show(message) {
  takesOrders = message.orders;
  addEvents(message.events);
  if (!samples.length) return;
  const now = samples[samples.length - 1];
  showHead(now);
  showPause(now);
  if (!pressed) showMembers(now);
  showCharts();
}

$("members").onpointerdown = event => { pressed = event.button === 0; };
onpointerup = onpointercancel = () => { pressed = false; };

const source = new EventSource("/events");
source.addEventListener("history", message => {
  const told = JSON.parse(message.data);
  samples = told.samples;
  $("events").replaceChildren();
  show(told);
});
source.addEventListener("sample", message => {
  const told = JSON.parse(message.data);
  samples = samples.concat(told.samples).slice(-KEPT);
  show(told);
});
source.onerror = () => {
  $("state").textContent = "the agent does not answer";
  $("state").className = "bad";
};
