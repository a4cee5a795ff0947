"""Write the coastline of maps, simplified from Natural Earth's: `python -m tests.coastline land-110m.json`.

The file is that of the npm package world-atlas: TopoJSON of Natural Earth's 1:110m land, which is in the public domain.
"""

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parents[1] / "rest_bridge" / "pages" / "static" / "js" / "world.js"
NEAR, SMALL = 0.35, 4.0  # degrees that a point may be off; square degrees that an island needs
HEAD = """\
// The coastline of the world in degrees, x to the east and y to the south, as the path of an SVG with the viewBox
// "-180 -90 360 180". Made by tests/coastline.py of Natural Earth's 1:110m land (public domain) as world-atlas has it.

export const LAND =
  "{path}";
"""
Point = tuple[float, float]


def rings(world: dict[str, Any]) -> list[list[Point]]:
    """Every ring of the land, as longitudes and latitudes."""
    (kx, ky), (dx, dy) = world["transform"]["scale"], world["transform"]["translate"]
    arcs = []
    for arc in world["arcs"]:
        x = y = 0
        line = []
        for step in arc:
            x, y = x + step[0], y + step[1]
            line.append((x * kx + dx, y * ky + dy))
        arcs.append(line)

    def join(indices: list[int]) -> list[Point]:
        whole: list[Point] = []
        for index in indices:
            line = arcs[index] if index >= 0 else arcs[~index][::-1]
            whole += line[1 if whole else 0 :]
        return whole

    (shape,) = world["objects"]["land"]["geometries"]
    return [join(ring) for polygon in shape["arcs"] for ring in polygon]


def unroll(ring: list[Point]) -> list[list[Point]]:
    """The ring without jumps at the date line; where it reaches over the edge of the map, again a turn away."""
    line, turn = [ring[0]], 0.0
    for (ax, _), (bx, by) in itertools.pairwise(ring):
        turn += 360 if bx - ax < -180 else -360 if bx - ax > 180 else 0
        line.append((bx + turn, by))
    if abs(turn) > 180:  # around the pole: closed below the map
        line += [(line[-1][0], -90.0), (line[0][0], -90.0), line[0]]
    over = [360.0 * sign for sign in (-1, 1) if any(sign * x > 180 for x, _ in line)]
    return [line, *([(x - shift, y) for x, y in line] for shift in over)]


def simplify(line: list[Point]) -> list[Point]:
    """The line with no point farther than `NEAR` from the given one (Douglas and Peucker)."""
    if len(line) < 3:
        return line
    (ax, ay), (bx, by) = line[0], line[-1]
    length = math.hypot(bx - ax, by - ay)

    def off(point: Point) -> float:
        if not length:
            return math.hypot(point[0] - ax, point[1] - ay)
        return abs((bx - ax) * (ay - point[1]) - (ax - point[0]) * (by - ay)) / length

    far = max(range(1, len(line) - 1), key=lambda i: off(line[i]))
    if off(line[far]) <= NEAR:
        return [line[0], line[-1]]
    return simplify(line[: far + 1])[:-1] + simplify(line[far:])


def area(ring: list[Point]) -> float:
    pairs = zip(ring, ring[1:] + ring[:1], strict=True)
    return abs(sum(ax * by - bx * ay for (ax, ay), (bx, by) in pairs)) / 2


def write(ring: list[Point]) -> str:
    """A ring as a path of relative steps, in tenths of a degree."""
    whole = [(round(x * 10), round(-y * 10)) for x, y in ring]
    (x, y), steps = whole[0], []
    text = f"M{x / 10:g} {y / 10:g}l"
    for to_x, to_y in whole[1:-1]:
        steps.append(f"{(to_x - x) / 10:g} {(to_y - y) / 10:g}")
        x, y = to_x, to_y
    return text + " ".join(steps).replace(" -", "-").replace("0.", ".") + "z"


def main(source: str) -> None:
    found = rings(json.loads(Path(source).read_text(encoding="utf-8")))
    whole = [line for ring in found for line in unroll(ring)]
    path = "".join(write(simplify(line)) for line in whole if area(line) >= SMALL)
    PLACE.write_text(HEAD.format(path=path), encoding="utf-8")
    print(f"{PLACE.name}: {len(path)} characters")


if __name__ == "__main__":
    main(sys.argv[1])
