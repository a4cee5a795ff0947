// Runs an action on a click, and shows its failure next to the control that started it.

import { element, find } from "./dom.js";
import { showProblem } from "./http.js";

/** Call `act` with `button` disabled until it ends, and show any error at the end of `near`. */
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
