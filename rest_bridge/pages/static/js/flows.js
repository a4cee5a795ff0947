// Draws what moves from one name to another: senders on the left, receivers on the right, an arc for each pair.

import { element, shape } from "./dom.js";
import { formatNumber } from "./format.js";
import { readFirst } from "./paths.js";

const [THIN, THICK] = [1.5, 14]; // pixels of an arc
const STEP = 10; // height of a name in the units of the drawing

/** Return an element with an arc for each pair of names, as wide as the sum of its rows. */
export function drawFlows(picture, rows) {
  const pairs = new Map();
  for (const row of rows) {
    const ends = picture.ends.map((end) => shorten(String(readFirst(row, end) ?? "unknown")));
    if (picture.label && readFirst(row, picture.label) === "inflow") ends.reverse();
    const key = JSON.stringify(ends);
    pairs.set(key, (pairs.get(key) ?? 0) + Number(readFirst(row, picture.values[0]) ?? 0));
  }
  const flows = [...pairs].map(([key, value]) => [...JSON.parse(key), value]).sort((a, b) => b[2] - a[2]);
  const sides = [0, 1].map((side) => sum(flows, side));
  const most = flows[0][2] || 1;
  const height = STEP * Math.max(...sides.map((side) => side.size));
  const middle = (side, name) => STEP * ([...sides[side].keys()].indexOf(name) + 0.5);
  const arcs = flows.map(([from, to, value]) => {
    const [start, end] = [middle(0, from), middle(1, to)];
    const words = `${from} to ${to}: ${formatNumber(value, { unit: picture.unit })}`;
    const path = { class: "flow", d: `M0 ${start}C50 ${start} 50 ${end} 100 ${end}`, "stroke-width": (THIN + ((THICK - THIN) * value) / most).toFixed(1) };
    return shape("path", path, shape("title", {}, words));
  });
  const about = `${picture.title}: ${rows.length} from ${sides[0].size} to ${sides[1].size} names; the table lists them`;
  const svg = shape("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": about }, ...arcs);
  return element("div", { class: "flows", "data-points": rows.length }, names(sides[0], picture.unit), svg, names(sides[1], picture.unit));
}

function sum(flows, side) {
  const sums = new Map();
  for (const flow of flows) sums.set(flow[side], (sums.get(flow[side]) ?? 0) + flow[2]);
  return new Map([...sums].sort((a, b) => b[1] - a[1]));
}

function names(sums, unit) {
  const lines = [...sums].map(([name, value]) => element("li", {}, element("strong", {}, name), element("span", { class: "soft small" }, formatNumber(value, { unit }))));
  return element("ul", {}, ...lines);
}

function shorten(name) {
  return /^0x[0-9a-f]{16,}$/i.test(name) ? `${name.slice(0, 8)}…${name.slice(-4)}` : name;
}
