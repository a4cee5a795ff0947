// Reads the values to which the paths of a declared picture or headline lead.

/** Return the value at a path of a payload, or null. A path is member names and indices joined by dots. */
export function readPath(payload, path) {
  let value = payload;
  for (const part of path ? path.split(".") : []) value = value?.[part];
  return value ?? null;
}

/** Return the first value that paths separated by `|` lead to, or null. */
export function readFirst(payload, paths) {
  for (const path of paths.split("|")) {
    const value = path ? readPath(payload, path) : null;
    if (value !== null) return value;
  }
  return null;
}

/** Return [name, rows] for everything that a path with one `*` leads to. */
export function readPaths(payload, path) {
  const [before, after] = path.split("*");
  if (after === undefined) return [["", readPath(payload, path)]];
  const members = readPath(payload, before.replace(/\.$/, "")) ?? {};
  return Object.entries(members).map(([name, member]) => [name, readPath(member, after.replace(/^\./, ""))]);
}

/** Return the moment at a path, an ISO time or a number of seconds or milliseconds, as seconds since the epoch. */
export function readMoment(payload, path) {
  const moment = readPath(payload, path);
  if (typeof moment === "number") return moment > 1e11 ? moment / 1000 : moment;
  return new Date(moment).getTime() / 1000;
}
