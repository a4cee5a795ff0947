// Shows a map of the world on which a reader chooses a place.

import { shape } from "./dom.js";
import { LAND } from "./world.js";

/** Return a map on which a press chooses a place: `chosen` gets degrees north and east, to two decimals. */
export function drawChooser(chosen) {
  const mark = shape("circle", { class: "mark", r: 2.5, cx: -400, cy: 0 });
  const about = { class: "world chooser", viewBox: "-180 -90 360 180", role: "img", "aria-label": "A map of the world: press a place, or write its latitude and longitude above" };
  const map = shape("svg", about, shape("path", { class: "land", d: LAND }), mark);
  map.addEventListener("click", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    mark.setAttribute("cx", at.x);
    mark.setAttribute("cy", at.y);
    chosen(Math.round(-at.y * 100) / 100, Math.round(at.x * 100) / 100);
  });
  return map;
}
