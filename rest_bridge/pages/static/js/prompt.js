// Shows a text as it is, with its length in tokens.

import { element } from "./dom.js";
import { readPath } from "./paths.js";

/** Return an element with the words to which a picture leads. */
export function drawPrompt({ values }, words, payload) {
  const tokens = values.length ? readPath(payload, values[0]) : null;
  const count = tokens === null ? null : element("p", { class: "soft" }, `About ${tokens} tokens`);
  return element("div", {}, count, element("pre", { class: "prompt", "data-points": 1 }, words));
}
