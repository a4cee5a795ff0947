// Lets the reader have this browser remembered for buying credits for the account, and forgotten again.

import { attempt } from "./attempt.js";
import { find } from "./dom.js";

/** Return {load, clear} of the section. `ask` sends a request with the token. */
export function startRemembered(ask) {
  const section = document.querySelector("#remembered"); // only where credits are sold by transfer
  if (!section) return { load: async () => {}, clear() {} };
  const [about, button] = [find(".about", section), find("button", section)];
  const { path } = section.dataset;
  let remembered = false;

  button.addEventListener("click", () => attempt(section, button, () => send({ remember: !remembered })));

  /** Ask what this browser is remembered for, or change it, and show what holds then. */
  async function send(body) {
    const found = await ask(path, { method: "POST", body });
    remembered = found.remembered;
    about.textContent = remembered ? `This browser is remembered until ${found.expires_at.slice(0, 10)}.` : "This browser is not remembered.";
    button.textContent = remembered ? "Forget this browser" : "Remember this browser";
    button.hidden = false;
  }

  function clear() {
    about.textContent = "";
    button.hidden = true;
  }

  return { load: () => send({}), clear };
}
