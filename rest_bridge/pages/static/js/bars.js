// Draws rows as bars from a common zero: one for each row, or two that go to both sides.

import { round } from "./chart.js";
import { element, shape } from "./dom.js";
import { formatNumber } from "./format.js";
import { readPath } from "./paths.js";

/** Return an element with the rows of a picture, or with the figures of an object by name. */
export function drawBars({ values, label, unit }, rows) {
  const format = (value) => formatNumber(value, { unit });
  if (!Array.isArray(rows)) return bars(Object.entries(rows), { format });
  const named = (row) => shorten(String(readPath(row, label) ?? "–"));
  if (values.length < 2) return bars(rows.map((row) => [named(row), readPath(row, values[0])]), { format });
  const [up, down] = values;
  const both = rows.flatMap((row) => [
    [`${named(row)}, in`, readPath(row, up)],
    [`${named(row)}, out`, -(readPath(row, down) ?? 0)],
  ]);
  return bars(both, { format: (value) => format(Math.abs(value)) });
}

function shorten(words) {
  return words.length > 90 ? `${words.slice(0, 88)}…` : words;
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
