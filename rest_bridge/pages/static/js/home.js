// Fills the live cards from one document of kept values, fetched every ten seconds while the page is visible.

import { ageOf, setClock } from "./age.js";
import { sparkline } from "./chart.js";
import { element, find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";
import { fetchJson, showProblem } from "./http.js";

const EVERY_MS = 10_000;
const shown = new Map(); // what each card shows, so that only changed cards are redrawn

refresh();
setInterval(() => document.visibilityState === "visible" && refresh(), EVERY_MS);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());

async function refresh() {
  const trouble = find("#trouble");
  try {
    const { data } = await fetchJson("/live.json");
    setClock(data.generated_at);
    const cards = new Map(findAll("#cards .card").map((card) => [card.dataset.tool, card]));
    for (const one of data.values) {
      const key = JSON.stringify([one.value, one.updated_at, one.note, one.series.length, one.stale]);
      if (!cards.has(one.tool) || shown.get(one.tool) === key) continue;
      shown.set(one.tool, key);
      draw(cards.get(one.tool), one);
    }
    showProblem(trouble, null);
    find("#cards").dataset.filled = data.values.filter((one) => one.value !== null).length;
  } catch (error) {
    showProblem(trouble, error);
  }
}

function draw(card, { value, unit, note, updated_at, stale, series }) {
  const place = find(".value", card);
  const isNumber = typeof value === "number";
  place.replaceChildren(...(value === null ? ["no value yet"] : isNumber ? figure(value, unit) : [String(value)]));
  place.classList.toggle("none", value === null);
  place.classList.toggle("words", value !== null && !isNumber);
  find(".note", card).replaceChildren(...note.map(noted));
  const line = isNumber && sparkline(series.map(([, figure]) => figure));
  find(".line", card).replaceChildren(...(line ? [line] : []));
  find(".age", card).replaceChildren(updated_at ? ageOf(updated_at) : "", stale ? " · stale" : "");
}

/** Return a figure. A unit of more than one character is set smaller beside it. */
function figure(value, unit) {
  if (unit.length < 2) return [formatNumber(value, { unit })];
  return [formatNumber(value), element("span", { class: "unit" }, ` ${unit}`)];
}

/** Return a part of a note: text unchanged, figures in the reader's language, moments as ages. */
function noted(part) {
  if (typeof part === "number") return formatNumber(part);
  if (typeof part === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(part)) return ageOf(part);
  return part === null ? "–" : String(part);
}
