// What is shown once, and what asks twice.

import { copyButton } from "./copy.js";
import { element } from "./dom.js";

/** Show a secret in its place until the reader has taken it. */
export function showSecret(place, words, secret) {
  const done = element("button", { type: "button", class: "quiet" }, "I have kept it");
  const line = element("p", { class: "row" }, element("code", { class: "pick token" }, secret), copyButton(() => secret), done);
  done.addEventListener("click", () => hideSecret(place));
  place.replaceChildren(element("p", {}, words), line);
  place.hidden = false;
}

/** Take a secret off the page. */
export function hideSecret(place) {
  place.replaceChildren();
  place.hidden = true;
}

/** A button for what cannot be undone: the first press asks, the second acts; it calms down when focus leaves. */
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

/** A button that acts at once. */
export function actButton(label, act) {
  const button = element("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", () => act(button));
  return button;
}
