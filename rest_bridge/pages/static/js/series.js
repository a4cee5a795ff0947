// Draws time series with uPlot, which is loaded with the first of them: what a reader sees first does not wait for it.

import { element } from "./dom.js";
import { formatNumber, formatTime } from "./format.js";
import { readMoment, readPath } from "./paths.js";

await Promise.all([load("script", { src: address("uPlot.js") }), load("link", { rel: "stylesheet", href: address("uPlot.css") })]);

function address(name) {
  return new URL(`../vendor/uplot/${name}`, import.meta.url).href;
}

/** Resolves when a file of the library is there, or has failed: the browser reports that, and an answer has no line then. */
function load(tag, attributes) {
  const part = element(tag, attributes);
  const done = new Promise((resolve) => ["load", "error"].forEach((name) => part.addEventListener(name, resolve, { once: true })));
  document.head.append(part);
  return done;
}

/** Return an element that shows rows with a time and one or more figures as lines. It is drawn when it is in the page. */
export function drawSeries({ values, time, unit, title }, rows) {
  const moments = rows.map((row) => readMoment(row, time));
  const lines = values.map((value) => rows.map((row) => readPath(row, value)));
  return drawLines(moments, lines, values.length > 1 ? values : [title], unit);
}

/** Return lines over moments, in seconds since the epoch, or null for fewer than two moments or without the library. */
export function drawLines(moments, lines, names, unit = "") {
  if (moments.length < 2 || !globalThis.uPlot) return null;
  const points = lines.flat().filter((value) => value !== null).length;
  const label = `${names.join(", ")}: ${points} points from ${written(moments[0])} to ${written(moments.at(-1))}`;
  const place = element("div", { class: "chart", role: "img", "aria-label": label, "data-points": points, "data-pending": "" });
  place.addEventListener("attached", () => plot(place, moments, lines, names, unit), { once: true });
  return place;
}

function plot(place, moments, lines, names, unit) {
  delete place.dataset.pending;
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const [line, soft, accent] = ["--line", "--soft", "--accent"].map((name) => resolve(place, color(name)));
  const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const width = () => Math.max(240, place.clientWidth);
  const digits = (value) => (value === null ? "–" : formatNumber(value, { unit }));
  const pick = (values, at) => (at === null || at === undefined ? values.at(-1) : values[at]); // the newest, until one is pointed at
  const options = {
    width: width(),
    height: 260,
    legend: { show: true, live: true },
    axes: [{ ...axis, space: 96 }, { ...axis, size: 76, values: (_, ticks) => ticks.map((tick) => formatNumber(tick)) }],
    series: [
      { label: "Time", value: (_chart, _value, _series, at) => formatTime(pick(moments, at) * 1000) },
      ...names.map((name, index) => ({
        label: name,
        stroke: accent,
        width: 2,
        dash: index ? [6, 4] : undefined,
        points: { show: lines[0].length < 40 },
        value: (_chart, _value, _series, at) => digits(pick(lines[index], at)),
      })),
    ],
  };
  const chart = new globalThis.uPlot(options, [moments, ...lines], place);
  new ResizeObserver(() => chart.setSize({ width: width(), height: 260 })).observe(place);
}

/** Return a colour that the canvas can read: the value of `light-dark()` in this place. */
function resolve(place, value) {
  const probe = element("span");
  probe.style.color = value;
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function written(moment) {
  return new Date(moment * 1000).toISOString().slice(0, 16).replace("T", " ");
}
