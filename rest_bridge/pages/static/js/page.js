// Runs on every page: copy buttons, ages that tick, numbers in the reader's language, keyboard scrolling of wide tables,
// and the choice of light or dark.

import { setClock, startTicking } from "./age.js";
import { addCopyButtons } from "./copy.js";
import { find, findAll } from "./dom.js";
import { writeNumbers } from "./format.js";

addCopyButtons();
const written = document.querySelector("time#written");
if (written) setClock(written.dateTime); // the page says when it was written, so its ages count by the service's clock
startTicking();
writeNumbers();
openTables();
reachTables();
for (const part of findAll(".scripted")) part.classList.remove("scripted"); // in browsers that know no `scripting` in CSS
offerThemes(find("#theme"));

/** Open long tables where there is room. */
function openTables() {
  if (matchMedia("(min-width: 56rem)").matches) for (const rows of findAll("details.rows")) rows.open = true;
}

/** Make a document's table focusable while it is wider than its place, so that the keyboard can scroll it. */
function reachTables() {
  const look = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const table of findAll(".text table")) look.observe(table);
}

/** Set up the button that switches between the system's theme and the light or dark one. */
function offerThemes(button) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const next = () => {
    const other = dark.matches ? "light" : "dark";
    return root.dataset.theme === other ? "" : other;
  };
  const say = () => {
    button.textContent = next() ? `${next() === "dark" ? "Dark" : "Light"} theme` : "System theme";
  };
  button.addEventListener("click", () => {
    const chosen = next();
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    try {
      if (chosen) localStorage.setItem("theme", chosen);
      else localStorage.removeItem("theme");
    } catch {
      // Storage is blocked: the choice lasts for this page.
    }
    say();
  });
  dark.addEventListener("change", say);
  button.hidden = false;
  say();
}
