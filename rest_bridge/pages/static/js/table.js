// Draws an answer as tables: single values first, then a table for each list of objects.

import { element, webLink } from "./dom.js";
import { formatNumber } from "./format.js";

const MOST = 100;

/** Return elements that show a payload as tables. `explain` returns {path, meaning} of the member at a path. */
export function drawTables(payload, title = "Values", explain = () => ({})) {
  if (Array.isArray(payload)) return [listOf(payload, title, "[]", explain)];
  const singles = [];
  const tables = [];
  walk(payload ?? {}, "", singles, tables, explain);
  const cells = singles.map(([name, value]) => [explained(name, explain(name)), show(value)]);
  const facts = cells.length ? [table(title, ["Name", "Value"], cells)] : [];
  return [...facts, ...tables];
}

function walk(value, path, singles, tables, explain) {
  for (const [name, member] of Object.entries(value)) {
    const at = path ? `${path}.${name}` : name;
    if (Array.isArray(member)) {
      if (member.length && typeof member[0] === "object") tables.push(listOf(member, at, `${at}[]`, explain));
      else singles.push([at, member.map(String).join(", ")]);
    } else if (member !== null && typeof member === "object") walk(member, at, singles, tables, explain);
    else singles.push([at, member]);
  }
}

/** Return a name that explains itself. */
function explained(name, { path, meaning }) {
  return meaning ? element("span", { title: meaning, "data-field": path }, name) : name;
}

function listOf(rows, title, path, explain) {
  if (!rows.length) return element("p", { class: "soft" }, `${title}: none`);
  const names = Object.keys(rows[0]);
  const shown = rows.slice(0, MOST).map((row) => names.map((name) => show(row[name])));
  const words = rows.length > MOST ? `${title}: the first ${MOST} of ${rows.length}` : `${title}: ${rows.length}`;
  return table(words, names.map((name) => explained(name, explain(`${path}.${name}`))), shown);
}

function table(caption, names, rows) {
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, made);
}

function show(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return formatNumber(value);
  if (typeof value === "object") return JSON.stringify(value);
  if (typeof value === "string" && /^https?:\/\//i.test(value)) return webLink(value, value.length > 60 ? `${value.slice(0, 58)}…` : value);
  return String(value);
}
