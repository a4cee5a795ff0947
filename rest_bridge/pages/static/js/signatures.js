// The primitives of receipts and the log: base64url, SHA-256 and Ed25519 (by WebCrypto).

/** Thrown for text that does not have the expected form. */
export class Unreadable extends Error {}

/** Decode base64url strictly. Throws Unreadable. */
export function fromBase64Url(words) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(words.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
  } catch {
    throw new Unreadable("A part of it is not base64url.");
  }
  const again = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  if (again !== words) throw new Unreadable("A part of it is not canonical base64url.");
  return bytes;
}

/** Return the SHA-256 as hexadecimal digits. */
export async function sha256Hex(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((one) => one.toString(16).padStart(2, "0")).join("");
}

/** Return whether an Ed25519 signature is valid, or null if this browser cannot check it. `publicKey` has 32 bytes. */
export async function verifyEd25519(publicKey, signature, signed) {
  let key;
  try {
    key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    return null; // an older browser, or a page without TLS, where WebCrypto is missing
  }
  return crypto.subtle.verify({ name: "Ed25519" }, key, signature, signed);
}
