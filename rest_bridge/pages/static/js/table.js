// Draws an answer as tables: single values first, then a table for each list of objects.

import { element, webLink } from "./dom.js";
import { formatNumber } from "./format.js";

const MOST = 100;

/** Return elements that show a payload as tables. */
export function drawTables(payload, title = "Values") {
  if (Array.isArray(payload)) return [listOf(payload, title)];
  const singles = [];
  const tables = [];
  walk(payload ?? {}, "", singles, tables);
  const facts = singles.length ? [table(title, ["Name", "Value"], singles.map(([name, value]) => [name, show(value)]))] : [];
  return [...facts, ...tables];
}

function walk(value, path, singles, tables) {
  for (const [name, member] of Object.entries(value)) {
    const at = path ? `${path}.${name}` : name;
    if (Array.isArray(member)) {
      if (member.length && typeof member[0] === "object") tables.push(listOf(member, at));
      else singles.push([at, member.map(String).join(", ")]);
    } else if (member !== null && typeof member === "object") walk(member, at, singles, tables);
    else singles.push([at, member]);
  }
}

function listOf(rows, title) {
  if (!rows.length) return element("p", { class: "soft" }, `${title}: none`);
  const names = Object.keys(rows[0]);
  const shown = rows.slice(0, MOST).map((row) => names.map((name) => show(row[name])));
  const words = rows.length > MOST ? `${title}: the first ${MOST} of ${rows.length}` : `${title}: ${rows.length}`;
  return table(words, names, shown);
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
