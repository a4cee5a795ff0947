// Keeps ages up to date: every `<time data-age datetime="…">` says "12 s ago" and continues to count.

import { element, findAll } from "./dom.js";
import { formatDuration, formatTime } from "./format.js";

let ahead = 0; // how many milliseconds this machine's clock is ahead of the service's

/** Set the clock from a moment that the service has just written, so that ages are right even if this machine's clock is wrong. */
export function setClock(moment) {
  ahead = Date.now() - new Date(moment).getTime();
}

/** Return the current time by the service's clock, in milliseconds. */
export function serviceNow() {
  return Date.now() - ahead;
}

/** Return an element that shows the age of a moment and ticks. For null it shows `none`. */
export function ageOf(moment, { before = "", none = "no value yet" } = {}) {
  if (!moment) return element("span", {}, none);
  const made = element("time", { datetime: moment, "data-age": "", "data-before": before, title: formatTime(moment) });
  tick([made]);
  return made;
}

/** Update all ages on the page. */
export function tick(times = findAll("time[data-age]")) {
  for (const time of times) {
    const seconds = (serviceNow() - new Date(time.dateTime).getTime()) / 1000;
    const words = seconds < -1 ? `in ${formatDuration(-seconds)}` : `${formatDuration(seconds)} ago`;
    const whole = (time.dataset.before ?? "") + words;
    if (time.textContent !== whole) time.textContent = whole;
  }
}

/** Start ticking. page.js calls this once for each page. */
export function startTicking() {
  tick();
  setInterval(() => document.visibilityState === "visible" && tick(), 1000);
}
