// Pays for a call that a chat asked for: what its link says, and the token that pays or proves whose account it is.

import { find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";
import { fetchJson } from "./http.js";

/** Read a link and show what it asks for. Resolves to {credits, account, …}; throws a Problem for a link that is not valid. */
export async function openLink(path, link) {
  const { data: asked } = await fetchJson(path, { method: "POST", body: { link } });
  find("#asked-title").textContent = asked.title;
  find("#asked-price").textContent = tellCredits(asked.credits);
  find("#asked-code").textContent = asked.code;
  find("#asked-at").textContent = new Date(asked.asked_at).toLocaleTimeString();
  for (const place of findAll("[data-of]")) place.hidden = place.dataset.of !== (asked.account ? "account" : "call");
  find("#asked").hidden = false;
  return asked;
}

/** Let the chat of a link spend the price of its call from a token, and say so. Repeating it changes nothing. */
export async function payCall(path, link, token) {
  const { data } = await fetchJson(path, { method: "POST", body: { link }, token });
  tellPaid(`The call is paid: the chat may spend ${tellCredits(data.credits)} of this token on it, once. Go back to the chat.`);
}

/**
 * Check that a token belongs to the account of a link. Resolves to how credits for it are asked for: {path, members, token}.
 * Throws a Problem if it does not.
 */
export async function proveAccount(path, link, token) {
  await fetchJson(path, { method: "POST", body: { link }, token });
  return { path: "/api/payment/topup", members: { by_transfer: true }, token };
}

/** Return how a browser that is remembered for the account of a link asks for credits: its cookie proves whose it is. */
export function byCookie(path, link) {
  return { path, members: { link } };
}

/** Request an offer for credits on an account, in the form of an offer for a new token. */
export async function offerTopUp(amount_usd, { path, members, token }) {
  const { data } = await fetchJson(path, { method: "POST", body: { ...members, amount_usd }, token });
  return { ...data.transfer, quote: { amount_usd, credits: data.credits } };
}

/** Say that the credits are on the account, and that the chat goes on. */
export function tellAdded(credits) {
  tellPaid(`${tellCredits(credits)} were added to the account of the chat. Go back to the chat.`);
}

function tellPaid(words) {
  find("#call-paid").textContent = words;
  find("#call-paid").hidden = false;
  find("#asked").hidden = true;
}

function tellCredits(credits) {
  return `${formatNumber(credits)} credit${credits === 1 ? "" : "s"}`;
}
