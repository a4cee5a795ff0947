// Creates, tests, inspects and ends webhook subscriptions of the reader's token.

import { ageOf } from "./age.js";
import { attempt } from "./attempt.js";
import { element, find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";
import { Problem } from "./http.js";
import { actButton, askTwice, hideSecret, showSecret } from "./secret.js";

const PATH = "/api/pro/subscribe";
const ALERTS = "credit-alerts";
const LAST = 3; // deliveries that are shown before anybody asks
const DELIVERED = ["charged", "free"]; // the states of deliveries that can be sent again

/** Return {load, clear} of the section. `ask` sends a request with the token; `spent` is called after an action that may cost credits. */
export function startWebhooks(ask, spent) {
  const section = find("#webhooks");
  const [list, secret, form] = [find(".list", section), find(".secret", section), find("#new-webhook")];
  const [when, endpoint] = [find("#webhook-when"), find("#webhook-endpoint")];

  when.addEventListener("change", askForCondition);
  endpoint.addEventListener("change", askForCondition);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, event.submitter, make);
  });
  askForCondition();

  async function load() {
    try {
      const { subscriptions } = await ask("/api/pro/subscriptions");
      draw(subscriptions);
      find("details", section).hidden = false;
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "not_found") throw error;
      find("details", section).hidden = true;
      list.replaceChildren(element("p", { class: "soft" }, "This service delivers no webhooks."));
    }
  }

  function clear() {
    list.replaceChildren();
    hideSecret(secret);
    form.reset();
    askForCondition();
  }

  /** Show only the fields that the chosen condition has. Credit alerts have none. */
  function askForCondition() {
    if (endpoint.value === ALERTS) when.value = "";
    when.closest("p").hidden = endpoint.value === ALERTS;
    for (const [id, kinds] of [["path", ["above", "below", "changed", "any_new"]], ["level", ["above", "below"]], ["clear", ["above", "below"]]]) {
      const needed = kinds.includes(when.value);
      find(`#webhook-${id}`).closest("p").hidden = !needed;
      find(`#webhook-${id}`).required = needed;
    }
  }

  function readCondition() {
    const path = find("#webhook-path").value.trim();
    const [level, back] = [Number(find("#webhook-level").value), Number(find("#webhook-clear").value)];
    if (when.value === "above") return { path, above: level, clear_below: back };
    if (when.value === "below") return { path, below: level, clear_above: back };
    return when.value ? { path, [when.value]: true } : null;
  }

  async function make() {
    const body = { endpoint: endpoint.value, webhook_url: find("#webhook-url").value, description: find("#webhook-note").value };
    const condition = readCondition();
    if (condition) body.when = condition;
    const made = await ask(PATH, { method: "POST", body });
    showSecret(secret, "The secret that signs every delivery. It is shown only once:", made.secret);
    form.reset();
    askForCondition();
    find("details", section).open = false;
    await load();
  }

  function draw(subscriptions) {
    const items = subscriptions.map(drawOne);
    list.replaceChildren(items.length ? element("ul", { class: "plain items" }, ...items) : element("p", { class: "soft" }, "None yet."));
  }

  function drawOne(one) {
    const item = element("li", { class: "item", "data-id": one.id, "data-state": one.state });
    const state = one.pause_reason ? `${one.state}: ${one.pause_reason}` : one.state;
    const counts = `${formatNumber(one.delivered_count)} delivered, ${formatNumber(one.failed_count)} failed`;
    const last = one.last_error ? ` · last: ${one.last_error}` : one.last_status ? ` · last: HTTP ${one.last_status}` : "";
    item.append(
      element("h3", {}, one.endpoint, element("span", { class: `state-word ${one.state === "active" ? "good" : "warn"}` }, state)),
      element("p", {}, element("code", { class: "breaks" }, one.webhook_url), one.description ? ` ${one.description}` : ""),
      element("p", { class: "soft small" }, one.endpoint === ALERTS ? "when a threshold of the token is crossed" : tellCondition(one.when), " · ", one.next_fire_at ? ageOf(one.next_fire_at, { before: "next " }) : "none planned", ` · ${counts}${last}`),
      buttons(one, item),
      element("div", { class: "log" }),
    );
    attempt(item, null, () => showLog(one, item, LAST));
    return item;
  }

  function buttons(one, item) {
    const act = (todo) => (button) => attempt(item, button, todo);
    return element(
      "p",
      { class: "row" },
      actButton("Send a test", act(() => test(one, item))),
      actButton("All deliveries", act(() => showLog(one, item))),
      one.state === "paused" ? actButton("Resume", act(() => change(one, "/resume"))) : null,
      askTwice("New secret", "Replace the secret?", act(() => rotate(one))),
      askTwice("End", "End it permanently?", act(() => finish(one))),
    );
  }

  async function test(one, item) {
    const sent = await ask(`${PATH}/${one.id}/test`, { method: "POST" });
    const words = sent.delivered ? `Your server accepted the test: HTTP ${sent.status} after ${formatNumber(sent.duration_ms)} ms. It carried a recorded example, not what is so now.` : `Your server did not accept the test: ${sent.error ?? `HTTP ${sent.status}`}.`;
    await showLog(one, item);
    find(".log", item).prepend(element("p", { class: sent.delivered ? "good" : "bad", role: "status" }, words));
  }

  async function showLog(one, item, limit = null) {
    const { deliveries } = await ask(`${PATH}/${one.id}/deliveries`, { query: { limit } });
    const again = (delivery) => actButton("Send again", (button) => attempt(item, button, () => resend(one, delivery, item)));
    find(".log", item).replaceChildren(deliveries.length ? drawLog(deliveries, again) : element("p", { class: "soft" }, "Nothing has been delivered yet."));
    if (!limit) await spent();
  }

  async function resend(one, delivery, item) {
    const sent = await ask(`${PATH}/${one.id}/deliveries/${delivery.id}/resend`, { method: "POST" });
    const words = sent.delivered ? `Your server accepted it again: HTTP ${sent.status}, the same id and bytes. It cost nothing.` : `Your server did not accept it this time: ${sent.error ?? `HTTP ${sent.status}`}.`;
    for (const old of findAll(".log > [role=status]", item)) old.remove();
    find(".log", item).prepend(element("p", { class: sent.delivered ? "good" : "bad", role: "status" }, words));
  }

  async function change(one, step) {
    await ask(`${PATH}/${one.id}${step}`, { method: "POST" });
    await load();
  }

  async function rotate(one) {
    const made = await ask(`${PATH}/${one.id}/rotate-secret`, { method: "POST" });
    const words = `The new secret of the webhook to ${one.webhook_url}. For ${made.overlap_hours} hours, deliveries are also signed with the old secret.`;
    showSecret(secret, words, made.secret);
  }

  async function finish(one) {
    await ask(`${PATH}/${one.id}`, { method: "DELETE" });
    await load();
  }

  return { load, clear };
}

function tellCondition(when) {
  if (!when) return "every five minutes";
  if (when.above !== undefined && when.above !== null) return `when ${when.path} rises above ${formatNumber(when.above)}`;
  if (when.below !== undefined && when.below !== null) return `when ${when.path} falls below ${formatNumber(when.below)}`;
  return `when ${when.path} ${when.changed ? "changes" : "has a new entry"}`;
}

/** Return a table of deliveries. `again` makes the button that sends one again. */
function drawLog(deliveries, again) {
  const names = ["When", "Kind", "Outcome", "Attempts", "Answer", "Credits", ""];
  const head = names.map((name) => (name ? element("th", { scope: "col" }, name) : element("td")));
  const rows = deliveries.map((one) => {
    const answer = one.status ? `HTTP ${one.status}${one.duration_ms === null ? "" : `, ${formatNumber(one.duration_ms)} ms`}` : (one.error ?? "–");
    const button = DELIVERED.includes(one.state) ? again(one) : "";
    const cells = [one.kind === "test" ? "test (an example)" : one.kind, one.reason ? `${one.state}: ${one.reason}` : one.state, formatNumber(one.attempts), answer, formatNumber(one.credits), button];
    const [when, ...rest] = [ageOf(one.created_at), ...cells].map((cell, index) => element("td", { "data-label": names[index] }, cell));
    return element("tr", { "data-kind": one.kind, "data-state": one.state }, when, ...rest);
  });
  return element("table", { class: "narrow" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
}
