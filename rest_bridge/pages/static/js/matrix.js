// Draws correlations of names with each other as a table with coloured cells.

import { element } from "./dom.js";
import { formatNumber } from "./format.js";

/** Return a matrix of correlations as a table with cells coloured from -1 to 1; null stays blank. */
export function drawMatrix(picture, rows) {
  const names = Object.keys(rows);
  const head = element("tr", {}, element("td"), ...names.map((name) => element("th", { scope: "col" }, name)));
  const lines = names.map((name) => {
    const cells = names.map((other) => heat(rows[name]?.[other] ?? null));
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells);
  });
  const table = element("table", { class: "matrix", "data-points": names.length ** 2 }, element("thead", {}, head), element("tbody", {}, ...lines));
  return element("div", { class: "scroll", tabindex: 0 }, table);
}

function heat(value) {
  const level = value === null ? "none" : Math.round(Math.abs(value) * 4);
  const side = value === null ? "none" : value < 0 ? "negative" : "positive";
  return element("td", { class: `number heat-${side}-${level}` }, value === null ? "" : formatNumber(value, { digits: 2 }));
}
