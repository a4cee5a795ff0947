// Shows a secret once, and makes buttons that ask before they act.

import { copyButton } from "./copy.js";
import { element } from "./dom.js";

/** Show a secret in its place until the reader says that it is saved. */
export function showSecret(place, words, secret) {
  const done = element("button", { type: "button", class: "quiet" }, "I have saved it");
  const line = element("p", { class: "row" }, element("code", { class: "pick token" }, secret), copyButton(() => secret), done);
  done.addEventListener("click", () => hideSecret(place));
  place.replaceChildren(element("p", {}, words), line);
  place.hidden = false;
}

/** Remove a secret from the page. */
export function hideSecret(place) {
  place.replaceChildren();
  place.hidden = true;
}

/** Return a button for an action that cannot be undone: the first press asks, the second acts. Losing the focus resets it. */
export function askTwice(label, question, act) {
  const button = element("button", { type: "button", class: "quiet" }, label);
  const calm = () => {
    button.textContent = label;
    button.classList.remove("danger");
  };
  button.addEventListener("blur", calm);
  button.addEventListener("click", () => {
    if (button.classList.contains("danger")) {
      calm();
      act(button);
    } else {
      button.textContent = question;
      button.classList.add("danger");
    }
  });
  return button;
}

/** Return a button that acts at once. */
export function actButton(label, act) {
  const button = element("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", () => act(button));
  return button;
}
