// Shows the page of a token: balance and statement. Limits, allowances and webhooks have their own modules.

import { ageOf } from "./age.js";
import { startAllowances } from "./allowances.js";
import { element, find } from "./dom.js";
import { formatNumber } from "./format.js";
import { fetchJson, Problem, showProblem } from "./http.js";
import { startLimits } from "./limits.js";
import { checkReceipt, readReceipt, tellReceipt } from "./receipt_check.js";
import { startRemembered } from "./remembered.js";
import { startStatement } from "./statement.js";
import { bindTokenInput, getToken, looksLikeToken, setToken } from "./token.js";
import { drawChecks } from "./verdict.js";
import { startVisitor } from "./visitor.js";
import { startWebhooks } from "./webhooks.js";

const KINDS = {
  purchase: "Purchase", top_up: "Top-up", grant: "Granted", credit: "Credited", call: "Call", reversal: "Returned",
  refund: "Paid back", taken_back: "Taken back", withheld: "Payment in doubt", released: "Payment confirmed",
};
const STATES = { open: "still running", voided: "not charged", reversed: "returned later" };
const PAID = {
  quoted: "Arrived, not confirmed", pending: "Waiting for blocks", credited: "Credited", second: "Second payment, not credited",
  late: "Late, not confirmed", short: "Too little", held: "In doubt", undone: "Gone from the chain", refunded: "Paid back",
};
const PAGE = 20;
const trouble = find("#trouble");
const allowances = startAllowances(ask);
const overview = startStatement(ask, allowances.isAllowance);
const parts = [allowances, overview, startLimits(ask), startRemembered(ask), startWebhooks(ask, refreshMoney)];
let cursor = null;
let keys = null;

find("#sign-in").hidden = false;
startVisitor(find("#visitor"), attempt);
bindTokenInput(find("#token"));
find("#sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(open, event.submitter);
});
find("#forget").addEventListener("click", forget);
find("#more").addEventListener("click", (event) => attempt(() => readStatement(cursor), event.target));
find("#reissue button").addEventListener("click", (event) => attempt(keepToken, event.target));

/** Send a request with the reader's token, and resolve to its data. */
async function ask(path, options = {}) {
  return (await fetchJson(path, { ...options, token: getToken() })).data;
}

/** Call `act` with a button disabled until it ends, and show any error. */
async function attempt(act, button = null) {
  if (button) button.disabled = true;
  showProblem(trouble, null);
  try {
    await act();
  } catch (error) {
    showProblem(trouble, error);
  } finally {
    if (button) button.disabled = false;
  }
}

async function open() {
  if (!looksLikeToken(getToken())) throw new Problem("missing_token", "That is not a token. A token is svc_live_ followed by 64 characters.");
  await readBalance();
  find("#account").hidden = find("#forget").hidden = false;
  find("#balance-heading").focus();
  await readStatement(null);
  for (const part of parts) await part.load();
  find("#account").dataset.filled = "";
}

function forget() {
  setToken("");
  find("#token").value = "";
  for (const place of ["#balance", "#balance-about", "#payments", "#statement"]) find(place).replaceChildren();
  for (const part of parts) part.clear();
  find("#account").hidden = find("#forget").hidden = true;
  delete find("#account").dataset.filled;
  showProblem(trouble, null);
  find("#token").focus();
}

async function refreshMoney() {
  await readBalance();
  await overview.load();
  await readStatement(null);
}

async function readBalance() {
  const { credits, issued_at, reissue_at } = await ask("/api/payment/balance");
  find("#balance").replaceChildren(formatNumber(credits), element("span", { class: "unit" }, " credits"));
  find("#balance-about").replaceChildren(...(issued_at ? ["The token was issued ", ageOf(issued_at), "."] : []));
  find("#reissue").hidden = !reissue_at;
  const words = ["Someone requested a replacement for this token, as if it were lost. The replacement takes effect ", ageOf(reissue_at), "."];
  find("#reissue p").replaceChildren(...words);
}

async function keepToken() {
  await ask("/api/payment/reissue/cancel", { method: "POST" });
  await readBalance();
}

async function readStatement(from) {
  const { entries, payments, next_cursor } = await ask("/api/payment/statement", { query: { limit: PAGE, cursor: from } });
  cursor = next_cursor;
  find("#more").hidden = cursor === null;
  if (!from) find("#payments").replaceChildren(...(payments.length ? [element("h3", {}, "Your USDC on the chain"), drawPayments(payments)] : []));
  const body = from && find("#statement tbody");
  if (body) body.append(...entries.map(drawEntry));
  else find("#statement").replaceChildren(entries.length ? drawStatement(entries) : element("p", {}, "Nothing has happened yet."));
}

function drawPayments(payments) {
  const head = ["When", "State", "USDC"].map((name) => element("th", { scope: "col", class: name === "USDC" ? "number" : null }, name));
  const rows = payments.map(({ at, amount_usd, state, transaction }) =>
    element(
      "tr",
      {},
      element("td", { "data-label": "When" }, ageOf(at)),
      element("td", { "data-label": "State" }, PAID[state] ?? state, " ", element("code", { title: transaction }, `${transaction.slice(0, 10)}…`)),
      element("td", { class: "number", "data-label": "USDC" }, formatNumber(amount_usd)),
    ),
  );
  return element("table", { class: "narrow" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}

function drawStatement(entries) {
  const head = ["When", "What", "Credits", "Receipt"].map((name) => element("th", { scope: "col", class: name === "Credits" ? "number" : null }, name));
  const table = element("table", { class: "narrow" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...entries.map(drawEntry)));
  return element("div", {}, table, element("section", { id: "receipt", "aria-label": "Receipt", tabindex: -1, hidden: true }));
}

function drawEntry(entry) {
  const more = [entry.no_charge_reason, STATES[entry.state], entry.allowance && "by an allowance"].filter(Boolean).join(", ");
  const what = element("td", { "data-label": "What" }, KINDS[entry.kind] ?? entry.kind);
  if (entry.endpoint) what.append(" ", element("code", {}, entry.endpoint));
  if (entry.transaction) what.append(" ", element("code", { title: entry.transaction }, `${entry.transaction.slice(0, 10)}…`));
  if (more) what.append(element("span", { class: "soft small" }, ` ${more}`));
  const credits = formatNumber(entry.credits);
  const receipt = element("td", { "data-label": "Receipt" });
  if (entry.receipt_id) receipt.append(receiptButton(entry.receipt_id));
  return element(
    "tr",
    {},
    element("td", { "data-label": "When" }, ageOf(entry.at)),
    what,
    element("td", { class: "number", "data-label": "Credits" }, entry.credits > 0 ? `+${credits}` : credits),
    receipt,
  );
}

/** Return a button that fetches a receipt and verifies it here, in the browser. */
function receiptButton(id) {
  const button = element("button", { type: "button", class: "quiet" }, "Verify");
  button.addEventListener("click", () =>
    attempt(async () => {
      const found = readReceipt(JSON.stringify(await ask(`/api/receipt/${id}`)));
      keys ??= await ask("/.well-known/service-receipt-keys.json");
      const place = find("#receipt");
      place.replaceChildren(...drawChecks(await checkReceipt(found, keys, null), element("p", {}, tellReceipt(found.core))));
      place.hidden = false;
      place.focus();
    }, button),
  );
  return button;
}
