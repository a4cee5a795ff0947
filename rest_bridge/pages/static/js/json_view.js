// Draws JSON with its parts coloured; the name of each member explains itself, as the table of fields does.

import { element } from "./dom.js";

const MOST = 3000; // members; a longer answer stays plain text

/** Return nodes with the text that `JSON.stringify(value, null, 2)` has, or only that text if it is very long. */
export function drawJson(value, explain) {
  const nodes = [];
  let members = 0;
  const write = (text, kind) => nodes.push(kind ? element("span", { class: `code-${kind}` }, text) : text);
  const walk = (one, path, indent) => {
    const inside = `${indent}  `;
    if (one === null || typeof one === "boolean") write(String(one), "word");
    else if (typeof one === "number") write(JSON.stringify(one), "number");
    else if (typeof one === "string") write(JSON.stringify(one), "string");
    else if (Array.isArray(one)) {
      if (!one.length) return write("[]");
      one.forEach((item, index) => {
        write(`${index ? "," : "["}\n${inside}`);
        walk(item, `${path}[]`, inside);
      });
      write(`\n${indent}]`);
    } else {
      const names = Object.keys(one);
      if (!names.length) return write("{}");
      names.forEach((name, index) => {
        members += 1;
        write(`${index ? "," : "{"}\n${inside}`);
        const at = path ? `${path}.${name}` : name;
        const meaning = explain(at);
        nodes.push(element("span", { class: "code-key", title: meaning, "data-field": meaning ? at : null }, JSON.stringify(name)));
        write(": ");
        walk(one[name], at, inside);
      });
      write(`\n${indent}}`);
    }
  };
  walk(value, "", "");
  return members > MOST ? [JSON.stringify(value, null, 2)] : nodes;
}
