"""`python -m tests.house`: every figure of the house. `--room toolserver/calls` lists the places within a folder.

`--calls` runs the demo and prints how many product files work for one call of each kind (tests/house/calls.py).
`--reading` points the links of docs/reading-the-code.md at the lines where the functions stand now.
"""

import argparse
import sys
from collections.abc import Iterator

from tests.architecture.code import PACKAGES, find_circle, imports_of_ours, imports_of_scripts, modules
from tests.architecture.test_imports import package
from tests.house import calls, fields, figures, reading
from toolserver.registry.registry import Registry


def read_graph() -> dict[str, set[str]]:
    """Which of our modules each one imports, inside functions and for type checkers too."""
    return {name: imports_of_ours(name, lazy=True) for name in modules()}


def list_places() -> dict[str, list[str]]:
    """Each figure that is a count of places, with the places."""
    product, tests = figures.read_files(*PACKAGES), figures.read_files("tests")
    packages = {file.name for file in product if file.place.endswith("__init__.py")}
    return {
        "filler names": [*figures.list_fillers(product)],
        "splatted literals": [*figures.list_splats(product)],
        "own imports inside functions": [*figures.list_inner_imports(product)],
        "constructors of eight or more fields": [*figures.list_wide_constructors(product)],
        "engine modules with one user": [*figures.list_one_user_modules(read_graph(), packages)],
        "protocols with one implementation and no double": [*figures.list_lonely_protocols(product, tests)],
        "private names in tests": [*figures.list_private_names(tests)],
        "patches of our parts in tests": [*figures.list_patches(tests)],
        "fields of answers without a description": fields.list_silent_fields(Registry.load("tools")),
    }


def list_circles() -> Iterator[str]:
    """The circles of files, of packages and of scripts; empty texts where there is none."""
    graph = read_graph()
    del graph["toolserver"]  # what authors of tools import; it loads nothing by itself
    rooms: dict[str, set[str]] = {}
    for name, imports in graph.items():
        rooms.setdefault(package(name), set()).update(map(package, imports - {"toolserver"}))
    yield find_circle({name: imports - {"toolserver"} for name, imports in graph.items()})
    yield find_circle({room: others - {room} for room, others in rooms.items()})
    yield find_circle(imports_of_scripts())


def print_figures() -> None:
    """One figure a line."""
    product, tests = figures.read_files(*PACKAGES), figures.read_files("tests")
    places, lines = list_places(), figures.count_lines(product)
    middle, long = figures.measure_lines(product)
    print(f"{len(product):8,} files of the product, {lines:,} lines; {figures.count_lines(tests):,} lines of tests")
    for name, found in places.items():
        per_thousand = f", {1000 * len(found) / lines:.1f} per 1,000 lines" if name == "filler names" else ""
        print(f"{len(found):8,} {name}{per_thousand}")
    circles = [circle for circle in list_circles() if circle]
    print(f"{len(circles):8,} circles of files, packages or scripts", *circles, sep="\n         ")
    print(f"{middle:8g} the median length of a line, {long} that of the longest tenth")


def main(arguments: list[str]) -> None:
    """Print figures, places or files per call."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--room", help="print the places within this folder, and within the tests of that room")
    parser.add_argument("--calls", action="store_true", help="run the demo and count the files that work for a call")
    parser.add_argument("--reading", action="store_true", help="point the links of docs/reading-the-code.md anew")
    options = parser.parse_args(arguments)
    if options.calls:
        calls.print_counts()
    elif options.reading:
        reading.point_links()
    elif options.room:
        folder = options.room.rstrip("/")
        starts = (folder, folder.replace("/", "."), f"tests/{folder.removeprefix('toolserver/')}")
        for name, places in list_places().items():
            print(f"{name}:", *(f"  {place}" for place in places if place.startswith(starts)), sep="\n")
    else:
        print_figures()


if __name__ == "__main__":
    main(sys.argv[1:])
