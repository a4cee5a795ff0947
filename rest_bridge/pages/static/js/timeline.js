// Draws rows along a line of time: a lane for each kind, a mark for each row, larger where its size is.

import { element, shape } from "./dom.js";
import { formatNumber, formatTime, plainName } from "./format.js";
import { readFirst } from "./paths.js";

const SIZES = { minor: 0.2, moderate: 0.55, major: 1 };
const [SMALL, LARGE] = [4, 10]; // radius, pixels

/** Return an element with the rows of a picture that have a time. */
export function drawTimeline(picture, rows) {
  const [size, name] = picture.values;
  const timed = rows
    .map((row) => ({ at: new Date(readFirst(row, picture.time)).getTime(), size: readFirst(row, size), name: readFirst(row, name ?? ""), lane: readFirst(row, picture.label) }))
    .filter((one) => Number.isFinite(one.at));
  if (!timed.length) return null;
  const [begin, end] = [Math.min(...timed.map((one) => one.at)), Math.max(...timed.map((one) => one.at))];
  const span = end - begin || 1;
  const most = Math.max(...timed.map((one) => Number(one.size)).filter(Number.isFinite), Number.MIN_VALUE);
  const share = (value) => SIZES[value] ?? (Number.isFinite(Number(value)) ? Number(value) / most : 0.2);
  const lanes = new Map();
  for (const one of timed) {
    const lane = picture.label ? String(one.lane ?? "other") : "";
    lanes.set(lane, [...(lanes.get(lane) ?? []), one]);
  }
  const drawn = [...lanes].map(([lane, all]) => {
    const marks = all.map((one) => {
      const words = typeof one.size === "number" ? formatNumber(one.size, { unit: picture.unit }) : one.size;
      const title = [one.name, words, formatTime(one.at)].filter(Boolean).join(" · ");
      const left = 2 + (96 * (one.at - begin)) / span;
      const radius = SMALL + (LARGE - SMALL) * share(one.size);
      return shape("circle", { class: "mark", cx: `${left.toFixed(2)}%`, cy: 14, r: radius.toFixed(1) }, shape("title", {}, title));
    });
    const words = `${lane ? `${plainName(lane)}: ` : ""}${all.length} from ${formatTime(begin)} to ${formatTime(end)}; the table lists them`;
    const line = shape("line", { class: "axis", x1: "0", x2: "100%", y1: 14, y2: 14 });
    const strip = shape("svg", { class: "lane", width: "100%", height: 28, role: "img", "aria-label": words }, line, ...marks);
    return element("div", { class: "lane-row" }, element("span", {}, lane ? plainName(lane) : "", element("span", { class: "soft small" }, ` ${all.length}`)), strip);
  });
  const ends = element("p", { class: "soft small ends" }, element("span", {}, formatTime(begin)), element("span", {}, formatTime(end)));
  return element("div", { class: "timeline", "data-points": timed.length }, ...drawn, ends);
}
