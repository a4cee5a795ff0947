// Searches all documents and tools while the reader writes: the service ranks, and this draws what it found.
// Copies a document as Markdown, and scrolls the side list to the entry of this page.

import { element, find } from "./dom.js";
import { fetchJson, href } from "./http.js";

const PAUSE_MS = 120;
const input = find("#search");
let waiting = null;

const [side, here] = [find(".side"), find(".side [aria-current]")];
if (here) side.scrollTop = here.offsetTop - side.clientHeight / 2;
input.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE_MS);
});
const copy = find("#copy-markdown");
if (copy) offerMarkdown(copy);

async function search() {
  const query = input.value.trim();
  const [count, list] = [find("#search-count"), find("#search-found")];
  if (!query) {
    count.textContent = "";
    list.replaceChildren();
    return;
  }
  try {
    const { data } = await fetchJson("/docs/search.json", { query: { q: query } });
    if (input.value.trim() !== query) return;
    const [shown, all] = [data.results.length, data.count];
    count.textContent = all > shown ? `The first ${shown} of ${all} results` : `${all} ${all === 1 ? "result" : "results"}`;
    list.replaceChildren(...data.results.map(result));
  } catch (error) {
    count.textContent = error.message;
  }
}

function result({ path, title, heading, text }) {
  const name = heading ? `${title}: ${heading}` : title;
  return element("li", {}, element("a", { href: href(path) }, name), " ", element("span", { class: "soft small" }, text));
}

/** Copy the Markdown of this document with one press. */
function offerMarkdown(button) {
  button.hidden = false;
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      const answer = await fetch(button.dataset.from);
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Could not copy: open the Markdown";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
}
