// Runs while the consent page waits for the chain: fetches the page every few seconds, shows the progress of the payment,
// and moves on when the next step is reached. Without this script the page reloads itself.

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
    // the service is briefly unreachable: the next request will show
  } finally {
    looking = false;
  }
}

/** Copy an element's text and the position of a progress bar from the newer page. */
function follow(selector, newer) {
  const [shown, said] = [main, newer].map((place) => place.querySelector(selector));
  if (!shown || !said) return;
  if (shown.textContent !== said.textContent) shown.textContent = said.textContent;
  for (const name of ["max", "value", "aria-label"]) {
    if (said.hasAttribute(name)) shown.setAttribute(name, said.getAttribute(name));
  }
}
