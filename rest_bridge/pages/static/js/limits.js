// Shows and changes the limits of the reader's token: a maximum per day, a freeze, and when to be warned.

import { ageOf } from "./age.js";
import { attempt } from "./attempt.js";
import { element, find } from "./dom.js";
import { formatNumber } from "./format.js";
import { Problem } from "./http.js";

const PATH = "/api/payment/token";
const WITHOUT = { allowance_conflict: "This token is an allowance: its limits are those of its owner.", not_supported: "Limits are set at the service that keeps the credits.", not_found: "This service sets no limits." };
const FIELDS = { credits_per_day: "#limit-day", alert_below: "#limit-below", alert_percent: "#limit-percent" };

/** Return {load, clear} of the section. `ask` sends a request with the token. */
export function startLimits(ask) {
  const section = find("#limits");
  const [about, form, freeze] = [find(".about", section), find("#limit-form"), find("#freeze")];
  let frozen = false;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const body = Object.fromEntries(Object.entries(FIELDS).map(([name, field]) => [name, Number(find(field).value || 0)]));
    attempt(form, event.submitter, () => change(body));
  });
  freeze.addEventListener("click", () => attempt(section, freeze, () => change({ frozen: !frozen })));

  async function load() {
    try {
      await change({});
    } catch (error) {
      if (!(error instanceof Problem) || !WITHOUT[error.code]) throw error;
      form.hidden = freeze.hidden = true;
      about.replaceChildren(WITHOUT[error.code]);
    }
  }

  function clear() {
    about.replaceChildren();
    form.reset();
  }

  /** Change some limits, or none, and show what is set then. */
  async function change(body) {
    const limits = await ask(PATH, { method: "PATCH", body });
    frozen = limits.frozen;
    const spent = formatNumber(limits.spent_today);
    const today = limits.credits_per_day ? `${spent} of ${formatNumber(limits.credits_per_day)} credits spent today (UTC).` : `${spent} credits spent today (UTC), without a daily maximum.`;
    about.replaceChildren(today, ...(frozen ? [" ", element("strong", {}, "Frozen"), " ", ageOf(limits.frozen_at), ": it pays for nothing."] : []));
    for (const [name, field] of Object.entries(FIELDS)) find(field).value = limits[name] ?? "";
    freeze.textContent = frozen ? "Thaw the token" : "Freeze the token";
    form.hidden = freeze.hidden = false;
  }

  return { load, clear };
}
