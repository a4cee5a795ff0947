// Checks a receipt against the log of calls that were not charged: a Merkle tree (RFC 6962) with a signed checkpoint.

import { formatNumber, formatTime } from "./format.js";
import { fromBase64Url, sha256Hex, verifyEd25519 } from "./signatures.js";

const utf8 = new TextEncoder();

/** Check what a receipt says about the log, and return a row like the other checks. `log` is {origin, verifier} of the key set. */
export async function checkPlace({ core, payload, proof }, log) {
  const row = (state, words) => ({ name: "log", title: "Log", state, words });
  if (core.log === null) return row("unknown", core.credits_charged ? "A charged call has no entry in the log." : "The receipt names no entry in the log.");
  const place = Number.isInteger(core.log.index) ? `entry ${formatNumber(core.log.index)}` : `the hour of ${formatTime(core.log.hour)}`;
  const named = `The receipt names ${place} of the log ${core.log.origin}.`;
  if (!log || core.log.origin !== log.origin) return row("unknown", `${named} That is not the log that this service currently keeps.`);
  if (!proof) return row("unknown", `${named} The answer of /api/receipt/<id> contains the proof${core.log.hour ? " when that hour has ended" : ""}. Paste that answer to check it.`);
  const wrong = await refute(core, payload, proof, log);
  if (wrong) return row("bad", wrong);
  const among = proof.receipt ? ` It is one of ${formatNumber(proof.leaf.receipts)} receipts of entry ${formatNumber(proof.leaf.seq)}.` : "";
  return row("good", `${named}${among} The proof leads from that entry to the signed state of ${formatNumber(proof.size)} entries.`);
}

/** Return why a proof is not valid, or null if it is. */
async function refute(core, payload, proof, log) {
  const { leaf, size, path, checkpoint } = proof;
  if (!(await names(proof, core, payload))) return "The entry in the log belongs to another receipt.";
  const root = await climb(utf8.encode(writeLeaf(leaf)), leaf.seq, size, path.map(fromHex));
  const signed = await readCheckpoint(checkpoint, log.verifier);
  if (signed === null) return "The checkpoint is not signed by the log's key.";
  if (signed.origin !== core.log.origin || signed.size !== size) return "The checkpoint belongs to another log or has another size.";
  return root !== null && root === signed.root ? null : "The proof does not lead to the signed state of the log.";
}

/** Return true if the proof's entry belongs to the receipt: the entry of its hour, whose tree of receipts has the receipt, or, in old logs, its own entry. */
async function names({ leaf, receipt }, core, payload) {
  const hash = await sha256Hex(payload);
  if (Number.isInteger(core.log.index)) return leaf.seq === core.log.index && leaf.receipt_sha256 === hash;
  if (!receipt || leaf.hour !== core.log.hour || leaf.key !== core.log.key || receipt.size !== leaf.receipts) return false;
  const root = await climb(fromHex(hash), receipt.index, receipt.size, receipt.path.map(fromHex));
  return root !== null && root === leaf.receipts_root;
}

/** Return the entry as the log stores it: JSON with sorted names. */
function writeLeaf(leaf) {
  return JSON.stringify(Object.fromEntries(Object.keys(leaf).sort().map((name) => [name, leaf[name]])));
}

/** Return the root that a path leads to, in hexadecimal digits, or null if the path does not fit the tree (RFC 9162, 2.1.3.2). */
async function climb(entry, index, size, path) {
  if (!Number.isInteger(index) || index < 0 || index >= size) return null;
  let [at, last] = [index, size - 1];
  let hash = await digest([0], entry);
  for (const step of path) {
    if (last === 0) return null;
    if (at % 2 || at === last) {
      hash = await digest([1], step, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    } else {
      hash = await digest([1], hash, step);
    }
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 ? toHex(hash) : null;
}

/** Return {origin, size, root} of a signed note, or null if the key did not sign it or the browser cannot check Ed25519. */
async function readCheckpoint(note, verifier) {
  const [text, signature] = note.split("\n\n");
  const publicKey = fromBase64(verifier.split("+").slice(2).join("+")).slice(1);
  const good = await verifyEd25519(publicKey, fromBase64(signature.trim().split(" ").at(-1)).slice(4), utf8.encode(`${text}\n`));
  const [origin, size, root] = text.split("\n");
  return good ? { origin, size: Number(size), root: toHex(fromBase64(root)) } : null;
}

async function digest(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new Uint8Array(parts.flatMap((part) => [...part]))));
}

function fromBase64(words) {
  return fromBase64Url(words.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""));
}

function fromHex(digits) {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function toHex(bytes) {
  return [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
}
