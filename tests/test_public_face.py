"""Check what packages of tools import: the names of `toolserver` itself, and that our own tools use no others."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import toolserver

ROOT = Path(__file__).resolve().parent.parent
TREE = ast.parse(Path(toolserver.__file__).read_text(encoding="utf-8"))
FOR_TYPE_CHECKERS = {
    alias.name: node.module
    for block in TREE.body
    if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
    for node in block.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
OURS = [path for path in sorted((ROOT / "tools").rglob("*.py")) if path.parent.name != "simulated"]


def test_what_a_type_checker_sees_is_listed():
    assert set(dir(toolserver)) >= FOR_TYPE_CHECKERS.keys()


@pytest.mark.parametrize("name", FOR_TYPE_CHECKERS)
def test_each_name_is_there_and_explained(name):
    assert getattr(toolserver, name) is getattr(sys.modules[FOR_TYPE_CHECKERS[name]], name)
    assert re.search(rf"`{name}`", toolserver.__doc__)


def test_an_unknown_name_is_an_error_of_the_usual_kind():
    with pytest.raises(AttributeError, match="'toolserver' has no attribute 'teapot'"):
        _ = toolserver.teapot


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_our_own_tools_and_sources_use_the_public_face_only(path):
    modules = {
        name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if name.split(".")[0] == "toolserver"
    }

    assert modules <= {"toolserver"}


def test_importing_the_package_loads_nothing_else_of_it():
    script = "import sys, toolserver; print(*[m for m in sys.modules if m.startswith(('toolserver.', 'pydantic'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)

    assert done.stdout.strip() == ""
