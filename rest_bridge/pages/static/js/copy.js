// Adds copy buttons to every `<pre>` and to each element that `data-copy` names.

import { element, findAll } from "./dom.js";

/** Return a button that copies the text that `read` returns. */
export function copyButton(read, label = "Copy") {
  const button = element("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(read());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

/** Put a button beside every `<pre>` that has none, and make the block focusable so that the keyboard can scroll it. */
export function addCopyButtons(within = document) {
  for (const block of findAll("pre:not([data-plain])", within)) {
    if (block.parentElement.classList.contains("copied")) continue;
    const frame = element("div", { class: "copied" });
    block.replaceWith(frame);
    block.tabIndex = 0;
    frame.append(block, copyButton(() => block.textContent));
  }
}
