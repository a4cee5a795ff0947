// Draws small SVG charts from exactly the given points. Time series on a tool's page use uPlot.

import { element, shape } from "./dom.js";
import { formatNumber } from "./format.js";

/** Return a line through numbers, without axes; null breaks the line. Return null for fewer than two numbers. */
export function sparkline(values, { label = "" } = {}) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return null;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const across = 100 / (values.length - 1);
  const up = (value) => (high === low ? 15 : 28 - (26 * (value - low)) / (high - low));
  const path = tracePath(values.map((value, index) => [index * across, value === null || value === undefined ? null : up(value)]));
  const words = label || `${known.length} values from ${formatNumber(low)} to ${formatNumber(high)}`;
  const about = { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": words };
  return shape("svg", { ...about, "data-points": known.length }, shape("path", { d: path }));
}

/** Return the path through points [x, y]; where y is null, the line breaks. */
export function tracePath(points) {
  const steps = points.map(([x, y], index) => (y === null ? "" : `${points[index - 1]?.[1] == null ? "M" : "L"}${round(x)} ${round(y)}`));
  return steps.join("");
}

/** Return a change in percent with its sign, an arrow and a word, so that colour is not all that tells up from down. */
export function changeMark(percent) {
  const [kind, arrow, words] = percent > 0 ? ["rise", "▲", "up"] : percent < 0 ? ["fall", "▼", "down"] : ["flat", "→", "unchanged"];
  const written = `${percent > 0 ? "+" : ""}${formatNumber(percent, { digits: 2 })} %`;
  return element("span", { class: `change ${kind}` }, element("span", { "aria-hidden": "true" }, arrow), element("span", { class: "unseen" }, words), ` ${written}`);
}

/** Return a coordinate with two decimals. */
export function round(value) {
  return Math.round(value * 100) / 100;
}
