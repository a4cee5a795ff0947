// Gets a visitor token with one press: the work that the service may ask for is done here, in the page.

import { find } from "./dom.js";
import { formatNumber } from "./format.js";
import { fetchJson } from "./http.js";
import { hideSecret, showSecret } from "./secret.js";
import { solve } from "./work.js";

const PATH = "/api/payment/visitor-token";

/** Show the section. `attempt` calls an action with a button disabled, and shows its error. */
export function startVisitor(section, attempt) {
  const button = find("#get-visitor", section);
  const secret = find(".secret", section);
  const progress = find("#visitor-work", section);
  section.hidden = false;
  button.addEventListener("click", () => {
    hideSecret(secret);
    attempt(async () => {
      try {
        const { token, expires_at } = await request((words) => {
          progress.textContent = words;
          progress.hidden = false;
        });
        showSecret(secret, `Send it as a bearer token, as you would any other. It ends on ${expires_at.slice(0, 10)}.`, token);
      } finally {
        progress.hidden = true;
      }
    }, button);
  });
}

/** Resolve to the answer. `tell` gets words about the work, where some is asked for. */
async function request(tell) {
  try {
    return (await fetchJson(PATH, { method: "POST", body: {} })).data;
  } catch (error) {
    const work = error.body?.work;
    if (!work) throw error;
    const usual = formatNumber(2 ** work.bits);
    const about = "Your address has got several tokens today, so this one takes a little work of your browser:";
    tell(`${about} about ${usual} tries.`);
    const solution = await solve(work.challenge, work.bits, (tries) => tell(`${about} ${formatNumber(tries)} of about ${usual} tries.`));
    return (await fetchJson(PATH, { method: "POST", body: { challenge: work.challenge, solution } })).data;
  }
}
