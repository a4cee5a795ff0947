// Runs the page that verifies receipts. Pasted text and dropped files stay in the page; only the public keys are fetched.

import { element, find } from "./dom.js";
import { fetchJson, showProblem } from "./http.js";
import { checkReceipt, holdsReceipt, readReceipt, tellReceipt } from "./receipt_check.js";
import { Unreadable } from "./signatures.js";
import { drawChecks } from "./verdict.js";

const form = find("#check");
const [receipt, answer] = [find("#receipt"), find("#answer")];
const verdict = find("#verdict");
let answered = null; // the bytes of a file; null for typed or pasted text
let keys = null;

form.hidden = false;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  check();
});
receipt.addEventListener("paste", () => setTimeout(check));
answer.addEventListener("input", () => (answered = null));
answer.addEventListener("paste", () => setTimeout(check));
find("#files").addEventListener("change", (event) => take([...event.target.files]));
for (const kind of ["dragover", "dragleave", "drop"]) form.addEventListener(kind, drag);

function drag(event) {
  event.preventDefault();
  form.classList.toggle("over", event.type === "dragover");
  if (event.type === "drop" && event.dataTransfer.files.length) take([...event.dataTransfer.files]);
}

/** Take files in any order: the file that contains a receipt is the receipt, the other is the answer. */
async function take(files) {
  for (const file of files) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const words = new TextDecoder().decode(bytes);
    if (holdsReceipt(words)) receipt.value = words.trim();
    else {
      answer.value = words;
      answered = bytes;
    }
  }
  await check();
}

async function check() {
  if (!receipt.value.trim()) return;
  showProblem(find("#trouble"), null);
  try {
    const read = readReceipt(receipt.value);
    keys ??= (await fetchJson("/.well-known/service-receipt-keys.json")).data;
    const bytes = answered ?? (answer.value ? new TextEncoder().encode(answer.value) : null);
    const checks = await checkReceipt(read, keys, bytes);
    show(checks, read.core);
  } catch (error) {
    if (error instanceof Unreadable) show([{ name: "format", title: "Form", state: "bad", words: error.message }]);
    else showProblem(find("#trouble"), error);
  }
}

function show(checks, core = null) {
  const believed = checks.find((one) => one.name === "signature")?.state === "good";
  const parts = drawChecks(checks, believed ? element("p", {}, tellReceipt(core)) : null);
  if (believed) parts.push(drawCore(core));
  if (core) parts.push(askService(core.id));
  verdict.replaceChildren(...parts);
  verdict.hidden = false;
  verdict.scrollIntoView({ block: "nearest" });
}

function drawCore(core) {
  const rows = Object.keys(core).map((name) => {
    const value = core[name];
    const words = value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value);
    return element("tr", {}, element("th", { scope: "row" }, element("code", {}, name)), element("td", { class: "breaks" }, words));
  });
  return element("details", {}, element("summary", {}, "Everything in this receipt"), element("table", {}, element("tbody", {}, ...rows)));
}

/** Return a button that asks the service about one of its own receipts. Only the id is sent. */
function askService(id) {
  const said = element("p", { role: "status" });
  const button = element("button", { type: "button" }, "Ask the service");
  button.addEventListener("click", async () => {
    try {
      const { data } = await fetchJson("/api/receipt/verify", { query: { id } });
      said.textContent = data.valid ? "The service has this receipt on record, and it is valid." : `The service says: ${data.error}`;
      said.className = data.valid ? "good" : "bad";
    } catch (error) {
      said.textContent = error.status === 404 ? "The service has no receipt with this id." : error.message;
      said.className = "bad";
    }
  });
  const words = element("p", { class: "soft" }, "For a second opinion, the service can look up its own record of this receipt. Only the receipt's id is sent.");
  return element("div", { class: "ask" }, words, element("div", { class: "row" }, button, said));
}
