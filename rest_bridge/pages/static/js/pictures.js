// Draws the pictures of an answer as its tool declares them: every row in the answer, and nothing else.

import { addCopyButtons } from "./copy.js";
import { element, findAll } from "./dom.js";
import { plainName } from "./format.js";
import { readPaths } from "./paths.js";

/** Draw all pictures into a place. Resolves to the number drawn. */
export async function drawPictures(place, pictures, payload) {
  const drawn = [];
  for (const picture of pictures) {
    for (const [name, rows] of readPaths(payload, picture.rows)) {
      const drawing = rows && size(rows) ? await draw(picture, rows, payload) : null;
      const title = name ? `${picture.title}: ${plainName(name)}` : picture.title;
      if (drawing) drawn.push(figure(title, drawing, picture.kind === "series" ? "half" : null));
    }
  }
  place.replaceChildren(...drawn);
  place.classList.add("pictures");
  addCopyButtons(place);
  for (const chart of findAll("[data-pending]", place)) chart.dispatchEvent(new Event("attached"));
  return drawn.length;
}

function size(rows) {
  return Array.isArray(rows) ? rows.length : Object.keys(rows).length;
}

function figure(title, picture, width) {
  return element("figure", { class: width }, element("figcaption", {}, title), picture);
}

async function draw(picture, rows, payload) {
  if (picture.kind === "map") return (await import("./map.js")).drawMap(picture, rows);
  if (picture.kind === "series") return (await import("./series.js")).drawSeries(picture, rows);
  if (picture.kind === "timeline") return (await import("./timeline.js")).drawTimeline(picture, rows);
  if (picture.kind === "flows") return (await import("./flows.js")).drawFlows(picture, rows);
  if (picture.kind === "board") return (await import("./board.js")).drawBoard(picture, rows);
  if (picture.kind === "text") return (await import("./prompt.js")).drawPrompt(picture, rows, payload);
  if (picture.kind === "matrix") return (await import("./matrix.js")).drawMatrix(picture, rows);
  if (picture.kind === "grid") return (await import("./grid.js")).drawGrid(picture, rows);
  return (await import("./bars.js")).drawBars(picture, rows);
}
