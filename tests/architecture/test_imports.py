"""Who imports whom, and what a start must not load."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.code import ROOT, find_circle, imports_of_ours, imports_of_scripts, modules, read

TO_UNTIE: list[str] = []  # ties between packages that are known and still to be cut
FACADE = {"toolserver"}  # what authors of tools import; it loads nothing by itself
HEAVY = ("mcp", "mcp_types", "web3", "fastmcp", "fastapi", "starlette", "httpx")  # not before they are needed


def test_the_contracts_of_the_import_linter_are_kept():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_no_module_imports_itself_in_a_circle_not_even_lazily():
    assert find_circle({name: imports_of_ours(name, lazy=True) for name in modules()}) == ""


def test_no_script_of_the_pages_imports_itself_in_a_circle():
    scripts = imports_of_scripts()

    assert any(scripts.values())
    assert find_circle(scripts) == ""


def package(name: str) -> str:
    """The room of a module: `toolserver.calls`, `toolserver.money.ledger`, `catalog`; one at the top is its own."""
    parts = name.split(".")
    depth = 3 if name.startswith("toolserver.money.") else 2 if parts[0] in ("toolserver", "tools") else 1
    return ".".join(parts[:depth])


def layers_contract() -> dict[str, list[str]]:
    """The contract of the import linter that orders the packages."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    found: dict[str, list[str]] = table["contracts"][0]
    return found


def test_each_package_has_its_layer():
    layers = {name for layer in layers_contract()["layers"] for name in re.split(r" [|:] ", layer)}

    assert {package(name) for name in modules()} - layers == {"toolserver", "toolserver.money", "tools"}, (
        "add it to pyproject.toml"
    )


def test_no_package_imports_itself_in_a_circle():
    graph: dict[str, set[str]] = {}
    to_untie = {tuple(each.split(" -> ")) for each in [*layers_contract().get("ignore_imports", []), *TO_UNTIE]}
    for name in modules():
        others = {other for other in imports_of_ours(name, lazy=True) if (name, other) not in to_untie}
        graph.setdefault(package(name), set()).update(map(package, others))
    rooms = {room: others - {room} - FACADE for room, others in graph.items()}

    assert find_circle(rooms) == ""


def allowed_importers() -> dict[str, set[str]]:
    """The table in docs/architecture.md: which libraries are imported by which modules only."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`[\w.]+`(?:, )?)+) \|", text, re.MULTILINE)
    return {library: set(re.findall(r"`([\w.]+)`", modules)) for library, modules in rows}


@pytest.mark.parametrize(
    "library", ["httpx", "httptools", "aiohappyeyeballs", "mcp", "web3", "nacl", "aiosqlite", "asyncpg"]
)
def test_a_library_is_imported_only_where_the_architecture_says(library):
    importers = {name for name, m in modules().items() if library in {each.split(".")[0] for each in m.imports}}

    assert importers == allowed_importers()[library]


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


@pytest.mark.slow("it starts Python")
def test_a_start_loads_nothing_that_it_does_not_need():
    script = (
        "import sys, toolserver.app, hypercorn.asyncio\n"
        "from toolserver.registry.registry import Registry\n"
        "Registry.load('tools')\n"
        f"print(*sorted(set({HEAVY}) & set(sys.modules)))"
    )
    assert printed(script) == ""


@pytest.mark.slow("it starts Python")
def test_loading_the_chain_leaves_the_recursion_limit_alone_even_for_a_moment():
    """One of its libraries raises it to 100,000, with which a deeply nested JSON body ends the process."""
    script = (
        "import sys\n"
        "before = sys.getrecursionlimit()\n"
        "change, changed = sys.setrecursionlimit, []\n"
        "sys.setrecursionlimit = lambda limit: (changed.append(limit), change(limit))\n"
        "import toolserver.money.purchases.chain\n"
        "print(before == sys.getrecursionlimit() and not changed)"
    )
    assert printed(script) == "True"
