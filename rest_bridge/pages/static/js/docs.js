// Searches all documents and tools while the reader writes: the service ranks, and this draws what it found.
// Copies a document as Markdown, makes tabs of the same example in several languages, and scrolls the side list to the
// entry of this page.

import { element, find, findAll } from "./dom.js";
import { fetchJson, href } from "./http.js";
import { makeTabs } from "./tabs.js";

const PAUSE_MS = 120;
const LANGUAGES = { sh: "curl", python: "Python", js: "JavaScript", ts: "TypeScript" };
const input = find("#search");
let waiting = null;

const [side, here] = [find(".side"), find(".side [aria-current]")];
if (here) side.scrollTop = here.offsetTop - side.clientHeight / 2;
input.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, PAUSE_MS);
});
offerLanguages();
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

/** Make tabs of blocks that follow each other in different languages. A choice holds for all of them on the page. */
function offerLanguages() {
  const groups = [];
  for (const code of findAll(".text pre > code[class]")) {
    const [language, block] = [code.className.replace("language-", ""), code.closest(".copied") ?? code.parentElement];
    const last = groups.at(-1);
    const follows = last && last.at(-1)[1] === block.previousElementSibling && !last.some(([one]) => one === language);
    if (!LANGUAGES[language]) continue;
    if (follows) last.push([language, block]);
    else groups.push([[language, block]]);
  }
  const tabbed = groups.filter((group) => group.length > 1);
  const shown = tabbed.map((group) => makeTabs(group.map(([language, block]) => [LANGUAGES[language], block]), "The example in"));
  tabbed.forEach((group) => {
    for (const [language, block] of group) {
      block.addEventListener("shown", () => showEverywhere(language, block));
    }
  });

  function showEverywhere(language, block) {
    tabbed.forEach((group, index) => {
      const at = group.findIndex(([one]) => one === language);
      if (at >= 0 && group[at][1] !== block && group[at][1].hidden) shown[index].show(at);
    });
  }
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
