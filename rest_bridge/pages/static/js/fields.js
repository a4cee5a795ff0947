// Explains the fields of an answer where they are seen: a line below the answer says what the one in question means.

import { element, find, findAll } from "./dom.js";

/** Return a function from a path in an answer, such as `data.rows[].name`, to its meaning or null, read from the page. */
export function readMeanings() {
  const meanings = new Map();
  for (const row of findAll("#answer-fields tbody tr")) {
    const meaning = find("[data-label=Meaning]", row).textContent;
    if (meaning) meanings.set(find("code", row).textContent, meaning);
  }
  const maps = [...meanings.keys()].filter((path) => path.includes(".*"));
  return (path) => {
    if (meanings.has(path)) return meanings.get(path);
    const map = maps.find((one) => pattern(one).test(path));
    return map ? meanings.get(map) : null;
  };
}

function pattern(path) {
  const parts = path.split(".*").map((part) => part.replace(/[.[\]]/g, "\\$&"));
  return new RegExp(`^${parts.join("\\.[^.\\[]+")}$`);
}

/** Say the meaning of the member of `place` that is pointed at or pressed. */
export function explainFields(place, line) {
  const tell = ({ target }) => {
    const field = target.closest?.("[data-field]");
    if (!field) return;
    line.replaceChildren(element("code", {}, field.dataset.field), ` ${field.title}`);
  };
  for (const event of ["pointerover", "click"]) place.addEventListener(event, tell);
}
