// Makes tabs for panels that are shown one below the other without JavaScript.

import { element } from "./dom.js";

let made = 0;

/** Put tabs before the first panel. `rows` has [label, panel] for each. Returns {show(index)}. */
export function makeTabs(rows, label) {
  const list = element("div", { class: "tabs", role: "tablist", "aria-label": label });
  const buttons = rows.map(([words, panel], index) => {
    const id = `tab-${++made}`;
    panel.id ||= `panel-${made}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", id);
    const button = element("button", { type: "button", role: "tab", id, "aria-controls": panel.id }, words);
    button.addEventListener("click", () => show(index));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (index + step + rows.length) % rows.length;
      show(next);
      buttons[next].focus();
    });
    return button;
  });
  function show(chosen) {
    rows.forEach(([, panel], index) => {
      panel.hidden = index !== chosen;
      if (index === chosen) panel.dispatchEvent(new Event("shown"));
      buttons[index].setAttribute("aria-selected", index === chosen);
      buttons[index].tabIndex = index === chosen ? 0 : -1;
    });
  }
  list.append(...buttons);
  rows[0][1].before(list);
  show(0);
  return { show };
}
