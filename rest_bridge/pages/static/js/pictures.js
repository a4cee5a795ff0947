// Draws the pictures of an answer as its tool declares them: every row in the answer, and nothing else.

import { bars } from "./chart.js";
import { element, findAll } from "./dom.js";
import { formatNumber } from "./format.js";
import { readPath, readPaths } from "./paths.js";

/** Draw all pictures into a place. Resolves to the number drawn. */
export async function drawPictures(place, pictures, payload) {
  const drawn = [];
  for (const picture of pictures) {
    for (const [name, rows] of readPaths(payload, picture.rows)) {
      const drawing = rows && size(rows) ? await draw(picture, rows) : null;
      if (drawing) drawn.push(figure(name ? `${picture.title}: ${name}` : picture.title, drawing));
    }
  }
  place.replaceChildren(...drawn);
  for (const chart of findAll("[data-pending]", place)) chart.dispatchEvent(new Event("attached"));
  return drawn.length;
}

function size(rows) {
  return Array.isArray(rows) ? rows.length : Object.keys(rows).length;
}

function figure(title, picture) {
  return element("figure", {}, element("figcaption", {}, title), picture);
}

async function draw(picture, rows) {
  if (picture.kind === "map") return (await import("./map.js")).drawMap(picture, rows);
  if (picture.kind === "series") return (await import("./series.js")).drawSeries(picture, rows);
  if (picture.kind === "matrix") return matrix(rows);
  if (picture.kind === "grid") return grid(picture, rows);
  return drawBars(picture, rows);
}

function drawBars({ values, label, unit }, rows) {
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

/** Return a matrix of correlations as a table with cells coloured from -1 to 1; null stays blank. */
function matrix(rows) {
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

const GOOD = new Set(["operational", "ok", "up", "healthy", "none"]);
const BAD = new Set(["major_outage", "critical", "down", "major", "outage"]);

/** Return one box for each row, with its state in words and colour. */
function grid({ values, label }, rows) {
  const boxes = rows.map((row) => {
    const state = String(readPath(row, values[0]) ?? "unknown");
    const kind = GOOD.has(state) ? "good" : BAD.has(state) ? "bad" : "warn";
    return element("li", { class: `state ${kind}` }, element("strong", {}, String(readPath(row, label))), element("span", {}, state));
  });
  return element("ul", { class: "states", "data-points": rows.length }, ...boxes);
}
