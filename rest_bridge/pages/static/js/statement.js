// Reads a token's statement and sums it up: the balance over time, what each tool cost, and the entries as CSV.

import { bars } from "./bars.js";
import { element, find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";

const PAGE = 500;
const MOST = 5000; // entries that the page reads, in ten requests
const DAY = 86_400_000;
const COLUMNS = ["at", "kind", "credits", "endpoint", "state", "no_charge_reason", "receipt_id", "call_id", "allowance", "transaction", "amount_usd"];

/**
 * Return {load, clear} of the section. `ask` sends a request with the token. An allowance sees its own calls only, so
 * what it could spend at an earlier time is not known, and not drawn.
 */
export function startStatement(ask, isAllowance) {
  const section = find("#overview");
  const days = find("#overview-days");
  let read = null;

  days.addEventListener("change", load);
  find("#download").addEventListener("click", () => read && download([...read.entries, ...read.payments.map(asEntry)]));

  async function load() {
    const now = Date.now();
    read = await readEntries(ask, days.value ? new Date(now - Number(days.value) * DAY).toISOString() : null);
    await draw(read, now);
  }

  function clear() {
    read = null;
    for (const place of findAll("dd, .pictures", section)) place.replaceChildren();
    find("#overview-note").textContent = "";
  }

  async function draw({ credits, entries, isWhole }, now) {
    const calls = entries.filter((one) => one.kind === "call");
    const spent = calls.filter((one) => one.state !== "voided").map((one) => -one.credits).reduce((sum, one) => sum + one, 0);
    const returned = entries.filter((one) => one.kind === "reversal").reduce((sum, one) => sum + one.credits, 0);
    const figures = { calls: calls.length, spent: spent - returned, uncharged: calls.filter((one) => one.state === "voided").length, added: entries.filter((one) => one.credits > 0 && one.kind !== "reversal").reduce((sum, one) => sum + one.credits, 0) };
    for (const [name, value] of Object.entries(figures)) find(`#overview-${name}`).textContent = formatNumber(value);
    find("#overview-note").textContent = isWhole ? "" : `Only the newest ${formatNumber(entries.length)} entries are shown and summed up here.`;
    const pictures = find(".pictures", section);
    const balance = isAllowance() ? null : await drawBalance(credits, entries, now);
    if (read?.entries !== entries) return; // the reader has forgotten the token, or chosen another period
    const tools = sumByTool(entries);
    const pairs = [
      ["Balance in credits", balance],
      ["Spending by tool, in credits", tools.length ? bars(tools) : null],
    ];
    pictures.replaceChildren(...pairs.filter(([, picture]) => picture).map(([words, picture]) => element("figure", { class: "half" }, element("figcaption", {}, words), picture)));
    for (const chart of findAll("[data-pending]", pictures)) chart.dispatchEvent(new Event("attached"));
  }

  return { load, clear };
}

/** Return a payment as a line of the CSV: the state is that of the money on the chain, and the credits have lines of their own. */
function asEntry({ at, amount_usd, state, transaction }) {
  return { at, kind: "payment", state, transaction, amount_usd };
}

/** Resolve to {credits, entries, payments, isWhole}: the newest entries since a time, the newest first. */
async function readEntries(ask, from) {
  const entries = [];
  let cursor = null;
  let credits = 0;
  let payments = [];
  do {
    const page = await ask("/api/payment/statement", { query: { limit: PAGE, cursor, from } });
    if (cursor === null) ({ credits, payments } = page);
    entries.push(...page.entries);
    cursor = page.next_cursor;
  } while (cursor && entries.length < MOST);
  return { credits, entries, payments, isWhole: !cursor };
}

/** Draw the balance after each entry, counted back from what is left now. Its steps are steps, not slopes. */
async function drawBalance(credits, entries, now) {
  const points = [[now, credits]];
  let left = credits;
  for (const one of entries) {
    const at = new Date(one.at).getTime();
    points.push([at, left]);
    left -= one.credits;
    points.push([at - 1, left]);
  }
  points.reverse();
  const { drawLines } = await import("./series.js");
  return drawLines(points.map(([at]) => at / 1000), [points.map(([, value]) => value)], ["Credits"]);
}

/** Return [tool, credits] for each path that cost something, the dearest first; what was given back is taken off. */
function sumByTool(entries) {
  const sums = new Map();
  for (const { endpoint, credits } of entries) {
    if (endpoint && credits) sums.set(endpoint, (sums.get(endpoint) ?? 0) - credits);
  }
  return [...sums].filter(([, sum]) => sum).sort(([, one], [, other]) => other - one);
}

/** Save the entries as a file of comma-separated values (RFC 4180). */
function download(entries) {
  const lines = [COLUMNS, ...entries.map((one) => COLUMNS.map((name) => one[name] ?? ""))].map((cells) => cells.map(quote).join(","));
  const address = URL.createObjectURL(new Blob([lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
  const link = element("a", { href: address, download: `statement-${new Date().toISOString().slice(0, 10)}.csv`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Quote a cell where it needs that; a text that a spreadsheet would take for a formula gets an apostrophe. */
function quote(value) {
  const words = typeof value === "string" && /^[=+@-]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}
