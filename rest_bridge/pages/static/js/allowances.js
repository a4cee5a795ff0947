// Creates, changes and ends allowances of the reader's token.

import { ageOf } from "./age.js";
import { attempt } from "./attempt.js";
import { element, find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";
import { Problem } from "./http.js";
import { askTwice, hideSecret, showSecret } from "./secret.js";

const PATH = "/api/payment/allowances";
const WITHOUT = { allowance_conflict: "This token is itself an allowance, so it cannot create allowances.", not_supported: "This service keeps no allowances.", not_found: "This service keeps no allowances." };

/** Return {load, clear, isAllowance} of the section. `ask` sends a request with the token. */
export function startAllowances(ask) {
  const section = find("#allowances");
  const [list, secret, form] = [find(".list", section), find(".secret", section), find("#new-allowance")];
  let isAllowance = false; // whether the token is itself one

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, event.submitter, make);
  });

  async function load() {
    isAllowance = false;
    try {
      const { allowances } = await ask(PATH);
      draw(allowances);
      find("details", section).hidden = false;
    } catch (error) {
      if (!(error instanceof Problem) || !WITHOUT[error.code]) throw error;
      isAllowance = error.code === "allowance_conflict";
      find("details", section).hidden = true;
      list.replaceChildren(element("p", { class: "soft" }, WITHOUT[error.code]));
    }
  }

  function clear() {
    list.replaceChildren();
    hideSecret(secret);
    form.reset();
  }

  async function make() {
    const tools = findAll("input[name=tool]:checked", form).map((one) => one.value);
    const wish = { name: find("#allowance-name").value, credits: Number(find("#allowance-credits").value) };
    if (find("#allowance-day").value) wish.credits_per_day = Number(find("#allowance-day").value);
    if (find("#allowance-end").value) wish.expires_at = `${find("#allowance-end").value}:00Z`;
    if (tools.length) wish.tools = tools;
    const made = await ask(PATH, { method: "POST", body: wish });
    showSecret(secret, `The token of “${made.name}”. It is shown only once:`, made.token);
    form.reset();
    find("details", section).open = false;
    await load();
  }

  function draw(allowances) {
    const items = allowances.map(drawOne);
    list.replaceChildren(items.length ? element("ul", { class: "plain items" }, ...items) : element("p", { class: "soft" }, "None yet."));
  }

  function drawOne(one) {
    const live = one.state === "active" || one.state === "exhausted";
    const item = element("li", { class: "item", "data-id": one.id, "data-state": one.state });
    const bar = element("progress", { max: one.credits, value: Math.min(one.spent, one.credits), "aria-label": `Credits spent by ${one.name}` });
    const today = one.credits_per_day ? `, ${formatNumber(one.spent_today)} of ${formatNumber(one.credits_per_day)} today` : "";
    const facts = [`${formatNumber(one.spent)} of ${formatNumber(one.credits)} credits spent${today}`, one.tools ? `only ${one.tools.join(", ")}` : "all tools", ...(one.service ? [`only at ${one.service}`] : [])];
    const times = element("p", { class: "soft small" }, facts.join(" · "), " · ", one.expires_at ? ageOf(one.expires_at, { before: "ends " }) : "no end", " · ", ageOf(one.last_used_at, { before: "used ", none: "never used" }));
    item.append(element("h3", {}, one.name, element("span", { class: `state-word ${live ? "good" : "soft"}` }, one.state)), bar, times);
    if (live) item.append(changeForm(one, item));
    return item;
  }

  function changeForm(one, item) {
    const field = (name, label, value, more = {}) => {
      const id = `${name}-${one.id}`;
      return element("p", {}, element("label", { for: id }, label), element("input", { id, name, value: value ?? "", ...more }));
    };
    const number = { type: "number", max: 10 ** 9, step: 1 };
    const change = element(
      "form",
      {},
      element(
        "div",
        { class: "fields" },
        field("name", "Name", one.name, { required: true, maxlength: 100 }),
        field("credits", "Maximum credits", one.credits, { ...number, min: 1, required: true }),
        field("day", "Daily maximum", one.credits_per_day, { ...number, min: 1, placeholder: "no limit" }),
        field("end", "Ends (UTC)", one.expires_at?.slice(0, 16), { type: "datetime-local" }),
      ),
      element("p", { class: "row" }, element("button", {}, "Save")),
    );
    change.addEventListener("submit", (event) => {
      event.preventDefault();
      attempt(item, event.submitter, () => save(one, change));
    });
    const end = askTwice("End", "End it permanently?", (button) => attempt(item, button, () => finish(one)));
    return element("div", {}, element("details", {}, element("summary", {}, "Change"), change), element("p", { class: "row" }, end));
  }

  async function save(one, form) {
    const { name, credits, day, end } = Object.fromEntries(new FormData(form));
    const body = { name, credits: Number(credits), credits_per_day: Number(day || 0) };
    if (end !== (one.expires_at?.slice(0, 16) ?? "")) body.expires_at = end ? `${end}:00Z` : "never";
    await ask(`${PATH}/${one.id}`, { method: "PATCH", body });
    await load();
  }

  async function finish(one) {
    await ask(`${PATH}/${one.id}`, { method: "DELETE" });
    await load();
  }

  return { load, clear, isAllowance: () => isAllowance };
}
