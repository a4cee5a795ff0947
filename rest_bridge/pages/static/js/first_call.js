// Makes a buyer's first paid call within the page, shows what it cost, and verifies its receipt in the browser.

import { attempt } from "./attempt.js";
import { element } from "./dom.js";
import { formatNumber } from "./format.js";
import { fetchJson } from "./http.js";
import { checkReceipt, readReceipt, tellReceipt } from "./receipt_check.js";
import { actButton } from "./secret.js";
import { drawTables } from "./table.js";
import { drawChecks } from "./verdict.js";

/** Let a button call `path` with the token that `readToken` returns, and show the answer in `place`. */
export function startFirstCall(button, place, path, readToken) {
  const shown = place.appendChild(element("div"));
  button.addEventListener("click", () =>
    attempt(place, button, async () => {
      const { data, headers, text } = await fetchJson(path, { token: readToken() });
      const receipt = headers.get("x-service-receipt");
      const left = formatNumber(Number(headers.get("x-credits-remaining")));
      const { _meta, source, endpoint, warning, stale, captured_at, notes, ...rest } = data;
      const verdict = element("div", { role: "status" });
      const verify = actButton("Verify its receipt", (pressed) => attempt(place, pressed, async () => verdict.replaceChildren(...(await judge(receipt, text)))));
      shown.replaceChildren(
        element("p", { class: "good" }, `Answered. ${left} credits are left.`),
        element("p", { class: "row" }, receipt ? verify : null),
        verdict,
        element("details", { open: true }, element("summary", {}, "The answer"), ...drawTables(rest)),
      );
    }),
  );
  return { clear: () => shown.replaceChildren() };
}

/** Return the checks of a receipt against the key set of the service and the bytes of its answer. */
async function judge(receipt, text) {
  const read = readReceipt(receipt);
  const { data: keys } = await fetchJson("/.well-known/service-receipt-keys.json");
  const checks = await checkReceipt(read, keys, new TextEncoder().encode(text));
  return drawChecks(checks, element("p", {}, tellReceipt(read.core)));
}
