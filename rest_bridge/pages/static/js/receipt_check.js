// Verifies receipts in the browser with WebCrypto. It makes no request: the caller passes the keys.

import { formatDuration, formatNumber, formatTime } from "./format.js";
import { checkPlace } from "./log_proof.js";
import { fromBase64Url, sha256Hex, Unreadable, verifyEd25519 } from "./signatures.js";

const FIELDS = [
  "v", "id", "service", "kind", "call_id", "token_fp", "endpoint", "method", "request_hash", "status", "response_sha256",
  "response_bytes", "cost", "credits_charged", "balance_after", "settlement", "no_charge_reason", "captured_at",
  "freshness_sla_s", "agent_nonce", "log", "issued_at",
];
const JWS = /[\w-]{16,}\.[\w-]{16,}\.[\w-]{16,}/;
const utf8 = new TextEncoder();

/**
 * Read a receipt in any of its forms: a JWS, response headers, the answer of /api/receipt/<id>, or an MCP result.
 * Returns {core, payload, kid, signed, signature, proof}. Throws Unreadable.
 */
export function readReceipt(words) {
  const given = parseJson(words);
  const holder = given?._meta ?? given?.result?._meta ?? given;
  const found = holder?.jws ?? holder?.receipt ?? holder;
  const proof = holder?.log_proof ?? null;
  if (found && typeof found === "object") return { ...fromObject(found), proof };
  const jws = JWS.exec(typeof found === "string" ? found : words);
  if (!jws) throw new Unreadable("This contains no receipt. A receipt is three parts of base64url joined by dots, or an object with signature and key_id.");
  return { ...fromJws(jws[0]), proof };
}

/** Return true if a text contains a receipt. */
export function holdsReceipt(words) {
  try {
    readReceipt(words);
    return true;
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
}

/**
 * Run every check of a receipt. Resolves to rows of {name, title, state, words}; `state` is good, bad or unknown (not
 * checked). `keySet` is the key set of the service; `answer` has the bytes of the answer, or is null.
 */
export async function checkReceipt(receipt, keySet, answer) {
  const key = keySet.keys.find((one) => one.kid === receipt.kid);
  const checks = [row("format", "Form", "good", "It has the one form that a receipt with this content can have.")];
  const known = key ? "It is in the key set of this service." : "This service has no key with this name. It may belong to another service, or to none.";
  checks.push(row("key", "Key", key ? "good" : "bad", known));
  checks.push(key ? await checkSignature(receipt, key) : row("signature", "Signature", "unknown", "There is no key to check the signature with."));
  if (checks.at(-1).state !== "good") return checks;
  checks.push(checkTime(receipt.core, key), await checkAnswer(receipt.core, answer), await checkPlace(receipt, keySet.log));
  return checks;
}

/** Return what a receipt says, as a sentence. */
export function tellReceipt({ method, endpoint, cost, credits_charged, settlement, no_charge_reason, balance_after, issued_at }) {
  const asked = `${method} ${endpoint} on ${formatTime(issued_at)}: `;
  if (settlement === "pending") return `${asked}the ledger did not answer in time, so nothing was charged.`;
  const left = balance_after === null ? "" : ` ${formatNumber(balance_after)} were left.`;
  if (!credits_charged) return `${asked}not charged${no_charge_reason ? ` (${no_charge_reason})` : ""}; it would have cost ${formatNumber(cost)}.${left}`;
  return `${asked}${formatNumber(credits_charged)} credit${credits_charged === 1 ? "" : "s"} charged.${left}`;
}

function row(name, title, state, words) {
  return { name, title, state, words };
}

function parseJson(words) {
  try {
    return JSON.parse(words);
  } catch {
    return null;
  }
}

function fromJws(jws) {
  const [head, payload, signature] = jws.split(".");
  const { alg, kid, typ, ...more } = readObject(fromBase64Url(head), "header");
  if (Object.keys(more).length || !["EdDSA", "Ed25519"].includes(alg) || typ !== "receipt+jws" || typeof kid !== "string") {
    throw new Unreadable("Its header is not a receipt's header: alg EdDSA or Ed25519, typ receipt+jws, kid, and nothing else.");
  }
  const bytes = fromBase64Url(payload);
  const core = checkCore(readObject(bytes, "payload"));
  if (canonical(core) !== new TextDecoder().decode(bytes)) throw new Unreadable("Its payload is not in canonical form (RFC 8785).");
  return { core, payload: bytes, kid, signed: utf8.encode(`${head}.${payload}`), signature: fromBase64Url(signature) };
}

function fromObject({ signature, key_id, ...core }) {
  if (typeof signature !== "string" || typeof key_id !== "string") throw new Unreadable("It has no signature and key_id.");
  const payload = utf8.encode(canonical(checkCore(core)));
  return { core, payload, kid: key_id, signed: payload, signature: fromBase64Url(signature) };
}

function readObject(bytes, part) {
  const found = parseJson(new TextDecoder().decode(bytes));
  if (!found || typeof found !== "object" || Array.isArray(found)) throw new Unreadable(`Its ${part} is not a JSON object.`);
  return found;
}

function checkCore(core) {
  const missing = FIELDS.filter((name) => !(name in core));
  if (missing.length) throw new Unreadable(`It lacks ${missing.slice(0, 3).join(", ")}, which every receipt has.`);
  if (core.v !== 1 || !/^rcpt_[0-9a-f]{32}$/.test(core.id) || Number.isNaN(Date.parse(core.issued_at))) {
    throw new Unreadable("Its version, id or time does not have the form used in receipts.");
  }
  return core;
}

/** Return canonical JSON (RFC 8785) for objects of strings, integers, booleans and null. */
function canonical(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

async function checkSignature({ signature, signed }, key) {
  const good = await verifyEd25519(fromBase64Url(key.x), signature, signed);
  if (good === null) {
    return row("signature", "Signature", "unknown", "This browser cannot check Ed25519 on this page. The service can check its own receipts, below.");
  }
  const words = good ? "This key signed exactly this content. Nothing was changed since." : "This key did not sign this content. Something was changed, or someone else wrote it.";
  return row("signature", "Signature", good ? "good" : "bad", words);
}

function checkTime(core, key) {
  const at = Date.parse(core.issued_at) / 1000;
  const inUse = (key.nbf ?? 0) <= at && (key.exp === undefined || at < key.exp);
  if (!inUse) return row("time", "Time", "bad", "The key was not in use at the time when the receipt says it was issued.");
  if (key.revoked_at !== undefined) return row("time", "Time", "bad", "The key was revoked. Only the service itself can say whether it recorded this receipt before the revocation.");
  const age = core.captured_at ? Math.max(0, at - Date.parse(core.captured_at) / 1000) : null;
  const free = core.freshness_sla_s === null ? "" : `; above ${formatDuration(core.freshness_sla_s)} the call would have been free`;
  const data = age === null ? "" : ` The oldest part of the answer was ${formatDuration(age)} old${free}.`;
  return row("time", "Time", "good", `Issued on ${formatTime(core.issued_at)}, while the key was in use.${data}`);
}

async function checkAnswer(core, answer) {
  if (core.response_sha256 === null) return row("answer", "Answer", "unknown", "This receipt is for a call that was not answered.");
  const signed = `${formatNumber(core.response_bytes)} bytes with SHA-256 ${core.response_sha256.slice(0, 12)}`;
  if (!answer) return row("answer", "Answer", "unknown", `This receipt is for an answer of ${signed}. Add the answer to compare it.`);
  if ((await sha256Hex(answer)) === core.response_sha256) return row("answer", "Answer", "good", `This is the answer that was signed: ${signed}.`);
  const trimmed = utf8.encode(new TextDecoder().decode(answer).trimEnd());
  if ((await sha256Hex(trimmed)) === core.response_sha256) {
    return row("answer", "Answer", "good", `This is the answer that was signed, except for the line break at its end: ${signed}.`);
  }
  return row("answer", "Answer", "bad", `This is a different answer: it has ${formatNumber(answer.length)} bytes; the signed answer has ${signed}.`);
}
