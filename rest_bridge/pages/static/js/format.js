// Formats numbers, times and ages for the reader's language.

import { findAll } from "./dom.js";

const language = navigator.languages?.length ? [...navigator.languages] : undefined;

/** Format a number with its significant digits: 12,345.67 · 0.00012 · 1.2345. Amounts of money have cents: $95,743.40. Null becomes a dash. */
export function formatNumber(value, { unit = "", digits } = {}) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const most = digits ?? (Number.isInteger(value) ? 0 : size >= 1000 ? 2 : size >= 1 ? 4 : 8);
  const least = digits === undefined && isMoney(unit) && size >= 1 && size < 1e6 ? 2 : 0;
  const range = { minimumFractionDigits: least, maximumFractionDigits: Math.max(least, most), signDisplay: "negative" };
  const written = new Intl.NumberFormat(language, range).format(value);
  return unit ? withUnit(written, unit) : written;
}

/** Format a large number in few characters: 1.2M. */
export function formatShort(value) {
  if (value === null || value === undefined) return "–";
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1, signDisplay: "negative" }).format(value);
}

/** Format a moment in the reader's time zone. */
export function formatTime(moment) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(new Date(moment));
}

/** Format seconds as "12 s", "5 min", "3 h" or "2 d", in the largest unit that fits. */
export function formatDuration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} d`;
}

const WORDS = { nat: "natural" };
const INITIALS = new Set(["cpi", "dia", "gdp", "qqq", "spy", "usd", "vix"]);

/** Return the name of a member as words: `space_launch` as "Space launch", `gdp_growth` as "GDP growth". */
export function plainName(name) {
  const words = name.split("_").map((word) => (INITIALS.has(word) ? word.toUpperCase() : (WORDS[word] ?? word))).join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function isMoney(unit) {
  return unit === "$" || unit === "€";
}

function withUnit(written, unit) {
  if (isMoney(unit)) return written.startsWith("-") ? `-${unit}${written.slice(1)}` : unit + written;
  return unit === "%" ? `${written} %` : `${written} ${unit}`;
}

/** Format every `<data value="12345.6" data-unit="$">` that the server wrote into the page. */
export function writeNumbers() {
  for (const number of findAll("data[value]")) {
    number.textContent = formatNumber(Number(number.value), { unit: number.dataset.unit ?? "" });
  }
}
