// Formats the figures that the server wrote into the page.

import { findAll } from "./dom.js";
import { formatNumber } from "./format.js";

/** Format every `<data value="12345.6" data-unit="$">` in the reader's language. */
export function writeNumbers() {
  for (const number of findAll("data[value]")) {
    number.textContent = formatNumber(Number(number.value), { unit: number.dataset.unit ?? "" });
  }
}
