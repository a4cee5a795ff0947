"""Check the lock files: versions of constraints.txt, hashes for everything, and every requirement of the project."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
MEND = "this writes them: make lock"
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-server.txt")
INSTALLER = "requirements-installer.txt"
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


@pytest.mark.parametrize("file", [*LOCKS, INSTALLER])
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


def brought(line: str, seen: set[tuple[str, str]]) -> Iterator[str]:
    """The names of a requirement and of all that it brings on this machine, as its installed metadata say."""
    wanted = Requirement(line)
    for extra in ("", *wanted.extras):
        if (wanted.name, extra) in seen:
            continue
        seen.add((wanted.name, extra))
        yield plain(wanted.name)
        try:
            lines = requires(wanted.name) or []
        except PackageNotFoundError:
            continue  # one that only a server has; what it brings is in no environment of the tests
        for line_below in lines:
            below = Requirement(line_below)
            if below.marker is None or below.marker.evaluate({"extra": extra}):
                yield from brought(line_below, seen)


@pytest.mark.parametrize(("file", "extras"), list(zip(LOCKS, (["build"], ["dev"], SERVER), strict=True)))
def test_a_lock_file_has_all_that_its_packages_bring_since_pip_is_told_to_look_for_none(file, extras):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seen: set[tuple[str, str]] = set()
    lines = [*project["dependencies"], *(line for e in extras for line in project["optional-dependencies"][e])]
    names = {name for line in lines for name in brought(line, seen)} - {plain(project["name"])}

    assert len(names) > len(project["dependencies"])
    assert names <= locked(file).keys(), MEND


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile"])
def test_pip_installs_a_lock_file_and_looks_for_nothing_else(file):
    """An older pip asks for the newest release of what another package names with an extra, and then refuses it."""
    lines = [line for line in (ROOT / file).read_text(encoding="utf-8").splitlines() if "--require-hashes" in line]

    assert lines
    assert [line for line in lines if "--no-deps" not in line] == []


@pytest.mark.parametrize("file", [*LOCKS, INSTALLER])
def test_a_lock_file_names_no_address(file):
    assert "://" not in (ROOT / file).read_text(encoding="utf-8")
