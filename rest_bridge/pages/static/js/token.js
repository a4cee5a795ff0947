// Keeps the reader's token in the memory of this page and nowhere else. It is gone when the reader leaves the page.

let kept = "";
const waiting = new Set();

/** Return the token, or an empty string. */
export function getToken() {
  return kept;
}

/** Keep a token for as long as the page is open, and pass it to every callback of `onToken`. */
export function setToken(token) {
  kept = token.trim();
  for (const tell of waiting) tell(kept);
}

/** Call back with the token now and whenever it changes. */
export function onToken(tell) {
  waiting.add(tell);
  tell(kept);
}

/** Return true if a text looks like a token, so that a typing error is shown before it is sent. */
export function looksLikeToken(words) {
  return /^svc_live_[0-9a-f]{64}$/.test(words.trim());
}

/** Bind an input of the page to the token. */
export function bindTokenInput(input) {
  input.autocomplete = "off";
  input.spellcheck = false;
  input.addEventListener("input", () => setToken(input.value));
  if (kept) input.value = kept;
}
