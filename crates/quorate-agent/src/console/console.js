"use strict";
// What is known, as the agent sends it, and the page that shows it. Charts: charts.js; orders: orders.js.

const MINUTES = 10, KEPT = 600;
const $ = id => document.getElementById(id);
let samples = [], takesOrders = false;
// Who led last, as far as this page knows.
let led = null;

const make = (tag, text, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
// What does not change is left alone: a screen reader may be on it, or a selection.
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const kindOf = (element, kind) => { if (element.className !== kind) element.className = kind; };
// These in this order, and no others: those that stay are moved only if they stand elsewhere.
const keep = (parent, wanted) => {
  for (const child of [...parent.children]) if (!wanted.includes(child)) child.remove();
  wanted.forEach((child, at) => { if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null); });
};
// To screen readers: orders and changes of leader, and nothing that stands there since the page is open.
const announce = text => {
  $("announced").append(make("p", text));
  while ($("announced").childElementCount > 5) $("announced").firstElementChild.remove();
};
const latest = () => samples[samples.length - 1];
const bytes = n => {
  if (n == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
  return `${n.toFixed(unit && n < 100 ? 1 : 0)} ${units[unit]}`;
};
const clock = time => new Date(time).toLocaleTimeString([], { hour12: false });
// Each its own colour and its own dashes: not everybody tells colours apart.
const DASHES = ["none", "7 3", "2 2", "9 3 2 3", "5 2", "12 4", "2 5", "9 3 2 3 2 3", "5 5"];
const place = name => Math.max(0, names().indexOf(name)) % DASHES.length;
const colour = name => `var(--s${place(name)})`;
const dashes = name => DASHES[place(name)];
const names = () => samples.length ? latest().nodes.map(node => node.name) : [];
const of = (sample, name) => sample.nodes.find(node => node.name === name) || {};

// The others are asked once a second: who led until a moment ago may still say so.
const role = (node, now) => node.name === now.leader ? "leads" : node.role === "primary" ? "replica" : node.role;

// Until the member beside the agent has answered once.
function showSilence(why) {
  put($("state"), `the member beside this agent has not answered yet: ${why}`);
  kindOf($("state"), "bad");
  put($("facts"), "So this page knows nothing of the group yet. See whether that member runs (if not, its error log says " +
    "why), and whether the agent asks the right one, as an operator that it knows (--member, --operator-file). " +
    "Meanwhile, the pages of the other members' agents show the group.");
}

function showHead(now) {
  if (now.silence) return showSilence(now.silence);
  put($("group"), now.group);
  document.title = `Quorate ${now.group}`;
  const silent = now.nodes.filter(node => node.role === "unknown").map(node => node.name);
  const bad = now.nodes.filter(node => node.role === "none"), states = bad.map(node => `${node.name} (${node.state})`);
  const leader = bad.find(node => node.name === now.leader);
  let [text, kind] = ["all members are well", "good"];
  if (silent.length === now.nodes.length) [text, kind] = ["no member answers this agent", "bad"];
  else if (!now.leader) [text, kind] = ["nobody leads: nothing can be written", "bad"];
  else if (leader && now.primary_mode === "single")
    [text, kind] = [`nothing can be written: ${leader.name} leads (${leader.state})`, "bad"];
  else if (silent.length) [text, kind] = [`no answer from ${silent.join(", ")}`, "warn"];
  else if (bad.length) [text, kind] = [`not well: ${states.join(", ")}`, "warn"];
  put($("state"), text);
  kindOf($("state"), kind);
  const last = samples.length > 1 ? rate(samples[samples.length - 2], now) : null;
  put($("facts"), `${now.leader ? now.leader + " leads" : "no leader"}, term ${now.term}, level ${now.level}, ` +
    `${now.primary_mode === "single" ? "one primary" : "every server takes writes"}` +
    (last == null ? "" : `, ${Math.round(last)} commits a second`));
  if (now.leader && led && led !== now.leader) announce(`${now.leader} leads`);
  led = now.leader ?? led;
}

// Rows stay as long as their members do, and so does what is in them: the focus, and a screen reader's place.
const rows = new Map();
const rowOf = (key, build) => {
  if (!rows.has(key)) rows.set(key, build());
  return rows.get(key);
};

function zoneRow(zone) {
  const row = make("tr", undefined, "zone"), head = make("th", zone ? `zone ${zone}` : "without a zone");
  head.colSpan = 10;
  head.scope = "rowgroup";
  row.append(head);
  return row;
}

function memberRow(name) {
  const row = make("tr"), head = make("th", name), orders = make("td");
  head.scope = "row";
  const kinds = [undefined, undefined, "number", "number", "number", "number", "number", "number"];
  orders.append(...orderButtons(name));
  row.append(head, ...kinds.map(kind => make("td", "", kind)), orders);
  return row;
}

function showMember(row, node, now) {
  const before = samples.length > 1 ? samples[samples.length - 2] : null;
  const took = before && node.syncs != null ? sync(of(before, node.name), node) : null;
  const lag = node.lag == null ? "–" : node.lag_ms >= 50 ? `${node.lag}, ${(node.lag_ms / 1000).toFixed(1)} s` : `${node.lag}`;
  const texts = [role(node, now), node.state, `${node.priority}`, node.seqno == null ? "–" : node.seqno.toLocaleString("en"),
    lag, `${node.queue ?? "–"}`, bytes(node.log_bytes), took == null ? "–" : `${took.toFixed(2)} ms`];
  texts.forEach((text, at) => put(row.cells[at + 1], text));
  kindOf(row.cells[2], node.role === "unknown" || node.role === "none" ? "bad" : "good");
  showOrders(node, now);
}

function showMembers(now) {
  const focused = document.activeElement && document.activeElement.id;
  const zones = [...new Set(now.nodes.map(node => node.zone))].sort();
  const wanted = zones.flatMap(zone => [
    ...(zones.length > 1 ? [rowOf(`zone ${zone}`, () => zoneRow(zone))] : []),
    ...now.nodes.filter(node => node.zone === zone).map(node => rowOf(`member ${node.name}`, () => memberRow(node.name))),
  ]);
  keep($("members"), wanted);
  for (const [key, row] of rows) if (!wanted.includes(row)) rows.delete(key);
  for (const node of now.nodes) showMember(rows.get(`member ${node.name}`), node, now);
  // A row that was moved has lost it.
  if (focused && $(focused) && document.activeElement !== $(focused)) $(focused).focus();
}

function addEvents(news, aloud) {
  for (const event of news) {
    const entry = make("li"), time = make("time", clock(event.time));
    time.dateTime = event.time;
    // Noted in the group's log, by a node; or seen by this agent.
    entry.append(time, event.node ? `${event.node}: ${event.what}` : event.what);
    if (event.order) entry.append(`, ordered by ${event.order.by}: ${event.order.outcome}`);
    $("events").prepend(entry);
    if (aloud && event.order) announce(`${event.what}, ordered by ${event.order.by}: ${event.order.outcome}`);
  }
  while ($("events").childElementCount > 200) $("events").lastElementChild.remove();
}

function show(message, aloud) {
  takesOrders = message.orders;
  addEvents(message.events, aloud);
  if (!samples.length) return put($("state"), "the agent waits for its member's first answer");
  const now = latest();
  showHead(now);
  showPause(now);
  showMembers(now);
  showCharts();
}

function follow() {
  const source = new EventSource("/events");
  source.addEventListener("history", message => {
    const told = JSON.parse(message.data);
    samples = told.samples;
    $("events").replaceChildren();
    show(told, false);
  });
  source.addEventListener("sample", message => {
    const told = JSON.parse(message.data);
    samples = samples.concat(told.samples).slice(-KEPT);
    show(told, true);
  });
  const ends = (why, pause) => {
    put($("state"), why);
    kindOf($("state"), "bad");
    if (pause) setTimeout(follow, pause);
  };
  // Its place is a newer page's: asked for again at once, it would be taken from the next one.
  source.addEventListener("lost", () => {
    source.close();
    ends("too many pages follow this agent: this one, of the oldest, tries again in half a minute", 30000);
  });
  source.onerror = () => {
    // Refused, the browser asks no more by itself.
    if (source.readyState === EventSource.CLOSED) ends("the agent refuses this page", 5000);
    else ends("the agent does not answer");
  };
}

follow();
