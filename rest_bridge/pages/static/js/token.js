// The reader's token: kept in the memory of this page and nowhere else. It is gone when the page is left.

let kept = "";
const waiting = new Set();

/** The token, or an empty string. */
export function getToken() {
  return kept;
}

/** Keep a token for as long as the page is open; whoever asked to know is told. */
export function setToken(token) {
  kept = token.trim();
  for (const tell of waiting) tell(kept);
}

/** Call back with the token now and whenever it changes. */
export function onToken(tell) {
  waiting.add(tell);
  tell(kept);
}

/** Whether words look like a token, so that a typing error is told before it is sent. */
export function looksLikeToken(words) {
  return /^svc_live_[0-9a-f]{64}$/.test(words.trim());
}

/** Make an input of the page the place where the token is given. */
export function bindTokenInput(input) {
  input.autocomplete = "off";
  input.spellcheck = false;
  input.addEventListener("input", () => setToken(input.value));
  if (kept) input.value = kept;
}
