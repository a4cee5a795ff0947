// What every page does: copy buttons, ages that tick, numbers in the reader's language, wide tables that keys reach,
// the choice of light or dark.

import { setClock, startTicking } from "./age.js";
import { addCopyButtons } from "./copy.js";
import { find, findAll } from "./dom.js";
import { formatNumber } from "./format.js";

addCopyButtons();
const written = document.querySelector("time#written");
if (written) setClock(written.dateTime); // a page that says when it was written: its ages count by the service's clock
startTicking();
writeNumbers();
openTables();
reachTables();
offerThemes(find("#theme"));

/** `<data value="12345.6" data-unit="$">` is written in the reader's language. */
function writeNumbers() {
  for (const number of findAll("data[value]")) {
    number.textContent = formatNumber(Number(number.value), { unit: number.dataset.unit ?? "" });
  }
}

/** Long tables stand open where there is room. */
function openTables() {
  if (matchMedia("(min-width: 56rem)").matches) for (const rows of findAll("details.rows")) rows.open = true;
}

/** A table of a document that is wider than its place can be scrolled by keys too, for as long as it is. */
function reachTables() {
  const look = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const table of findAll(".text table")) look.observe(table);
}

/** A button that goes from the system's choice to light or dark and back. */
function offerThemes(button) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const next = () => {
    const other = dark.matches ? "light" : "dark";
    return root.dataset.theme === other ? "" : other;
  };
  const say = () => {
    button.textContent = next() ? `${next() === "dark" ? "Dark" : "Light"} theme` : "System's theme";
  };
  button.addEventListener("click", () => {
    const chosen = next();
    if (chosen) root.dataset.theme = chosen;
    else delete root.dataset.theme;
    try {
      if (chosen) localStorage.setItem("theme", chosen);
      else localStorage.removeItem("theme");
    } catch {
      // Storage is barred: the choice lasts for this page.
    }
    say();
  });
  dark.addEventListener("change", say);
  button.hidden = false;
  say();
}
