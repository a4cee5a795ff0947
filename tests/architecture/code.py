"""The product's own files, read once: what each one imports, defines and says."""

import ast
import functools
import graphlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")


class Module(NamedTuple):
    """What is asked of a module. `at_once` is imported with it: not inside functions, not for type checkers only."""

    text: str
    tree: ast.Module
    lines: int
    functions: tuple[tuple[str, int], ...]
    imports: frozenset[str]
    at_once: frozenset[str]


def module_of(path: Path) -> str:
    """The dotted name of a file of the product."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


@functools.cache
def modules() -> Mapping[str, Module]:
    """Every module of the product by its dotted name."""
    return {name: read(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def read(text: str) -> Module:
    """The facts about one source text."""
    functions: list[tuple[str, int]] = []
    found: set[str] = set()
    at_once: set[str] = set()

    def visit(node: ast.AST, *, later: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(names := set(imported(node)))
            at_once.update(() if later else names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
            later = True
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            later = True
        for child in ast.iter_child_nodes(node) if isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler) else ():
            visit(child, later=later)

    tree = ast.parse(text)
    visit(tree, later=False)
    lines = len(text.splitlines())
    return Module(text, tree, lines, tuple(functions), frozenset(found), frozenset(at_once))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The full names; whether the last part of one is a module is not known."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(name: str) -> str | None:
    """The module of ours that an import is of."""
    return next((each for each in (name, name.rpartition(".")[0]) if each in FILES), None)


def imports_of_ours(name: str, *, lazy: bool) -> set[str]:
    """The modules of ours that a module imports: also inside functions and for type checkers, where `lazy`."""
    module = modules()[name]
    names = module.imports if lazy else module.at_once
    return {found for each in names if (found := ours(each))} - {name}


def find_circle(graph: Mapping[str, set[str]]) -> str:
    """One circle, written out, or nothing."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " -> ".join(error.args[1])
    return ""


def imports_of_scripts() -> dict[str, set[str]]:
    """Which scripts of the pages each script imports."""
    graph = {}
    for path in sorted((ROOT / "rest_bridge").rglob("*.js")):
        if "vendor" not in path.parts:
            names = re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""", path.read_text(encoding="utf-8"))
            places = [(path.parent / name.partition("?")[0]).resolve() for name in names]
            graph[path.relative_to(ROOT).as_posix()] = {
                place.relative_to(ROOT).as_posix() for place in places if "vendor" not in place.parts
            }
    return graph
