"""Check that SECURITY.md names tests for every threat, and that callers cannot make a tool fetch any address."""

import re
from collections.abc import Iterator

from tests.test_docs import ROOT, read
from tests.test_requirements import modules
from toolserver.registry.registry import Operation, Registry

ROW = re.compile(r"^\| (?!threat |whom |---)(.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^(?: {4})?(?:async )?def (test_\w+)\(", re.MULTILINE)
FETCHED = re.compile(r"ur[il]s?$|^(host|hostname|callback|webhook|endpoint_address|redirect)", re.IGNORECASE)


def threats() -> list[list[str]]:
    """The rows of the threats: what, the rule, the tests."""
    return [row.split(" | ") for row in ROW.findall(read(ROOT / "SECURITY.md").partition("## Threats")[2])]


def names_of_tests() -> Iterator[str]:
    for path in (*modules(), *sorted((ROOT / "tests").rglob("*_contract.py"))):  # contracts that engines' files import
        yield from DEFINED.findall(path.read_text(encoding="utf-8"))


def test_every_test_that_is_named_exists():
    named = TEST.findall(read(ROOT / "SECURITY.md"))

    assert len(named) > 100
    assert sorted(set(named) - set(names_of_tests())) == []


def test_every_threat_has_a_rule_and_a_test():
    assert len(threats()) > 60
    for row in threats():
        assert len(row) == 3, row
        assert TEST.findall(row[2]), row[0]
        assert re.fullmatch(r"`test_\w+`(, `test_\w+`)*", row[2]), row[0]


def addresses(operation: Operation) -> list[str]:
    """Arguments that could name a place to be fetched."""
    properties = operation.input_schema.get("properties", {})
    return [name for name, about in properties.items() if FETCHED.search(name) or "uri" in str(about.get("format"))]


GUARDED = {"webhook_subscribe": ["webhook_url"]}  # goes through the egress guard of toolserver/webhooks


def test_no_tool_takes_an_address_to_fetch_but_the_one_that_is_guarded():
    found = {operation.name: addresses(operation) for operation in Registry.load("tools")}

    assert len(found) > 40
    assert {name: listed for name, listed in found.items() if listed} == GUARDED
