"""The shape of the code: who imports whom, how large things are, and what a start must not load."""

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("toolserver", "tools", "rest_bridge", "catalog")
LINES, FUNCTION_LINES = 320, 45
LONGER = {
    "toolserver.app.running": "what is opened is closed in the reverse order: one nesting, read from the outside in",
    "tools.simulated.gdacs._feature": "one literal, the upstream's wire format",
    "rest_bridge.openapi_documents._mcp_post": "one literal, a piece of the description",
}  # files and functions that may be longer than others, and why
HEAVY = ("mcp", "mcp_types", "web3", "fastmcp", "fastapi", "starlette", "httpx")  # not before they are needed


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


class Module(NamedTuple):
    """What is asked of a module. `at_once` is imported with it: not inside functions, not for type checkers only."""

    lines: int
    functions: tuple[tuple[str, int], ...]
    imports: frozenset[str]
    at_once: frozenset[str]


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return {name: read(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def read(text: str) -> Module:
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

    visit(ast.parse(text), later=False)
    return Module(len(text.splitlines()), tuple(functions), frozenset(found), frozenset(at_once))


def imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The full names; whether the last part of one is a module is not known."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(name: str) -> str | None:
    """The module of ours that an import is of."""
    return next((each for each in (name, name.rpartition(".")[0]) if each in FILES), None)


def test_the_contracts_of_the_import_linter_are_kept():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_no_module_imports_itself_in_a_circle(modules):
    graph = {name: {found for each in m.at_once if (found := ours(each))} - {name} for name, m in modules.items()}

    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def allowed_importers() -> dict[str, set[str]]:
    """The table in docs/architecture.md: which libraries are imported by which modules only."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`[\w.]+`(?:, )?)+) \|", text, re.MULTILINE)
    return {library: set(re.findall(r"`([\w.]+)`", modules)) for library, modules in rows}


@pytest.mark.parametrize("library", ["httpx", "mcp", "web3", "nacl", "aiosqlite"])
def test_a_library_is_imported_only_where_the_architecture_says(modules, library):
    importers = {name for name, m in modules.items() if library in {each.split(".")[0] for each in m.imports}}

    assert importers == allowed_importers()[library]


def test_files_and_functions_are_short(modules):
    files = {name: m.lines for name, m in modules.items() if m.lines > LINES}
    functions = {
        f"{name}.{function}": lines
        for name, m in modules.items()
        for function, lines in m.functions
        if lines > FUNCTION_LINES
    }
    longer = files | functions

    assert {name: lines for name, lines in longer.items() if name not in LONGER} == {}
    assert LONGER.keys() <= longer.keys(), "no longer so long"


def test_what_is_imported_is_found_wherever_it_stands():
    text = """
import a.b
if TYPE_CHECKING:
    from c import d
try:
    from e import f
except ImportError:
    import g
class K:
    from h import i
def later():
    with x:
        import j
"""
    found = read(text)
    assert found.imports == {"a.b", "c.d", "e.f", "g", "h.i", "j"}
    assert found.at_once == {"a.b", "e.f", "g", "h.i"}
    assert found.functions == (("later", 3),)


def printed(script: str) -> str:
    """What a script says in a process of its own."""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_start_loads_nothing_that_it_does_not_need():
    script = (
        "import sys, toolserver.app, hypercorn.asyncio\n"
        "from toolserver.registry import Registry\n"
        "Registry.load('tools')\n"
        f"print(*sorted(set({HEAVY}) & set(sys.modules)))"
    )
    assert printed(script) == ""


def test_loading_the_chain_leaves_the_recursion_limit_alone_even_for_a_moment():
    """One of its libraries raises it to 100,000, with which a deeply nested JSON body ends the process."""
    script = (
        "import sys\n"
        "before = sys.getrecursionlimit()\n"
        "change, changed = sys.setrecursionlimit, []\n"
        "sys.setrecursionlimit = lambda limit: (changed.append(limit), change(limit))\n"
        "import toolserver.payments.chain\n"
        "print(before == sys.getrecursionlimit() and not changed)"
    )
    assert printed(script) == "True"
