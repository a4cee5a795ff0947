// Draws the result of a tool in the frame that a host of MCP Apps gives it. All of it stands in the one file of the view:
// it loads nothing. It asks the host for the newest answer of a free tool alone, and shows others' text only as text.

import { ageOf, startTicking } from "./age.js";
import { element, find, readData } from "./dom.js";
import { formatNumber } from "./format.js";
import { drawHeadline, drawWarnings, plainPayload } from "./headline.js";
import { drawPictures } from "./pictures.js";
import { drawTables } from "./table.js";

const tool = readData("tool");
const waiting = new Map(); // requests to the host: what continues with the answer, by id
let asked = 0;
let can = {}; // what the host can do
let sent = {}; // the arguments of the call

addEventListener("message", ({ source, data }) => source === parent && data?.jsonrpc === "2.0" && take(data));
document.addEventListener("click", openLink);
begin();

async function begin() {
  const params = { appInfo: { name: "toolserver", version: tool.version }, appCapabilities: {}, protocolVersion: "2026-01-26" };
  const host = await ask("ui/initialize", params);
  can = host.hostCapabilities ?? {};
  follow(host.hostContext ?? {});
  tell("ui/notifications/initialized");
  new ResizeObserver(([{ contentRect }]) => tell("ui/notifications/size-changed", size(contentRect))).observe(document.body);
  startTicking();
}

function size({ width }) {
  return { width: Math.ceil(width), height: Math.ceil(document.documentElement.getBoundingClientRect().height) };
}

function post(message) {
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function tell(method, params = {}) {
  post({ method, params });
}

/** Send a request to the host. Resolves to its result; rejects if the host refuses. */
function ask(method, params) {
  asked += 1;
  post({ id: asked, method, params });
  return new Promise((resolve, reject) => waiting.set(asked, { resolve, reject }));
}

function take(message) {
  if (message.method === undefined) {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error) reject?.(new Error(message.error.message));
    else resolve?.(message.result);
  } else if (message.id !== undefined) {
    const known = message.method === "ping" || message.method === "ui/resource-teardown";
    post(known ? { id: message.id, result: {} } : { id: message.id, error: { code: -32601, message: "Method not found" } });
  } else if (message.method === "ui/notifications/tool-input") sent = message.params.arguments ?? {};
  else if (message.method === "ui/notifications/tool-result") show(message.params);
  else if (message.method === "ui/notifications/tool-cancelled") say("The call was cancelled.");
  else if (message.method === "ui/notifications/host-context-changed") follow(message.params);
}

/** Take over what the host says of itself: its theme. */
function follow({ theme }) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

function say(words) {
  find("#shown").replaceChildren(element("p", { class: "soft" }, words));
}

/** Show the result of a call: the figure, its pictures, its values as tables, what it cost; or why it was refused. */
async function show(result) {
  const answer = readAnswer(result);
  if (answer === null || result.isError) {
    find("#shown").replaceChildren(refusal(answer, result));
    return;
  }
  const payload = tool.enveloped ? answer.data : answer;
  const figure = drawHeadline(tool, payload);
  const pictures = element("div");
  const drawn = await drawPictures(pictures, tool.pictures, payload);
  const tables = drawTables(plainPayload(answer, tool.enveloped), tool.title);
  const values = drawn ? [element("details", {}, element("summary", {}, "All values"), ...tables)] : tables;
  find("#shown").replaceChildren(...figure, ...drawWarnings(answer), pictures, ...values, foot(answer, result._meta ?? {}));
}

/** Return the answer in a result, whose text hosts may have shortened, or null. */
function readAnswer(result) {
  if (result.structuredContent) return result.structuredContent;
  try {
    return JSON.parse(result.content?.[0]?.text ?? "null");
  } catch {
    return null;
  }
}

function refusal(problem, result) {
  const lines = [element("h2", {}, problem?.title ?? "This call was not answered")];
  lines.push(element("p", {}, problem?.detail ?? result.content?.[0]?.text ?? ""));
  for (const one of problem?.errors ?? []) lines.push(element("p", { class: "small" }, `${[one.loc].flat().join(".")}: ${one.msg}`));
  const wait = problem?.retry_after_seconds;
  if (wait) lines.push(element("p", {}, `Try again in ${wait} s.`));
  if (problem?.signup) lines.push(element("p", {}, element("a", { href: tool.buy }, "Buy credits")));
  lines.push(element("p", { class: "soft small" }, "Nothing was charged."));
  return element("div", { class: "problem", role: "alert" }, ...lines);
}

/** Return the last lines: how old the answer is and where it is from, what it cost and its receipt, and the button to ask again. */
function foot(answer, meta) {
  const about = { ...answer._meta, ...meta };
  const at = answer.updated_at ?? answer.captured_at ?? answer.generated_at;
  const stale = answer.stale ? element("strong", { class: "warn" }, "Stale. ") : null;
  const from = (answer._meta?.attribution ?? []).join(", ");
  const lines = [element("p", {}, stale, at ? ageOf(at, { before: "Updated " }) : null, from ? ` · From ${from}` : null)];
  if (answer._meta?.simulated) lines.push(element("p", { class: "warn" }, "Simulated: every value is invented."));
  lines.push(element("p", {}, ...price(about)));
  if (tool.free && can.serverTools) lines.push(again());
  return element("footer", { class: "small" }, ...lines);
}

function price({ credits_charged: charged, credits_remaining: left, receipt_id: receipt }) {
  const words = charged ? `Charged ${plural(charged)}` : tool.credits ? "Not charged" : "Free";
  const parts = [left === undefined ? words : `${words}, ${plural(left)} left`];
  if (receipt) parts.push(" · ", element("a", { href: tool.receipts }, `Receipt ${receipt}`));
  return parts;
}

function plural(credits) {
  return credits === 1 ? "1 credit" : `${formatNumber(credits)} credits`;
}

function again() {
  const button = element("button", { type: "button", class: "quiet" }, "Ask again");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await show(await ask("tools/call", { name: tool.name, arguments: sent }));
    } catch (error) {
      button.replaceWith(element("span", { role: "alert" }, `The host refused: ${error.message}`));
    }
  });
  return button;
}

/** Have the host open a link, which asks its user first: the frame itself goes nowhere. */
function openLink(event) {
  const link = event.target.closest?.("a[href]");
  if (!link) return;
  event.preventDefault();
  ask("ui/open-link", { url: link.href }).catch(() => link.replaceWith(`${link.textContent} (${link.href})`));
}
