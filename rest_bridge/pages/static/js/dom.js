// Makes elements from text and attributes, never from markup, so that text from elsewhere stays text.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element: `element("p", {class: "soft"}, "words", another)`. Attributes that are null or false are left out. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Return an SVG element, with the same arguments as `element`. */
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Return the first element that matches, or null. */
export function find(selector, within = document) {
  return within.querySelector(selector);
}

/** Return every element that matches, as an array. */
export function findAll(selector, within = document) {
  return [...within.querySelectorAll(selector)];
}

/** Return the data that the server wrote into the page as `<script type="application/json" id="…">`, or null. */
export function readData(id) {
  const written = document.getElementById(id);
  return written ? JSON.parse(written.textContent) : null;
}

/** Return a link to a web address, labelled `words`; for other kinds of address, return plain text. */
export function webLink(address, words) {
  return /^https?:\/\//i.test(address)
    ? element("a", { href: address, rel: "noreferrer" }, words)
    : document.createTextNode(words);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
