"use strict";
// What is drawn of the last ten minutes. Helpers and samples: console.js.

// Between two samples: commits a second of the group, and the mean times of a sync and of a commit at each node.
const committed = sample => Math.max(-1, ...sample.nodes.map(node => node.committed ?? -1));
const rate = (before, now) => {
  const seconds = (now.time - before.time) / 1000, [a, b] = [committed(before), committed(now)];
  return a < 0 || b < a || seconds <= 0 ? undefined : (b - a) / seconds;
};
const sync = (before, now) => {
  const count = now.syncs - before.syncs;
  return count > 0 ? (now.syncs * now.sync_us_avg - before.syncs * before.sync_us_avg) / count / 1000 : null;
};
const commit = (before, now) => {
  const count = now.commits - before.commits;
  return count > 0 ? (now.commit_us - before.commit_us) / count / 1000 : null;
};

const CHARTS = [
  { title: "Commits a second", unit: "/s", least: 10, lines: () => ["group"], value: (before, now) => rate(before, now) },
  { title: "Commit of its clients", unit: "ms", least: 1, lines: () => names(), value: (before, now, name) => {
    const [a, b] = [of(before, name), of(now, name)];
    return a.commits == null || b.commits == null ? undefined : commit(a, b);
  } },
  { title: "Lag", unit: "s", least: .1, lines: () => names(), value: (before, now, name) => {
    const lag = of(now, name).lag_ms;
    return lag == null ? undefined : lag / 1000;
  } },
  { title: "Queue", unit: "write sets", least: 10, lines: () => names(), value: (before, now, name) =>
    of(now, name).queue ?? undefined },
  { title: "Sync of the log", unit: "ms", least: 1, lines: () => names(), value: (before, now, name) => {
    const [a, b] = [of(before, name), of(now, name)];
    return a.syncs == null || b.syncs == null ? undefined : sync(a, b);
  } },
  { title: "Size of the log", unit: "GiB", least: .1, lines: () => names(), value: (before, now, name) => {
    const size = of(now, name).log_bytes;
    return size == null ? undefined : size / 2 ** 30;
  } },
];

// One for each chart, made once: what is in it changes.
const figures = new Map();

function makeFigure(chart) {
  const figure = make("figure"), caption = make("figcaption"), most = make("span", "", "soft");
  const svg = drawn("svg", { viewBox: "0 0 360 132", role: "img" }), legend = make("div", undefined, "legend");
  caption.append(make("strong", chart.title), most);
  figure.append(caption, svg, legend);
  $("charts").append(figure);
  figures.set(chart, { most, svg, legend });
}

function drawn(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function showLegend(legend, names) {
  if (legend.dataset.names === names.join(" ")) return;
  legend.dataset.names = names.join(" ");
  legend.replaceChildren(...names.map(name => {
    const entry = make("span"), mark = drawn("svg", { viewBox: "0 0 28 4", "aria-hidden": true });
    mark.append(drawn("path", { d: "M0 2L28 2", stroke: colour(name), "stroke-dasharray": dashes(name), "stroke-width": 2 }));
    entry.append(mark, name);
    return entry;
  }));
}

function showCharts() {
  const [width, height, left, bottom] = [360, 128, 34, 16];
  const end = samples[samples.length - 1].time, begin = end - MINUTES * 60000;
  const x = time => left + (width - left) * (time - begin) / (end - begin);
  for (const chart of CHARTS) {
    if (!figures.has(chart)) makeFigure(chart);
    const { most, svg, legend } = figures.get(chart);
    const lines = chart.lines().map(name => [name, samples.slice(1).map((now, at) =>
      [now.time, chart.value(samples[at], now, name)])]);
    const values = lines.flatMap(([, points]) => points.map(([, value]) => value)).filter(value => value != null);
    const top = Math.max(chart.least, ...values), y = value => (height - bottom) * (1 - value / top) + 4;
    const shown = value => value >= 100 ? value.toFixed(0) : `${Number(value.toPrecision(2))}`;
    const path = points => {
      let text = "", pen = false;
      for (const [time, value] of points) {
        // Not known breaks the line; a second in which there was nothing to measure does not.
        if (value === undefined || time < begin) pen = false;
        if (value == null || time < begin) continue;
        text += `${pen ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = true;
      }
      return text;
    };
    const latest = lines.map(([name, points]) => {
      const last = points.length ? points[points.length - 1][1] : null;
      return `${name} ${last == null ? "not known" : `${shown(last)} ${chart.unit}`}`;
    });
    put(most, `up to ${shown(top)} ${chart.unit}`);
    svg.setAttribute("aria-label", `${chart.title}: ${latest.join(", ")}`);
    const parts = [];
    for (const share of [0, .5, 1]) {
      parts.push(drawn("line", { x1: left, x2: width, y1: y(top * share), y2: y(top * share), stroke: "var(--line)" }));
      parts.push(drawn("text", { x: left - 4, y: y(top * share) + 4, "text-anchor": "end" }, shown(top * share)));
    }
    parts.push(drawn("text", { x: left, y: height + 2 }, clock(begin)));
    parts.push(drawn("text", { x: width, y: height + 2, "text-anchor": "end" }, clock(end)));
    for (const [name, points] of lines) {
      const [stroke, dash] = name === "group" ? ["var(--accent)", "none"] : [colour(name), dashes(name)];
      parts.push(drawn("path", { d: path(points), fill: "none", stroke, "stroke-dasharray": dash, "stroke-width": 1.5 }));
    }
    svg.replaceChildren(...parts);
    showLegend(legend, lines.length > 1 ? lines.map(([name]) => name) : []);
  }
}
