// Draws a box for each row, with its state in words and colour.

import { element } from "./dom.js";
import { readPath } from "./paths.js";

const GOOD = new Set(["operational", "ok", "up", "healthy", "none"]);
const BAD = new Set(["major_outage", "critical", "down", "major", "outage"]);

/** Return one box for each row, with its state in words and colour. */
export function drawGrid({ values, label }, rows) {
  const boxes = rows.map((row) => {
    const state = String(readPath(row, values[0]) ?? "unknown");
    const kind = GOOD.has(state) ? "good" : BAD.has(state) ? "bad" : "warn";
    return element("li", { class: `state ${kind}` }, element("strong", {}, String(readPath(row, label))), element("span", {}, state));
  });
  return element("ul", { class: "states", "data-points": rows.length }, ...boxes);
}
