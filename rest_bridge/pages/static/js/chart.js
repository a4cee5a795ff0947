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
  let path = "";
  values.forEach((value, index) => {
    if (value === null || value === undefined) return;
    const joins = index > 0 && values[index - 1] !== null && values[index - 1] !== undefined;
    path += `${joins ? "L" : "M"}${round(index * across)} ${round(up(value))}`;
  });
  const words = label || `${known.length} values from ${formatNumber(low)} to ${formatNumber(high)}`;
  const about = { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": words };
  return shape("svg", { ...about, "data-points": known.length }, shape("path", { d: path }));
}

/**
 * Return rows of [name, value] as bars from a common zero, with the figure beside each. Negative values go to the left.
 * `format` formats a figure.
 */
export function bars(rows, { format = formatNumber } = {}) {
  const most = Math.max(...rows.map(([, value]) => Math.abs(value ?? 0)), Number.MIN_VALUE);
  const negative = rows.some(([, value]) => value < 0);
  const lines = rows.map(([name, value]) => {
    const share = (100 * Math.abs(value ?? 0)) / most / (negative ? 2 : 1);
    const start = negative ? (value < 0 ? 50 - share : 50) : 0;
    const box = { class: value < 0 ? "negative" : "positive", x: round(start), y: 0, width: round(share), height: 8 };
    const picture = { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" };
    return element(
      "div",
      { class: "bar-row" },
      element("span", {}, name),
      shape("svg", picture, value === null || value === undefined ? null : shape("rect", box)),
      element("span", { class: "number" }, format(value)),
    );
  });
  return element("div", { class: "bars", "data-points": rows.length }, ...lines);
}

/** Return a change in percent with its sign, an arrow and a word, so that colour is not all that tells up from down. */
export function changeMark(percent) {
  const [kind, arrow, words] = percent > 0 ? ["rise", "▲", "up"] : percent < 0 ? ["fall", "▼", "down"] : ["flat", "→", "unchanged"];
  const written = `${percent > 0 ? "+" : ""}${formatNumber(percent, { digits: 2 })} %`;
  return element("span", { class: `change ${kind}` }, element("span", { "aria-hidden": "true" }, arrow), element("span", { class: "unseen" }, words), ` ${written}`);
}

function round(value) {
  return Math.round(value * 100) / 100;
}
