"""Compare the page about dependencies with the lock files, the licences of packages, and the project's lower bounds."""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.advisories import find_advisories
from tests.test_lock_files import pinned, plain

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_SHIPPED = ("dev", "build")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose heading begins like this."""
    table = PAGE[PAGE.index(heading) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def direct() -> dict[str, Requirement]:
    """What the project asks for itself, extras included, by name."""
    extras = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in NOT_SHIPPED}
    wanted = [
        Requirement(line) for line in (*PROJECT["dependencies"], *(line for each in extras.values() for line in each))
    ]
    return {plain(each.name): each for each in wanted}


PACKAGES = rows("| package | version |")
ADVISORIES = rows("| package | advisory |")


def test_each_package_that_a_service_may_need_is_described_and_no_other():
    assert sorted(row[0] for row in PACKAGES) == sorted(direct())
    assert all(all(row) and len(row) == 6 for row in PACKAGES)


@pytest.mark.parametrize("row", PACKAGES, ids=[row[0] for row in PACKAGES])
def test_its_version_is_locked_and_its_licence_is_what_it_states(row):
    name, version, licence, released, *_ = row
    assert version == pinned().get(name, "not locked")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d|not said", released)
    try:
        about = metadata(name)
    except PackageNotFoundError:
        assert version == "not locked" or name in ("pywin32",), f"{name} is not installed"
        return
    stated = " ".join([about.get("License-Expression", ""), about.get("License", ""), *about.get_all("Classifier", [])])
    assert licence.split("-")[0] in stated or licence.split()[0] in stated


@pytest.mark.parametrize("row", ADVISORIES, ids=[row[1] for row in ADVISORIES])
def test_neither_the_lock_nor_the_lower_bound_admits_a_version_with_a_known_fault(row):
    name, advisory, what, fixed = row
    assert re.fullmatch(r"(CVE|PYSEC)-20\d\d-\d+|GHSA(-\w{4}){3}", advisory)
    assert what
    assert Version(pinned()[name]) >= Version(fixed)
    lowest = (
        [Version(each.version) for each in direct()[name].specifier if each.operator == ">="]
        if name in direct()
        else []
    )
    assert all(version >= Version(fixed) for version in lowest)


def test_osv_is_asked_about_every_version_at_once():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content)["queries"])
        return httpx.Response(200, json={"results": [{}, {"vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]}]})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        found = find_advisories({"anyio": "4.0", "h11": "0.15"}, client)
    assert found == {"h11 0.15": ["PYSEC-1", "PYSEC-2"]}
    assert asked == [
        [
            {"package": {"name": "anyio", "ecosystem": "PyPI"}, "version": "4.0"},
            {"package": {"name": "h11", "ecosystem": "PyPI"}, "version": "0.15"},
        ]
    ]
