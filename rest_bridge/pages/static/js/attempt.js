// Doing something on a click, with its failure shown where it was asked for.

import { element, find } from "./dom.js";
import { showProblem } from "./http.js";

/** Do something with a button off meanwhile, and show what goes wrong at the end of `near`. */
export async function attempt(near, button, act) {
  const place = find(":scope > .said", near) ?? near.appendChild(element("div", { class: "said", role: "status" }));
  showProblem(place, null);
  if (button) button.disabled = true;
  try {
    await act();
  } catch (error) {
    showProblem(place, error);
  } finally {
    if (button) button.disabled = false;
  }
}
