// Draws what stands above a picture of an answer: its figure with its change, and the line that says what it is about.

import { changeMark } from "./chart.js";
import { element } from "./dom.js";
import { formatNumber, formatTime, plainName } from "./format.js";
import { readPath } from "./paths.js";

/** Return the figure of a payload and its note, or an empty list. `card` names the paths: value, unit, note, change. */
export function drawHeadline(card, payload) {
  const value = card.value && payload ? readPath(payload, card.value) : null;
  if (value === null) return [];
  const change = card.change ? readPath(payload, card.change) : null;
  const words = typeof value === "number" ? formatNumber(value, { unit: card.unit }) : String(value);
  const note = card.note.replace(/\{([^}]*)\}/g, (_, paths) => readAlternative(payload, paths));
  const mark = change === null ? [] : [" ", changeMark(change)];
  return [element("p", { class: "value" }, words, ...mark), element("p", { class: "soft" }, note)];
}

/** Return a line for each warning of an answer: what is old, missing or shortened. A list that is shortened is no trouble. */
export function drawWarnings(answer) {
  return (answer.warning ?? []).map(({ section, code, message }) => {
    const parts = section.split(".").filter((part, index) => index || part !== "data").map(plainName);
    return element("p", { class: code === "truncated" ? "soft small" : "warn small" }, [...parts, message].join(": "));
  });
}

/** Return the payload of an answer without the members that surround every payload. */
export function plainPayload(answer, enveloped) {
  const payload = enveloped ? answer.data : answer;
  if (!payload || Array.isArray(payload) || enveloped) return payload;
  const { _meta, source, endpoint, warning, stale, captured_at, ...rest } = payload;
  return rest;
}

/** Return the first of alternatives, separated by `|`, without a missing value. One may be several paths with commas between. */
function readAlternative(payload, alternatives) {
  const read = alternatives.split("|").map((paths) => paths.split(", ").map((path) => readPath(payload, path)));
  return (read.find((values) => !values.includes(null)) ?? [null]).map(written).join(", ");
}

/** Return a part of a note: figures and times as the reader writes them. */
function written(value) {
  if (typeof value === "number") return formatNumber(value);
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? formatTime(value) : String(value ?? "–");
}
