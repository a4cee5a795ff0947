// Draws a map of the world with a mark for each row that has a place.

import { element, shape } from "./dom.js";
import { formatNumber, formatTime } from "./format.js";
import { readPath } from "./paths.js";
import { LAND } from "./world.js";

/** Draw rows with `lat` and `lon` on a map. The size of a mark grows with its figure. Rows without a place are counted. */
export function drawMap(picture, rows) {
  const placed = rows.filter((row) => isNumber(row[picture.lat]) && isNumber(row[picture.lon]));
  const figures = placed.map((row) => Number(readPath(row, picture.values[0] ?? "-") ?? 0));
  const [least, most] = [Math.min(...figures), Math.max(...figures)];
  const marks = placed.map((row, index) => {
    const radius = picture.values.length && most > least ? 0.8 + (2.2 * (figures[index] - least)) / (most - least) : 1.5;
    const at = { class: "mark", cx: row[picture.lon], cy: -row[picture.lat], r: Math.round(radius * 100) / 100 };
    return shape("circle", at, shape("title", {}, describe(picture, row)));
  });
  const about = { class: "world", viewBox: "-180 -90 360 180", role: "img", "data-points": marks.length };
  const label = `${picture.title}: ${marks.length} places on a map of the world; the table lists them`;
  const map = shape("svg", { ...about, "aria-label": label }, shape("path", { class: "land", d: LAND }), ...marks);
  const without = rows.length - placed.length;
  return element("div", {}, map, without ? element("p", { class: "soft small" }, `${without} without a place`) : null);
}

function describe({ values, label, time, unit }, row) {
  const parts = [label && readPath(row, label)];
  if (values.length) parts.push(formatNumber(readPath(row, values[0]), { unit }));
  if (time && readPath(row, time)) parts.push(formatTime(readPath(row, time)));
  return parts.filter(Boolean).join(" · ");
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
