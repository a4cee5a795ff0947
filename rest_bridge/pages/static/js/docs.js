// Searches all documents and tools: the index is loaded when the search box gets the focus and is searched in the page.
// Scrolls the side list to the entry of this page.

import { element, find } from "./dom.js";
import { fetchJson, href } from "./http.js";

const MOST = 12;
const input = find("#search");
let entries = null;

const [side, here] = [find(".side"), find(".side [aria-current]")];
if (here) side.scrollTop = here.offsetTop - side.clientHeight / 2;
input.addEventListener("focus", load, { once: true });
input.addEventListener("input", search);

function load() {
  entries ??= fetchJson("/docs/search.json").then(({ data }) => data.map(prepare));
  return entries;
}

function prepare(entry) {
  const [title, heading, text] = [entry.title, entry.heading, entry.text].map((words) => words.toLowerCase());
  return { ...entry, low: { title, heading, text } };
}

async function search() {
  const asked = input.value;
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  let found = [];
  try {
    found = words.length ? rank(await load(), words) : [];
  } catch (error) {
    entries = null;
    find("#search-count").textContent = error.message;
    return;
  }
  if (input.value !== asked) return;
  const count = found.length > MOST ? `The first ${MOST} of ${found.length} results` : `${found.length} ${found.length === 1 ? "result" : "results"}`;
  find("#search-count").textContent = words.length ? count : "";
  find("#search-found").replaceChildren(...found.slice(0, MOST).map((entry) => result(entry, words)));
}

/** Return the entries that have every word, best first: words in a title weigh more than words in a heading or the text. */
function rank(all, words) {
  const weigh = ({ low }) => {
    let sum = 0;
    for (const word of words) {
      const score = 9 * low.title.includes(word) + 5 * low.heading.includes(word) + low.text.includes(word);
      if (!score) return 0;
      sum += score;
    }
    return sum;
  };
  const scored = all.map((entry) => [weigh(entry), entry]).filter(([score]) => score > 0);
  return scored.sort(([a], [b]) => b - a).map(([, entry]) => entry);
}

function result(entry, words) {
  const name = entry.heading ? `${entry.title}: ${entry.heading}` : entry.title;
  const at = Math.max(0, entry.low.text.indexOf(words[0]) - 60);
  const around = `${at ? "…" : ""}${entry.text.slice(at, at + 160)}…`;
  return element("li", {}, element("a", { href: href(entry.path) }, name), element("span", { class: "soft small" }, around));
}
