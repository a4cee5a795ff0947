// Draws the newest figure of each member of an object as a card.

import { changeMark } from "./chart.js";
import { element } from "./dom.js";
import { formatNumber, plainName } from "./format.js";
import { readFirst, readPath } from "./paths.js";

/** Return a card for each member of an object: its name, its figure, how it changed, and the date it is for. */
export function drawBoard({ values, label, time, unit }, rows) {
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
      element("h3", {}, plainName(name)),
      element("p", { class: "value" }, formatNumber(value, { unit: percent })),
      change === null ? null : element("p", {}, changeMark(change)),
      element("p", { class: "soft small" }, about.filter(Boolean).join(" · ")),
    );
  });
  return element("ul", { class: "cards figures", "data-points": members.length }, ...cards);
}
