// Keeps the home page's changing part up to date, and arranges it as the visitor chose. The server draws it: this script
// exchanges what has changed, asks again only while the page is visible, and sends nothing about the visitor but, for a
// chosen place, its coordinates in two ordinary calls of free tools.

import { setClock, tick } from "./age.js";
import { element, find, findAll } from "./dom.js";
import { formatNumber, writeNumbers } from "./format.js";
import { fetchJson, href, showProblem } from "./http.js";

const EVERY_MS = 10_000;
const WAITING_MS = 700; // while a tile has no value yet
const MOST_WAITS = 20;
const PLACE_MS = 600_000;
const PLACES = [
  ["", "as the service has it"],
  ["40.71,-74.01", "New York"], ["34.05,-118.24", "Los Angeles"], ["19.43,-99.13", "Mexico City"], ["-23.55,-46.63", "São Paulo"],
  ["51.51,-0.13", "London"], ["48.86,2.35", "Paris"], ["52.52,13.4", "Berlin"], ["38.72,-9.14", "Lisbon"], ["41.01,28.98", "Istanbul"],
  ["30.04,31.24", "Cairo"], ["6.52,3.38", "Lagos"], ["-26.2,28.05", "Johannesburg"], ["25.2,55.27", "Dubai"], ["28.61,77.21", "Delhi"],
  ["1.35,103.82", "Singapore"], ["31.23,121.47", "Shanghai"], ["35.68,139.69", "Tokyo"], ["-33.87,151.21", "Sydney"],
];
const AT_PLACE = {
  weather: { path: "/api/weather", read: ({ current }) => [current?.temperature_f, "°F", current?.condition] },
  air_quality: { path: "/api/air-quality", read: (data) => [data.us_aqi, "US AQI", data.us_aqi_band] },
};

const first = findAll("#cards > .card").map((card) => card.dataset.tool); // the order as the server has it
const chosen = recall();
const local = new Map(); // the cards of the chosen place, by tool
const off = new Set(); // kinds that the map does not show
let drawn = "";
let waits = 0;

arrange();
offerChoices();
findKinds();
if (chosen.place) readPlace();
schedule();
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
setInterval(() => document.visibilityState === "visible" && chosen.place && readPlace(), PLACE_MS);

function schedule() {
  const waiting = Number(find("#front").dataset.waiting) > 0 && waits++ < MOST_WAITS;
  setTimeout(async () => {
    if (document.visibilityState === "visible") await refresh();
    schedule();
  }, waiting ? WAITING_MS : EVERY_MS);
}

/** Fetch the changing part; a 304 of the browser's cache has the same text, and nothing is touched. */
async function refresh() {
  const trouble = find("#trouble");
  try {
    const answer = await fetch(href("/front.html"));
    if (!answer.ok) throw new Error(`The service answered with ${answer.status}.`);
    if (answer.headers.get("date")) setClock(answer.headers.get("date"));
    const text = await answer.text();
    if (text !== drawn) exchange(text);
    drawn = text;
    showProblem(trouble, null);
  } catch {
    trouble.replaceChildren(element("div", { class: "problem" }, element("p", {}, "The service cannot be reached. The values below are the last ones known.")));
  }
}

/** Put the parts that changed in the place of the old ones: cards and lines of the strip one by one, other parts whole. */
function exchange(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("front");
  const front = find("#front");
  front.dataset.waiting = fresh.dataset.waiting;
  for (const part of [...fresh.children]) {
    const old = document.getElementById(part.id);
    if (!old) place(part, fresh, front);
    else if (part.id === "part-cards") findAll(".card", part).forEach(exchangeCard);
    else if (!old.contains(document.activeElement) && source(old) !== source(part)) {
      const scrolled = findAll("[tabindex]", old).map((one) => [one.scrollLeft, one.scrollTop]);
      old.replaceWith(part);
      findAll("[tabindex]", part).forEach((one, index) => ([one.scrollLeft, one.scrollTop] = scrolled[index] ?? [0, 0]));
    }
  }
  finish();
}

const sources = new WeakMap(); // what an element was when it arrived, before ages and numbers were written anew

function source(one) {
  if (!sources.has(one)) sources.set(one, one.outerHTML);
  return sources.get(one);
}

function place(part, fresh, front) {
  const next = [...fresh.children].slice([...fresh.children].indexOf(part) + 1).map((one) => document.getElementById(one.id)).find(Boolean);
  if (next) front.insertBefore(part, next);
  else front.append(part);
}

function exchangeCard(card) {
  const old = document.getElementById(card.id);
  if (!old || old.contains(document.activeElement) || source(old) === source(card)) return;
  const before = find("data", old)?.value;
  old.replaceWith(card);
  if (before !== undefined && find("data", card) && find("data", card).value !== before) card.classList.add("fresh");
}

function finish() {
  for (const [tool, card] of local) document.getElementById(`card-${tool}`)?.replaceWith(card);
  writeNumbers();
  tick();
  arrange();
  findKinds();
}

/* what the visitor chose, kept in this browser */

function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem("home") ?? "{}");
    return { hidden: [], order: [], place: "", units: "", ...kept };
  } catch {
    return { hidden: [], order: [], place: "", units: "" };
  }
}

function remember() {
  try {
    localStorage.setItem("home", JSON.stringify(chosen));
  } catch {
    // Storage is blocked: the choice lasts for this page.
  }
}

function inOrder() {
  return [...chosen.order.filter((tool) => first.includes(tool)), ...first.filter((tool) => !chosen.order.includes(tool))];
}

function arrange() {
  const list = find("#cards");
  if (chosen.order.length) for (const tool of inOrder()) list.append(document.getElementById(`card-${tool}`));
  for (const tool of first) document.getElementById(`card-${tool}`).hidden = chosen.hidden.includes(tool);
  const celsius = chosen.units ? chosen.units === "C" : !/-(US|LR|MM|BS|BZ|KY|PW)\b/.test(navigator.language);
  if (celsius) for (const number of findAll('data[data-of="°F"]')) toCelsius(number);
}

function toCelsius(number) {
  number.textContent = formatNumber(((Number(number.value) - 32) * 5) / 9, { digits: 1 });
  if (number.nextElementSibling) number.nextElementSibling.textContent = "°C";
}

function offerChoices() {
  const [place, units] = [find("#place"), find("#units")];
  place.append(...PLACES.map(([value, words]) => element("option", { value }, words)));
  [place.value, units.value] = [chosen.place, chosen.units];
  place.addEventListener("change", () => {
    chosen.place = place.value;
    remember();
    if (chosen.place) readPlace();
    else location.reload();
  });
  units.addEventListener("change", () => {
    chosen.units = units.value;
    remember();
    writeNumbers();
    for (const number of findAll('data[data-of="°F"]')) if (number.nextElementSibling) number.nextElementSibling.textContent = "°F";
    arrange();
  });
  find("#reset").addEventListener("click", () => {
    localStorage.removeItem("home");
    location.reload();
  });
  listTiles();
}

function listTiles() {
  find("#order").replaceChildren(
    ...inOrder().map((tool, index, all) => {
      const words = find("h3", document.getElementById(`card-${tool}`)).textContent;
      const box = element("input", { type: "checkbox", id: `show-${tool}`, checked: !chosen.hidden.includes(tool) });
      box.addEventListener("change", () => {
        chosen.hidden = box.checked ? chosen.hidden.filter((one) => one !== tool) : [...chosen.hidden, tool];
        remember();
        arrange();
      });
      const move = (label, by) => {
        const button = element("button", { type: "button", class: "quiet", "aria-label": `${label} ${words}`, disabled: !all[index + by] }, by < 0 ? "↑" : "↓");
        button.addEventListener("click", () => {
          const order = [...all];
          [order[index], order[index + by]] = [order[index + by], order[index]];
          chosen.order = order;
          remember();
          arrange();
          listTiles();
          const again = find(`[aria-label="${label} ${words}"]`, find("#order"));
          (again.disabled ? document.getElementById(`show-${tool}`) : again).focus();
        });
        return button;
      };
      return element("li", {}, element("label", {}, box, ` ${words}`), move("Earlier:", -1), move("Later:", 1));
    }),
  );
}

/* the visitor's place: two ordinary calls, once in ten minutes */

async function readPlace() {
  const [lat, lon] = chosen.place.split(",");
  const words = PLACES.find(([value]) => value === chosen.place)?.[1] ?? chosen.place;
  for (const [tool, { path, read }] of Object.entries(AT_PLACE)) {
    const card = document.getElementById(`card-${tool}`);
    if (!card) continue;
    try {
      const { data } = await fetchJson(path, { query: { lat, lon } });
      const [value, unit, note] = read(data.data);
      if (value === null || value === undefined) continue;
      const made = card.cloneNode(true);
      made.classList.remove("missing", "stale", "fresh");
      const number = element("data", { value, "data-of": unit }, String(value));
      const time = element("time", { "data-age": "", datetime: data.updated_at });
      made.replaceChildren(
        find("h3", card).cloneNode(true),
        element("p", { class: "value" }, number, " ", element("span", { class: "unit" }, unit)),
        element("p", { class: "note soft small" }, [note, words].filter(Boolean).join(", ")),
        element("div", { class: "line" }),
        element("p", { class: "foot soft small" }, element("span", { class: "age" }, time), element("span", {}, data._meta.attribution[0] ?? "")),
      );
      local.set(tool, made);
    } catch (error) {
      find(".note", card)?.replaceChildren(`${words}: ${error.message}`);
    }
  }
  finish();
}

/* which kinds the map shows */

function findKinds() {
  for (const button of findAll("button.kind")) {
    const { kind } = button.dataset;
    button.setAttribute("aria-pressed", !off.has(kind));
    if (!button.dataset.ready) {
      button.dataset.ready = "yes";
      button.addEventListener("click", () => {
        if (!off.delete(kind)) off.add(kind);
        findKinds();
      });
    }
  }
  for (const one of findAll("#part-map [data-kind]:not(button)")) one.classList.toggle("off", off.has(one.dataset.kind));
}
