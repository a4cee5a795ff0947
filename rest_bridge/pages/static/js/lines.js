// Draws time series as SVG, for places to which a page's chart library is not loaded.

import { tracePath } from "./chart.js";
import { element, shape } from "./dom.js";
import { formatNumber, formatTime } from "./format.js";
import { readMoment, readPath } from "./paths.js";

const [WIDE, HIGH] = [600, 200]; // the units of the drawing, which is stretched to its place

/** Return an element that shows rows with a time and one or more figures as lines, or null for fewer than two moments. */
export function drawSeries({ values, time, unit, title }, rows) {
  const moments = rows.map((row) => readMoment(row, time));
  const known = rows.flatMap((row) => values.map((value) => readPath(row, value))).filter((value) => value !== null);
  if (moments.length < 2 || known.length < 2) return null;
  const [first, last] = [moments[0], moments.at(-1)];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const across = (moment) => (WIDE * (moment - first)) / (last - first || 1);
  const up = (value) => (high === low ? HIGH / 2 : HIGH - 4 - ((HIGH - 8) * (value - low)) / (high - low));
  const lines = values.map((value, index) => {
    const points = rows.map((row, at) => [across(moments[at]), readPath(row, value)]).map(([x, y]) => [x, y === null ? null : up(y)]);
    return shape("path", { class: index ? "second" : null, d: tracePath(points) });
  });
  const words = (value) => formatNumber(value, { unit });
  const [begin, end] = [first, last].map((moment) => formatTime(moment * 1000));
  const label = `${values.length > 1 ? values.join(", ") : title}: ${known.length} points from ${begin} to ${end}, ${words(low)} to ${words(high)}`;
  const about = { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": label };
  const scale = element("p", { class: "soft small scale" }, ...[high, (high + low) / 2, low].map((value) => element("span", {}, words(value))));
  const times = element("p", { class: "soft small times" }, element("span", {}, begin), element("span", {}, end));
  return element("div", { class: "lines", "data-points": known.length }, shape("svg", about, ...lines), scale, times);
}
