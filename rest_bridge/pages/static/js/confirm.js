// Waits until the service has confirmed a payment, and retries as often as the service says.

import { fetchJson, Problem } from "./http.js";

const PATIENT = new Set(["payment_pending", "chain_unavailable", "rate_limited", "network", "billing_unavailable"]);

/**
 * Resolve to the token of a purchase: {token, credits, late}. `claim` is {tx_hash, nonce, payer_signature?}; with `account`
 * (see `chat_call.js`) it is for credits on that account. `tell` is called with each Problem that waiting resolves. Throws any other
 * Problem, and AbortError when `signal` aborts.
 */
export async function waitForToken(claim, { tell, signal, account = null }) {
  const { path, members, token } = account ?? { path: "/api/payment/confirm" };
  for (;;) {
    try {
      return (await fetchJson(path, { method: "POST", body: { ...members, ...claim }, token, signal })).data;
    } catch (error) {
      if (!(error instanceof Problem) || !PATIENT.has(error.code)) throw error;
      tell(error);
      await pause(1000 * (error.retryAfter ?? 5), signal);
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
