// Guides the purchase of credits by transfer: amount, payment, confirmation, token. Its secrets stay in this page.

import { waitForToken } from "./confirm.js";
import { copyButton } from "./copy.js";
import { find, findAll, readData } from "./dom.js";
import { startFirstCall } from "./first_call.js";
import { formatNumber } from "./format.js";
import { fetchJson, href, Problem, showProblem } from "./http.js";
import { findWallet, payByWallet, signByWallet } from "./wallet.js";

const shop = readData("shop");
const STEPS = ["amount-form", "pay", "wait", "bought"];
const LOOK_MS = 4000; // how often the page asks the service whether the payment has arrived: 15 times a minute
const trouble = find("#trouble");
let offer = null; // the service's offer, with the memo that claims the token
let claim = null; // the payment being confirmed: {tx_hash, nonce, payer_signature?}
let waiting = new AbortController();
const tried = new Set(); // transactions that were already confirmed or refused
let ends = 0; // when the offer ends, in milliseconds of `performance.now()`
let at = 0;
let looking = false;
const link = shop.pay_call ? new URLSearchParams(location.search).get(shop.link) : null; // to a call that a chat asked for
const chat = link ? await import("./chat_call.js") : null;
let account = null; // how credits for the account of a link are asked for, once it is known to be the reader's
const firstCall = shop.first ? startFirstCall(find("#spend"), find("#first-answer"), shop.first.path, () => find("#token").textContent) : null;

find("#steps").hidden = find("#resume").hidden = false;
for (const place of findAll("[data-copy]")) place.append(copyButton(() => find(`#${place.dataset.copy}`).textContent));
find("#amount").addEventListener("input", tellCredits);
for (const button of findAll("[data-usd]")) button.addEventListener("click", () => choose(button.dataset.usd));
on("#amount-form", "submit", askForOffer);
on("#demo-pay", "click", payByDemo);
on("#browser-pay", "click", payByBrowser);
on("#browser-sign", "click", signByBrowser);
on("#paid-form", "submit", () => confirm({ tx_hash: read("#tx"), nonce: offer.memo }));
on("#sign-form", "submit", () => confirm({ ...claim, payer_signature: read("#signature") }));
on("#resume-form", "submit", resume);
on("#again", "click", () => show(0));
on("#back", "click", goBack);
on("#hide", "click", hide);
on("#own-form", "submit", payCallByToken);
on("#proof-form", "submit", proveAccount);
addEventListener("beforeunload", (event) => at >= 2 && event.preventDefault());
setInterval(countDown, 1000);
if (shop.watch) setInterval(look, LOOK_MS);
tellCredits();
show(0, { quietly: true });
if (chat) await openLink();

/** Show what a chat asked for. For an account, nothing is sold before it is known to be the reader's. */
async function openLink() {
  try {
    const asked = await chat.openLink(shop.pay_call, link);
    if (asked.account) find("#amount-form").hidden = find("#resume").hidden = true;
    if (asked.remembered) sellForAccount(chat.byCookie(shop.pay_call, link));
  } catch (error) {
    showProblem(trouble, error);
  }
}

async function payCallByToken() {
  await chat.payCall(shop.pay_call, link, read("#own-token"));
  find("#own-token").value = "";
}

async function proveAccount() {
  const proved = await chat.proveAccount(shop.pay_call, link, read("#proof"));
  find("#proof").value = "";
  sellForAccount(proved);
  find("#amount").focus();
}

function sellForAccount(proved) {
  account = proved;
  find("#proof-form").hidden = find("#per-day").closest(".amount").hidden = true; // limits of a token are set on /account
  find("#amount-form").hidden = false;
}

/** Call `act` for an event with its button disabled until it ends, and show any error. */
function on(selector, kind, act) {
  const place = find(selector);
  place?.addEventListener(kind, async (event) => {
    event.preventDefault();
    const button = event.submitter ?? place;
    button.disabled = true;
    showProblem(trouble, null);
    try {
      await act();
    } catch (error) {
      if (error.name !== "AbortError") showProblem(trouble, known(error));
    } finally {
      button.disabled = false;
    }
  });
}

/** Turn a wallet's refusal into a Problem, because it is not a fault of the page. */
function known(error) {
  return error instanceof Problem || !Number.isInteger(error.code) ? error : new Problem("wallet_refused", `The wallet says: ${error.message}`);
}

function read(selector) {
  return find(selector).value.trim();
}

function show(step, { quietly = false } = {}) {
  at = step;
  STEPS.forEach((id, index) => (find(`#${id}`).hidden = index !== step));
  findAll("#steps li").forEach((item, index) => {
    if (index === step) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    item.classList.toggle("past", index < step);
  });
  find("#resume").hidden = step !== 0;
  find("#done").hidden = true;
  if (!quietly) find(`#${STEPS[step]} [tabindex]`).focus();
}

function choose(usd) {
  find("#amount").value = usd;
  tellCredits();
}

function tellCredits() {
  const credits = Math.floor(Number(read("#amount")) * shop.credits_per_usd);
  const calls = shop.prices.map((price) => Math.floor(credits / price));
  const range = [...new Set(calls)].sort((a, b) => a - b).map((one) => formatNumber(one)).join(" to ");
  find("#buys").textContent = credits >= shop.credits_per_usd ? `${formatNumber(credits)} credits: ${range} calls` : "at least 1 US dollar";
}

async function askForOffer() {
  const begun = performance.now();
  const amount = Number(read("#amount"));
  offer = account ? await chat.offerTopUp(amount, account) : await offerToken(amount);
  const lasts = shop.quote_s === null ? new Date(offer.expires_at).getTime() - Date.now() : 1000 * shop.quote_s;
  ends = begun + lasts; // by elapsed time: this machine's clock may be wrong
  const usdc = formatNumber(offer.quote.amount_usd, { digits: 6 });
  find("#due").textContent = `${usdc} USDC`;
  find("#usdc").textContent = String(offer.quote.amount_usd);
  find("#wallet").textContent = offer.wallet;
  find("#memo").textContent = offer.memo;
  find("#gets").textContent = `${formatNumber(offer.quote.credits)} credits`;
  find("#qr").src = `${href(shop.qr)}?payment=${encodeURIComponent(offer.payment_uri)}`;
  find("#uri").href = offer.payment_uri;
  find("#review").textContent = offer.review ?? "";
  find("#review").hidden = !offer.review;
  if (find("#browser-pay")) find("#browser-pay").hidden = !findWallet();
  countDown();
  show(1);
}

async function offerToken(amount_usd) {
  const body = { amount_usd };
  if (read("#per-day")) body.credits_per_day = Number(read("#per-day"));
  return (await fetchJson("/api/payment/buy-credits", { method: "POST", body })).data;
}

function countDown() {
  if (at !== 1) return;
  const left = Math.floor((ends - performance.now()) / 1000);
  const clock = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  find("#left").textContent = left > 0 ? clock : "This offer has ended. Request a new one.";
  find("#left").classList.toggle("bad", left <= 0);
}

/** Check whether the payment has arrived. Errors are shown beside the hash field, which works without this check. */
async function look() {
  if (at !== 1 || looking) return;
  looking = true;
  try {
    const { memo } = offer;
    const found = await findPayment(memo);
    if (found && at === 1 && offer.memo === memo && !tried.has(found)) await attemptConfirm({ tx_hash: found, nonce: memo });
    find("#seen").textContent = "Waiting for your payment. This page detects it automatically, a few seconds after you pay.";
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    find("#seen").textContent = `${error.message} You can continue with the transaction hash.`;
  } finally {
    looking = false;
  }
}

async function findPayment(nonce) {
  return (await fetchJson(shop.watch, { method: "POST", body: { nonce } })).data.tx_hash;
}

async function resume() {
  const nonce = read("#old-memo");
  const tx_hash = read("#old-tx") || (await findPayment(nonce));
  if (!tx_hash) throw new Problem("payment_pending", "No payment to the address of this purchase has arrived yet.");
  await confirm({ tx_hash, nonce });
}

/** Confirm a payment that the page found without a click, and show any error. */
async function attemptConfirm(given) {
  try {
    await confirm(given);
  } catch (error) {
    if (error.name !== "AbortError") showProblem(trouble, error);
  }
}

async function payByDemo() {
  const body = { to: offer.wallet, amount_usd: offer.quote.amount_usd };
  const { data } = await fetchJson(shop.demo_pay, { method: "POST", body });
  await confirm({ tx_hash: data.tx_hash, nonce: offer.memo });
}

async function payByBrowser() {
  await confirm({ tx_hash: await payByWallet(findWallet(), offer), nonce: offer.memo });
}

async function signByBrowser() {
  find("#signature").value = await signByWallet(findWallet(), find("#to-sign").textContent);
}

async function confirm(given) {
  claim = given;
  tried.add(given.tx_hash);
  waiting.abort();
  waiting = new AbortController();
  find("#hash").textContent = claim.tx_hash;
  find("#sign-form").hidden = true;
  tellProgress({});
  show(2);
  try {
    const bought = await waitForToken(claim, { tell: tellWaiting, signal: waiting.signal, account });
    if (account) tellAdded(bought);
    else showToken(bought);
    if (chat && !account) await chat.payCall(shop.pay_call, link, bought.token);
  } catch (error) {
    if (error.code === "payer_proof_required") askForSignature(error);
    else if (error.name !== "AbortError" && at === 2) show(offer && claim.nonce === offer.memo ? 1 : 0, { quietly: true });
    throw error;
  }
}

function tellWaiting({ code, message, body }) {
  if (code === "payment_pending") tellProgress(body);
  else find("#far").textContent = `${message} Trying again.`;
}

function tellProgress({ confirmations, required }) {
  const bar = find("#progress");
  if (required && confirmations) {
    bar.max = required;
    bar.value = confirmations;
  } else bar.removeAttribute("value");
  const far = confirmations ? `${formatNumber(confirmations)} of ${formatNumber(required)} confirmations.` : "Looking for the transaction.";
  find("#far").textContent = far;
}

/** Show the text to sign. The refusal contains it, with `<nonce>` in place of the memo. */
function askForSignature({ body }) {
  const text = /“([^”]+)”/.exec(body.detail)?.[1] ?? "";
  find("#to-sign").textContent = text.replace("<nonce>", claim.nonce);
  find("#browser-sign").hidden = !findWallet();
  find("#sign-form").hidden = false;
}

function showToken({ token, credits, late }) {
  find("#got").textContent = `${formatNumber(credits)} credits${late ? ", paid late," : ""}`;
  find("#token").textContent = token;
  find("#first-call").textContent = `curl ${shop.first_call} \\\n  -H 'Authorization: Bearer ${token}'`;
  offer = claim = null;
  for (const field of findAll("#tx, #old-tx, #old-memo, #signature")) field.value = "";
  find("#memo").textContent = "";
  show(3);
}

/** Say that the credits are on the account. Its token is known to the reader, so it is not shown. */
function tellAdded({ credits }) {
  offer = claim = null;
  show(0, { quietly: true });
  find("#amount-form").hidden = find("#resume").hidden = find("#steps").hidden = true;
  chat.tellAdded(credits);
}

function goBack() {
  waiting.abort();
  show(offer ? 1 : 0);
}

function hide() {
  find("#token").textContent = find("#first-call").textContent = "";
  firstCall?.clear();
  show(0, { quietly: true });
  find("#done").hidden = false;
}
