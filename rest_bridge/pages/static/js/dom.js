// Elements made of text and attributes, never of markup: what comes from elsewhere stays text.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `element("p", {class: "soft"}, "words", another)`. An attribute that is null or false is left out. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for pictures. */
export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** The first element that matches, or null. */
export function find(selector, within = document) {
  return within.querySelector(selector);
}

/** Every element that matches, as an array. */
export function findAll(selector, within = document) {
  return [...within.querySelectorAll(selector)];
}

/** The data that the server wrote into the page as `<script type="application/json" id="…">`, or null. */
export function readData(id) {
  const written = document.getElementById(id);
  return written ? JSON.parse(written.textContent) : null;
}

/** A link to a web address as `words`; other kinds of address stay text. */
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
