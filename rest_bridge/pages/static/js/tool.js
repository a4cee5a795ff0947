// Runs the page of a tool: the newest answer that the service keeps, a form that calls the tool, and code for that same call.

import { ageOf, setClock } from "./age.js";
import { placeArguments, writeCode } from "./call_code.js";
import { addCopyButtons } from "./copy.js";
import { element, find, findAll, readData } from "./dom.js";
import { explainFields, readMeanings } from "./fields.js";
import { formatNumber } from "./format.js";
import { drawHeadline, drawWarnings, plainPayload } from "./headline.js";
import { highlight } from "./highlight.js";
import { fetchJson, Problem, showProblem } from "./http.js";
import { drawJson } from "./json_view.js";
import { drawPictures } from "./pictures.js";
import { drawTables } from "./table.js";
import { makeTabs } from "./tabs.js";
import { bindTokenInput, getToken, looksLikeToken } from "./token.js";

const tool = readData("tool");
const example = readData("example");
const form = find("#form");
const panels = { picture: find("#as-picture"), table: find("#as-table"), json: find("#as-json") };
const answerTabs = makeTabs([["Picture", panels.picture], ["Table", panels.table], ["JSON", panels.json]], "The answer as");
const meaning = readMeanings();
const codePanels = ["curl", "Python", "TypeScript", "MCP", "LangChain"].map((name) => [name, element("div", {}, element("pre", {}, element("code")))]);
let shownAnswer = null;
let span = "Day"; // that the reader has chosen: Day, Week or Month
let ran = false; // after the reader has run the tool, the page no longer shows the newest answer that the service keeps

find("#code").replaceChildren(...codePanels.map(([, panel]) => panel));
makeTabs(codePanels, "The call as");
addCopyButtons(find("#code"));
writeCalls();
form.addEventListener("input", writeCalls);
form.addEventListener("submit", run);
if (find("#token")) bindTokenInput(find("#token"));
for (const panel of [panels.table, panels.json]) explainFields(panel, find("#meaning"));
for (const panel of Object.values(panels)) panel.addEventListener("shown", () => (find("#meaning").hidden = panel === panels.picture));
panels.json.addEventListener("shown", colorJson);
find("#on-map")?.addEventListener("toggle", offerMap, { once: true });
if (tool.kept) showKept();
else if (tool.sample) showSample();
else if (example) show(example, "An example from the simulated world; lists are shortened.");

/** Return the arguments in the form, as the tool takes them. Throws a Problem if one cannot be read. */
function readForm() {
  const given = {};
  for (const input of findAll("[data-kind]", form)) {
    const words = input.value.trim();
    if (!words) continue;
    if (input.dataset.kind === "number") given[input.name] = Number(words);
    else if (input.dataset.kind === "flag") given[input.name] = words === "true";
    else if (input.dataset.kind === "json") given[input.name] = parse(input.name, words);
    else given[input.name] = words;
  }
  return given;
}

function parse(name, words) {
  try {
    return JSON.parse(words);
  } catch {
    throw new Problem("not_json", `${name} is not valid JSON yet.`);
  }
}

function writeCalls() {
  try {
    writeCode(tool, readForm(), tool.site).forEach(([, code, language], index) => {
      find("code", codePanels[index][1]).replaceChildren(...highlight(code, language));
    });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}

async function run(event) {
  event.preventDefault();
  const button = find("button", form);
  const place = find("#trouble");
  button.disabled = true;
  showProblem(place, null);
  try {
    const token = getToken();
    if (tool.auth === "bearer" && !looksLikeToken(token)) throw new Problem("missing_token", "This tool needs a token: svc_live_ followed by 64 characters.");
    const given = readForm();
    const begun = performance.now();
    const answer = tool.try ? await tryTool(given) : await callTool(given, tool.auth === "bearer" ? token : "");
    ran = true;
    const left = answer.headers.get("x-credits-remaining");
    const took = `${formatNumber(Math.round(performance.now() - begun))} ms`;
    await show(answer.data, left === null ? `Your call, ${took}.` : `Your call, ${took}; ${formatNumber(Number(left))} credits left.`);
    find("#answer").hidden = false;
    find("#answer").scrollIntoView({ block: "start" });
  } catch (error) {
    showProblem(place, error);
  } finally {
    button.disabled = false;
  }
}

/** Try a free tool, which counts for this page alone and not as a call of the reader's address. */
function tryTool(given) {
  return fetchJson(tool.try, { method: "POST", body: { tool: tool.name, arguments: given } });
}

function callTool(given, token) {
  const { path, query, body } = placeArguments(tool, given);
  return fetchJson(path, { method: tool.method, query: Object.fromEntries(query), body, token });
}

/**
 * Show an answer: value, age and sources first, then picture, table and JSON. Each answer is drawn in its own place, so
 * that one that is drawn late does not appear below the text of a later answer.
 */
async function show(answer, words, lines = []) {
  const payload = tool.enveloped ? answer.data : answer;
  find("#answer-about").replaceChildren(...about(answer, words));
  showHeadline(payload);
  find("code", panels.json).textContent = JSON.stringify(answer, null, 2);
  shownAnswer = answer;
  if (!panels.json.hidden) colorJson();
  panels.table.replaceChildren(...drawTables(plainPayload(answer, tool.enveloped), tool.title, explainPath));
  const place = element("div");
  panels.picture.replaceChildren(place);
  const drawn = await drawPictures(place, tool.pictures, payload);
  const line = await drawDays(place, lines);
  if (!place.isConnected) return; // a later answer is already shown
  answerTabs.show(drawn || line ? 0 : 1);
  find("#answer").dataset.drawn = ""; // from now on it is as long as what it shows
  if (!drawn && !line) place.replaceChildren(element("p", { class: "soft" }, missing()));
  if (ran || tool.kept) writeAges(answer._meta?.sources ?? []);
}

function missing() {
  const given = tool.pictures.map((picture) => Object.entries(picture.arguments).map(([name, value]) => `${name}=${value}`)).flat();
  return given.length ? `Run it with ${[...new Set(given)].join(", ")} for a picture.` : "This answer has only text and single values: see the table.";
}

/** Show the figure of the answer with its change, and below it what it is about. */
function showHeadline(payload) {
  const place = find("#headline");
  const drawn = drawHeadline(tool, payload);
  place.replaceChildren(...drawn);
  if (drawn.length) place.hidden = false;
}

/** Draw the past day of each figure of the tool, and its week and month where a source keeps them, before the answer's pictures. */
async function drawDays(place, lines) {
  if (!lines.length) return false;
  const { drawLines } = await import("./series.js");
  if (!globalThis.uPlot) return false;
  const figures = lines.map(({ label, unit, points, week, month, seen }) => {
    const draw = (pairs) => drawLines(pairs.map(([at]) => at), [pairs.map(([, value]) => value)], [label], unit);
    const spans = [["Day", points], ["Week", week], ["Month", month]].filter(([, pairs]) => pairs.length);
    const words = spans.length > 1 ? label : `${label}: ${seen ? "seen here in the past day" : `the past ${spans[0][0].toLowerCase()}`}`;
    const figure = element("figure", {}, element("figcaption", {}, words));
    const panels = spans.map(([name, pairs]) => [name, element("div", {}, draw(pairs))]);
    figure.append(...panels.map(([, panel]) => panel));
    if (panels.length > 1) makeTabs(panels, `${label}, the past`).show(Math.max(0, panels.findIndex(([name]) => name === span)));
    for (const [name, panel] of panels) panel.addEventListener("shown", () => (span = name));
    return figure;
  });
  const days = element("div", { class: figures.length > 1 ? "days beside" : "days" }, ...figures);
  place.prepend(days);
  for (const chart of findAll("[data-pending]", days)) chart.dispatchEvent(new Event("attached"));
  return true;
}

/** Colour the JSON when somebody looks at it: a long answer has many parts. */
function colorJson() {
  if (shownAnswer) find("code", panels.json).replaceChildren(...drawJson(shownAnswer, meaning));
}

/** Return the path and the meaning of a member of the payload. */
function explainPath(path) {
  const at = !tool.enveloped ? path : path.startsWith("[]") || !path ? `data${path}` : `data.${path}`;
  return { path: at, meaning: meaning(at) };
}

/** Show a map on which a press chooses the place; the two numbers can be written as well. */
async function offerMap() {
  const { drawChooser } = await import("./chooser.js");
  const [lat, lon] = [find("#field-lat"), find("#field-lon")];
  const chosen = (north, east) => {
    [lat.value, lon.value] = [north, east];
    if (find("#field-place")) find("#field-place").value = "";
    writeCalls();
  };
  find("#on-map > div").replaceChildren(drawChooser(chosen));
}

/** Show the whole sample answer of a premium tool: one from the simulated world, the same for everybody. */
async function showSample() {
  const { data } = await fetchJson(tool.sample);
  if (ran) return;
  await show(data, tool.sample_words);
  find("#answer").dataset.filled = "";
}

function about(answer, words) {
  const at = answer === example || !(ran || tool.kept) ? null : (answer.updated_at ?? answer.captured_at ?? null);
  const sources = [...new Set((answer._meta?.attribution ?? []))].join(", ");
  const parts = [words, at ? ageOf(at, { before: " Updated " }) : null, answer.stale ? element("strong", { class: "warn" }, " Stale.") : null];
  return [element("p", { class: "soft" }, ...parts.filter(Boolean), sources ? ` · From ${sources}` : ""), ...drawWarnings(answer)];
}

function writeAges(sources) {
  for (const cell of findAll("[data-source]")) {
    const found = sources.find((one) => one.name === cell.dataset.source);
    cell.replaceChildren(found?.fetched_at ? ageOf(found.fetched_at) : found ? found.status : "–");
  }
}

/** Show the newest answer that the service keeps, and repeat every ten seconds, or sooner while there is no answer yet. */
async function showKept() {
  if (ran) return;
  let wait = 10_000;
  try {
    const { data } = await fetchJson(`/t/${tool.name}.json`);
    setClock(data.generated_at);
    if (data.answer && !ran) await showIfNew(data);
    else wait = 1500;
    showProblem(find("#trouble"), null);
  } catch (error) {
    showProblem(find("#trouble"), error);
  }
  setTimeout(showKept, wait);
}

let last = "";
async function showIfNew({ answer, lines }) {
  const key = JSON.stringify([answer, lines]);
  if (key === last) return;
  last = key;
  await show(answer, "The latest answer of this service.", lines);
  find("#answer").dataset.filled = "";
}
