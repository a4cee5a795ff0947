// Draws the checks of a receipt as a list, each with its meaning.

import { element } from "./dom.js";

const MARKS = { good: ["✓", "passed"], bad: ["✕", "failed"], unknown: ["–", "not checked"] };

/** Return a headline, `summary` (an element or null) and the list, for rows of {name, title, state, words}. */
export function drawChecks(checks, summary = null) {
  const failed = checks.filter((one) => one.state === "bad");
  const signed = checks.find((one) => one.name === "signature");
  const [state, words] = failed.length
    ? ["bad", `Not valid: ${failed.map((one) => one.title.toLowerCase()).join(", ")}`]
    : signed?.state === "good"
      ? ["good", "Valid"]
      : ["warn", "Not decided"];
  const rows = checks.map((one) => {
    const [mark, said] = MARKS[one.state];
    const sign = element("span", { class: `mark ${one.state}`, "aria-hidden": "true" }, mark);
    const title = element("strong", {}, one.title, element("span", { class: "unseen" }, `: ${said}`));
    return element("li", { "data-check": one.name, "data-state": one.state }, sign, element("div", {}, title, element("p", {}, one.words)));
  });
  const headline = element("h2", { class: `value ${state}`, "data-verdict": state }, words);
  return [headline, ...(summary ? [summary] : []), element("ul", { class: "checks" }, ...rows)];
}
