"""The table of what is about to go, and the names that were published: none of them goes unannounced.

`UPDATE_CONTRACTS=1 make test ARGS=tests/registry/test_deprecations.py` adds new names to the list, and removes only
those whose sunset has passed.
"""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from rest_bridge.openapi.document import openapi
from rest_bridge.pages.changelog import changelog_markdown
from rest_bridge.pages.tool import tool_page
from tests.requirements import proves
from toolserver.mcp.definitions import definition
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, find_deprecations, write_headers, write_table
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.response_schema import answer_schema
from toolserver.registry.site_facts import SiteFacts

PUBLISHED = Path(__file__).parents[1] / "contracts" / "published.txt"
TOOLS = Registry.load("tools")
SINCE, SUNSET = date(2027, 1, 1), date(2027, 4, 1)
GOING = Deprecation("field", "weather.data.current.time", SINCE, SUNSET, "data.current.at")


def fields(operation: Operation) -> Iterator[str]:
    """Every member that an answer may have, by its path. Lists and alternatives add nothing to a path."""
    schema = answer_schema(operation)

    def walk(node: Any, path: str, seen: tuple[str, ...]) -> Iterator[str]:
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name not in seen and name in schema.get("$defs", {}):
                yield from walk(schema["$defs"][name], path, (*seen, name))
        for word in ("anyOf", "oneOf", "allOf"):
            for arm in node.get(word, ()):
                yield from walk(arm, path, seen)
        if isinstance(node.get("items"), dict):
            yield from walk(node["items"], path, seen)
        for name, member in node.get("properties", {}).items():
            yield f"field {path}.{name}"
            yield from walk(member, f"{path}.{name}", seen)

    yield from walk(schema, operation.name, ())


def names() -> set[str]:
    """All that callers may rely on, as lines of kind and name."""
    found: set[str] = set()
    for operation in TOOLS:
        found |= {f"tool {name}" for name in (operation.name, *operation.aliases)}
        found |= {f"path {operation.path}", *fields(operation)}
        found |= {f"argument {operation.name}.{name}" for name in operation.input_schema["properties"]}
        found |= {f"source {source.name}" for source in operation.sources}
    return found


def over(table: tuple[Deprecation, ...], today: date) -> set[str]:
    """The names that may be gone by now."""
    return {f"{each.kind} {each.name}" for each in table if each.sunset <= today}


def unannounced(published: set[str], here: set[str], table: tuple[Deprecation, ...], today: date) -> set[str]:
    """Published names that are gone without 90 days of notice. With a path, tool or field goes what is below it."""
    ended = over(table, today)
    below = tuple(f"{line.partition(' ')[2]}." for line in ended)
    return {line for line in published - here - ended if not line.partition(" ")[2].startswith(below or ("\0",))}


@proves("deprecations.notice")
def test_no_published_name_goes_unannounced_and_new_ones_are_written_down():
    today = datetime.now(UTC).date()
    published = set(PUBLISHED.read_text(encoding="utf-8").split("\n")) - {""} if PUBLISHED.exists() else set()
    gone = unannounced(published, names(), DEPRECATIONS, today)
    assert gone == set(), "announce them in toolserver/registry/deprecations.py, and remove them 90 days later"
    if os.environ.get("UPDATE_CONTRACTS"):
        PUBLISHED.write_text("".join(f"{line}\n" for line in sorted(names())), encoding="utf-8")
        return
    new = names() - published
    assert new == set(), "this writes them down: UPDATE_CONTRACTS=1 make test ARGS=tests/registry/test_deprecations.py"


@proves("deprecations.notice")
@pytest.mark.parametrize(
    ("gone", "today", "missing"),
    [
        ({"field weather.data.current.time"}, SUNSET, set()),
        ({"field weather.data.current.time"}, date(2027, 3, 31), {"field weather.data.current.time"}),
        ({"path /api/weather"}, SUNSET, {"path /api/weather"}),
        ({"field weather.data.current.time.zone"}, SUNSET, set()),
        (set(), SUNSET, set()),
    ],
)
def test_a_name_may_go_only_when_its_sunset_has_passed(gone, today, missing):
    published = names() | gone
    assert unannounced(published, names() - gone, (GOING,), today) == missing


def test_every_kind_of_name_is_published():
    assert {line.partition(" ")[0] for line in names()} == {"tool", "path", "argument", "field", "source"}
    assert {"field weather.data.current.time", "argument weather.place", "path /api/weather"} <= names()
    assert {"tool weather", "source OpenMeteo.forecast"} <= names()


@proves("deprecations.notice")
def test_less_than_90_days_of_notice_cannot_be_written():
    with pytest.raises(ValueError, match="90 days"):
        Deprecation("tool", "weather", date(2027, 1, 1), date(2027, 3, 31), "none")


@pytest.mark.parametrize(
    ("kind", "name", "concerned"),
    [
        ("tool", "weather", {"weather"}),
        ("path", "/api/weather", {"weather"}),
        ("argument", "weather.place", {"weather"}),
        ("source", "OpenMeteo.geocoding", {"weather", "air_quality"}),
    ],
)
def test_it_is_told_by_the_tools_that_it_concerns(kind, name, concerned):
    going = (Deprecation(kind, name, SINCE, SUNSET, "none"),)
    assert {operation.name for operation in TOOLS if find_deprecations(operation, going)} == concerned


def test_the_earliest_dates_count_and_each_has_its_member():
    later = Deprecation("tool", "weather", date(2026, 12, 1), date(2027, 9, 1), "forecast")
    told = write_headers([GOING, later])
    assert told["Deprecation"] == "@1796083200"
    assert told["Sunset"] == "Thu, 01 Apr 2027 00:00:00 GMT"
    assert told["X-Service-Deprecation"].split(", ")[1] == "tool=weather; sunset=2027-09-01; replacement=forecast"
    assert write_headers([]) == {}


def test_the_changelog_begins_with_what_is_about_to_go():
    text = "# Changelog\n\n## [Unreleased]\n"
    assert changelog_markdown(text, ()).body.decode() == text
    table = write_table((GOING,))
    assert "| field | `weather.data.current.time` | 2027-01-01 | 2027-04-01 | data.current.at |" in table
    assert changelog_markdown(text, (GOING,)).body.decode() == f"# Changelog\n\n{table}## [Unreleased]\n"


def test_the_description_marks_paths_and_tools():
    facts = SiteFacts(base_url="https://data.example", source="data.example")
    going = (Deprecation("tool", "forex", SINCE, SUNSET, "none"),)
    described = openapi(TOOLS, facts, deprecations=going)["paths"]
    assert described["/api/forex"]["get"]["deprecated"] is True
    assert "deprecated" not in described["/api/gas"]["get"]


@proves("terms.deprecated")
def test_a_deprecation_stands_on_the_tool_on_every_face():
    place = Deprecation("argument", "weather.place", SINCE, SUNSET, "where")
    facts, weather, gas = SiteFacts("https://data.example", "data.example"), TOOLS["weather"], TOOLS["gas"]
    going = (GOING, place)

    for output_schema in (True, False):
        entry = definition(weather, output_schema=output_schema, deprecations=going)
        assert {each["name"] for each in entry["_meta"]["toolserver/deprecations"]} == {GOING.name, place.name}
        assert entry["inputSchema"]["properties"]["place"]["deprecated"] is True
        assert "deprecated" not in entry["inputSchema"]["properties"]["lat"]
        assert "toolserver/deprecations" not in definition(gas, deprecations=going).get("_meta", {})
    assert "place" in weather.input_schema["properties"]
    assert "deprecated" not in str(weather.input_schema)

    described = openapi(TOOLS, facts, deprecations=going)
    parameters = described["paths"]["/api/weather"]["get"]["parameters"]
    assert [each["name"] for each in parameters if each.get("deprecated")] == ["place"]
    fields = str(described["components"]["schemas"]["weather"])
    assert fields.count("'deprecated': True") == 1
    assert "deprecated" not in str(described["components"]["schemas"]["gas"])

    pages = [tool_page(TOOLS, facts, tool, None, deprecations=going).body.decode() for tool in (weather, gas)]
    assert ["will be removed on 2027-04-01" in page for page in pages] == [True, False]
    assert pages[0].count("will be removed on") == len(going)
