// Sends requests to this service: JSON in and out, and failures that a page can show.

import { element } from "./dom.js";

const base = document.documentElement.dataset.base ?? "";

/** Return the address of a path of this service. */
export function href(path) {
  return base + path;
}

/** A failure that the service explained (RFC 9457), or a network failure (`code` is "network"). */
export class Problem extends Error {
  constructor(code, detail, status = 0, body = {}) {
    super(detail);
    Object.assign(this, { code, status, body });
  }

  /** Seconds to wait before the next try, or null. */
  get retryAfter() {
    return this.body.retry_after_seconds ?? null;
  }
}

/**
 * Request JSON. `query` and `body` are objects; `token` is sent as a bearer token.
 * Resolves to {data, status, headers, text}; throws a Problem otherwise.
 */
export async function fetchJson(path, { method = "GET", query = {}, body, token, headers = {}, signal } = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined));
  const sent = { Accept: "application/json", ...headers };
  if (token) sent.Authorization = `Bearer ${token}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let answer, text;
  try {
    answer = await fetch(href(path) + (asked.size ? `?${asked}` : ""), {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("network", "The service cannot be reached. Is it running, and are you online?");
  }
  let data;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem("not_json", "The service answered with something that is not JSON.", answer.status);
  }
  if (!answer.ok) {
    const code = data?.error ?? `http_${answer.status}`;
    throw new Problem(code, data?.detail ?? data?.title ?? `HTTP ${answer.status}`, answer.status, data ?? {});
  }
  return { data, status: answer.status, headers: answer.headers, text };
}

/** Show a failure in a live region, replacing its content; null clears it. */
export function showProblem(place, error) {
  if (!error) {
    place.replaceChildren();
    return;
  }
  if (!(error instanceof Problem)) console.error(error);
  const code = error instanceof Problem ? error.code : "page_error";
  const words = element("p", {}, error.message);
  const lines = (error.body?.errors ?? []).map((one) => element("p", { class: "small" }, `${[one.loc].flat().join(".")}: ${one.msg}`));
  const known = error.body?.type || error.status === 402;
  const about = known ? element("a", { href: href(`/problems/${code}`) }, code) : element("code", {}, code);
  place.replaceChildren(element("div", { class: "problem" }, words, ...lines, element("p", { class: "small" }, about)));
}
