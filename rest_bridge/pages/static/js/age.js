// Ages that tick: every `<time data-age datetime="…">` says "12 s ago" and goes on counting.

import { element, findAll } from "./dom.js";
import { formatDuration, formatTime } from "./format.js";

let ahead = 0; // how many milliseconds this machine's clock is ahead of the service's

/** Take the service's clock from a moment it has just written, so that ages are right on a machine with a wrong one. */
export function setClock(moment) {
  ahead = Date.now() - new Date(moment).getTime();
}

/** The moment by the service's clock, in milliseconds. */
export function serviceNow() {
  return Date.now() - ahead;
}

/** An element that shows the age of a moment and ticks; null says that there is no moment. */
export function ageOf(moment, { before = "", none = "no value yet" } = {}) {
  if (!moment) return element("span", {}, none);
  const made = element("time", { datetime: moment, "data-age": "", "data-before": before, title: formatTime(moment) });
  tick([made]);
  return made;
}

/** Write all ages of the page anew. */
export function tick(times = findAll("time[data-age]")) {
  for (const time of times) {
    const seconds = (serviceNow() - new Date(time.dateTime).getTime()) / 1000;
    const words = seconds < -1 ? `in ${formatDuration(-seconds)}` : `${formatDuration(seconds)} ago`;
    const whole = (time.dataset.before ?? "") + words;
    if (time.textContent !== whole) time.textContent = whole;
  }
}

/** Start ticking. Once for a page: page.js does it. */
export function startTicking() {
  tick();
  setInterval(() => document.visibilityState === "visible" && tick(), 1000);
}
