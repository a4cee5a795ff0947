// While the consent page waits for the chain: looks at the same page every few seconds, shows how far the payment is, and
// moves on when another step has come. Without this script the page loads itself anew.

const main = document.querySelector("main");
setInterval(look, 1000 * main.dataset.again);
let looking = false;

async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const answer = await fetch(main.dataset.page, { headers: { accept: "text/html" } });
    if (answer.status === 429 || answer.status >= 500) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    if (found?.dataset.step !== main.dataset.step) location.replace(main.dataset.page);
    else for (const selector of ["progress", "[role=status]"]) follow(selector, found);
  } catch {
    // the service is away for a moment: the next look finds out
  } finally {
    looking = false;
  }
}

/** Show what the newer page says: the words of an element, and how far a progress bar is. */
function follow(selector, newer) {
  const [shown, said] = [main, newer].map((place) => place.querySelector(selector));
  if (!shown || !said) return;
  if (shown.textContent !== said.textContent) shown.textContent = said.textContent;
  for (const name of ["max", "value", "aria-label"]) {
    if (said.hasAttribute(name)) shown.setAttribute(name, said.getAttribute(name));
  }
}
