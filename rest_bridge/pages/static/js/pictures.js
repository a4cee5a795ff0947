// Draws the pictures of an answer as its tool declares them: every row in the answer, and nothing else.

import { bars, changeMark } from "./chart.js";
import { addCopyButtons } from "./copy.js";
import { element, findAll } from "./dom.js";
import { formatNumber, plainName } from "./format.js";
import { readFirst, readPath, readPaths } from "./paths.js";

/** Draw all pictures into a place. Resolves to the number drawn. */
export async function drawPictures(place, pictures, payload) {
  const drawn = [];
  for (const picture of pictures) {
    for (const [name, rows] of readPaths(payload, picture.rows)) {
      const drawing = rows && size(rows) ? await draw(picture, rows, payload) : null;
      const title = name ? `${picture.title}: ${plainName(name)}` : picture.title;
      if (drawing) drawn.push(figure(title, drawing, picture.kind === "series" ? "half" : null));
    }
  }
  place.replaceChildren(...drawn);
  place.classList.add("pictures");
  addCopyButtons(place);
  for (const chart of findAll("[data-pending]", place)) chart.dispatchEvent(new Event("attached"));
  return drawn.length;
}

function size(rows) {
  return Array.isArray(rows) ? rows.length : Object.keys(rows).length;
}

function figure(title, picture, width) {
  return element("figure", { class: width }, element("figcaption", {}, title), picture);
}

async function draw(picture, rows, payload) {
  if (picture.kind === "map") return (await import("./map.js")).drawMap(picture, rows);
  if (picture.kind === "series") return (await import("./series.js")).drawSeries(picture, rows);
  if (picture.kind === "timeline") return (await import("./timeline.js")).drawTimeline(picture, rows);
  if (picture.kind === "flows") return (await import("./flows.js")).drawFlows(picture, rows);
  if (picture.kind === "board") return board(picture, rows);
  if (picture.kind === "text") return text(picture, rows, payload);
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

/** Return a card for each member of an object: its name, its figure, how it changed, and the date it is for. */
function board({ values, label, time, unit }, rows) {
  const members = Object.entries(rows).filter(([, row]) => row !== null);
  const cards = members.map(([name, row]) => {
    const plain = typeof row === "number";
    const [value, change] = plain ? [row, null] : [readPath(row, values[0]), values[1] ? readPath(row, values[1]) : null];
    const of = label && !plain ? readFirst(row, label) : null;
    const percent = of === "percent" ? "%" : unit;
    const about = [of && of !== "percent" ? of : null, time && !plain ? String(readFirst(row, time) ?? "").slice(0, 10) : null];
    return element(
      "li",
      { class: "card" },
      element("h3", {}, name.length < 4 ? name.toUpperCase() : plainName(name)),
      element("p", { class: "value" }, formatNumber(value, { unit: percent })),
      change === null ? null : element("p", {}, changeMark(change)),
      element("p", { class: "soft small" }, about.filter(Boolean).join(" · ")),
    );
  });
  return element("ul", { class: "cards figures", "data-points": members.length }, ...cards);
}

function text({ values }, words, payload) {
  const tokens = values.length ? readPath(payload, values[0]) : null;
  const count = tokens === null ? null : element("p", { class: "soft" }, `About ${tokens} tokens`);
  return element("div", {}, count, element("pre", { class: "prompt", "data-points": 1 }, words));
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
