// Colours code that changes in the page, by the patterns that the server colours by (`languages.json`, in the page).

import { element, readData } from "./dom.js";

const languages = readData("languages") ?? {};

/** Return nodes that show code, each word of a kind in its own span. */
export function highlight(code, language) {
  const rules = languages[language];
  if (!rules) return [document.createTextNode(code)];
  const pattern = new RegExp(rules.map(([, words]) => `(${words})`).join("|"), "g");
  const nodes = [];
  let end = 0;
  for (const match of code.matchAll(pattern)) {
    const kind = rules[match.slice(1).findIndex((part) => part !== undefined)][0];
    nodes.push(code.slice(end, match.index), element("span", { class: `code-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  return [...nodes, code.slice(end)];
}
