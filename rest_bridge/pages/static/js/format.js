// Numbers, times and ages as the reader's language writes them.

const language = navigator.languages?.length ? [...navigator.languages] : undefined;

/** A number with as many digits as say something: 12,345.67 · 0.00012 · 1.2345; amounts of money with cents: $95,743.40. Null is a dash. */
export function formatNumber(value, { unit = "", digits } = {}) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const most = digits ?? (Number.isInteger(value) ? 0 : size >= 1000 ? 2 : size >= 1 ? 4 : 8);
  const least = digits === undefined && isMoney(unit) && size >= 1 && size < 1e6 ? 2 : 0;
  const range = { minimumFractionDigits: least, maximumFractionDigits: Math.max(least, most) };
  const written = new Intl.NumberFormat(language, range).format(value);
  return unit ? withUnit(written, unit) : written;
}

/** A large number in few characters: 1.2M. */
export function formatShort(value) {
  if (value === null || value === undefined) return "–";
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

/** A moment, in the reader's time zone. */
export function formatTime(moment) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(new Date(moment));
}

/** Seconds as "12 s", "5 min", "3 h", "2 d": the largest unit that is reached. */
export function formatDuration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} d`;
}

function isMoney(unit) {
  return unit === "$" || unit === "€";
}

function withUnit(written, unit) {
  if (isMoney(unit)) return written.startsWith("-") ? `-${unit}${written.slice(1)}` : unit + written;
  return unit === "%" ? `${written} %` : `${written} ${unit}`;
}
