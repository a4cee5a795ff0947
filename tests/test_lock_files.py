"""The lock files: pinned as in constraints.txt, everything with hashes, nothing missing that the project needs."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MEND = "this writes them: make lock"
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-server.txt")
SERVER = ["fast", "postgres", "redis"]


def plain(name: str) -> str:
    """A distribution's name as package tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(file: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes by name."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    rows = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;]+)(.*)$", text, re.MULTILINE)
    return {plain(name): (version, rest.count("--hash=sha256:")) for name, version, rest in rows}


def pinned() -> dict[str, str]:
    """The versions in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return {plain(name): version for name, _, version in (line.partition("==") for line in lines)}


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_file_says_what_the_constraints_say_and_has_hashes(file):
    versions, found = pinned(), locked(file)

    assert found
    assert {name for name, (_, hashes) in found.items() if not hashes} == set(), MEND
    assert {n: v for n, (v, _) in found.items() if versions.get(n, v) != v} == {}, MEND


@pytest.mark.parametrize(("file", "extras"), list(zip(LOCKS, (["build"], ["dev"], SERVER), strict=True)))
def test_a_lock_file_has_all_that_the_project_names(file, extras):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    names = {plain(re.match(r"[\w.-]+", line)[0]) for line in wanted} - {plain(project["name"])}  # type: ignore[index]

    assert names <= locked(file).keys(), MEND


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_file_names_no_address(file):
    assert "://" not in (ROOT / file).read_text(encoding="utf-8")
