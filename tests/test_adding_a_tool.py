"""Follow docs/adding-a-tool.md and docs/changing-a-price.md step by step in a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "toolserver-tides" / "toolserver_tides"
COPIED = ("toolserver", "tools", "rest_bridge", "catalog", "tests", "docs")
FILES = ("README.md", "CHANGELOG.md", "pyproject.toml")
TEST = """
import pytest

from tools.free.tide import tide
from toolserver import SourceError


async def test_the_level_is_the_last_one_that_the_gauge_measured(compose):
    made = await compose(tide)

    assert 0.5 < made.json["level_m"] < 5.5
    assert not made.notes.warnings


async def test_when_the_gauge_is_down_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(tide, down={"Harbour.water_levels"})
"""
OWN = "tests/tools/free/test_tide.py"
HELD = (
    "tests/test_contracts.py",
    "tests/test_docs.py::test_the_generated_pages_say_what_the_tools_say",
    "tests/test_spec.py::test_the_free_endpoints_are_those_of_the_table",
    "tests/registry/test_deprecations.py",
)
"""What names each step that was forgotten."""

WHOLE = (
    "tests/test_requirements.py",
    "tests/tools/test_cloud.py",
    "tests/tools/test_all_free.py::test_the_endpoints_are_those_of_the_specification",
    "tests/tools/test_all_free.py::test_an_answer_is_whole_and_says_what_the_world_says[tide--]",
    "tests/tools/test_all_free.py::test_an_answer_is_the_same_bytes_as_long_as_it_is_said_to_be[tide]",
    "tests/test_spec.py::test_an_endpoint_takes_its_arguments_and_is_cached_as_long_as_documented[tide]",
    "tests/tools/test_licences.py::test_a_free_endpoint_keeps_what_the_policy_leaves_it[tide-no_forbidden]",
    "tests/tools/test_licences.py::test_a_free_endpoint_keeps_what_the_policy_leaves_it[tide-commercial]",
)
"""Tests over all tools that the new one must pass as it is, though nobody extended a list of theirs."""

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the checkout with its bytecode, and without what else is not tracked."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules", ".*"))
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def run(tree: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A Python module with its arguments, in the copy and of the copy."""
    surroundings = {name: value for name, value in os.environ.items() if name not in ("REQUIRE", "UPDATE_CONTRACTS")}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tree,
        env=surroundings | {"PYTHONPATH": str(tree)} | more,
        capture_output=True,
        text=True,
        check=False,
    )


def check(tree: Path, *more: str) -> str:
    """What the tests that hold a tool to the common rules say: nothing when all of them pass."""
    done = run(tree, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *HELD, *more)
    return "" if done.returncode == 0 else done.stdout


def follow_commands(tree: Path, text: str) -> None:
    """Run what the page's console block says, with this interpreter in place of make and of the environment's."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in re.findall(r"\$ (.*)", block):
            if "make test" in line:
                name, _, value = line.split()[0].partition("=")
                paths = line.rpartition("ARGS=")[2].strip('"').split()
                done = run(tree, "pytest", "-q", "-n", "0", *paths, **{name: value})
            else:
                done = run(tree, "toolserver", *line.split()[1:])
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_a_tool_is_added_by_the_steps_of_the_page_and_each_forgotten_one_is_named(tree: Path) -> None:
    text = page("adding-a-tool.md")
    by_hand = re.findall(r"^\| `([^`]+)` \|", text.partition("## 0.")[2].partition("## 1.")[0], re.MULTILINE)
    assert len(by_hand) <= 5
    for name in by_hand[:3]:
        _, folder, file = name.split("/")
        example = (EXAMPLE / folder / file).read_text(encoding="utf-8").replace("toolserver_tides", "tools")
        (tree / name).write_text(example.replace('Licence("yes"', 'Licence("unclear"'), encoding="utf-8")
    (tree / by_hand[3]).write_text(TEST, encoding="utf-8")
    assert by_hand[3:] == [OWN, "CHANGELOG.md"]

    said = check(tree)
    for hint in ("tests/contracts/tide.json is missing", "UPDATE_CONTRACTS=1 make test", "docs/tools/tide.md"):
        assert hint in said
    assert "`toolserver docs` brings them up to date" in said
    assert "a new free endpoint needs its contract" in said
    assert "tests/registry/test_deprecations.py" in said

    follow_commands(tree, text)
    assert check(tree, *WHOLE) == ""
    alone = run(tree, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", OWN)
    assert alone.returncode == 0, alone.stdout
    assert json.loads((tree / "tests/contracts/tide.json").read_text(encoding="utf-8"))["rest"] == "GET /api/tide"
    assert "| [`tide`](tools/tide.md) |" in (tree / "docs" / "tools.md").read_text(encoding="utf-8")


def test_a_price_is_changed_in_one_place_and_by_the_commands_of_the_page(tree: Path) -> None:
    path = tree / "tools" / "premium" / "sentiment.py"
    text = path.read_text(encoding="utf-8")
    assert text.count("credits=2,") == 1
    path.write_text(text.replace("credits=2,", "credits=3,"), encoding="utf-8")

    follow_commands(tree, page("changing-a-price.md"))
    contract = json.loads((tree / "tests/contracts/premium_sentiment.json").read_text(encoding="utf-8"))
    assert contract["credits"] == 3
    assert "3 credits" in (tree / "docs/tools/premium_sentiment.md").read_text(encoding="utf-8")
