"""What licence policies withhold: as tables, as the tools that a service offers, and what brings a section back."""

from dataclasses import replace
from datetime import date

import pytest

from tests.catalog.tiny import TINY
from toolserver.registry.licence_table import (
    POLICIES,
    WHAT,
    LicenceTable,
    list_premium,
    withhold,
    write_markdown_table,
    write_plain_table,
    write_readings,
    write_routes,
)
from toolserver.registry.registry import Registry
from toolserver.registry.terms import TermsReading, find_readings
from toolserver.upstream.rights import Rights, publisher_of

DEEP = TINY["premium_deep"]
TABLE = LicenceTable(
    {"premium_deep": ["notes", "windows", "x.y"], "premium_b": ["z"]},
    {
        "any": {},
        "no_forbidden": {"premium_deep": {"x.y": [["Sample.place"]]}},
        "commercial": {
            "premium_deep": {"x.y": [["OWN_URL"], ["Sample.place"]], "windows": [["Sample.place", "Other.one"]]},
            "premium_b": {},
        },
    },
)


def contracts(*names):
    return Rights("commercial", tuple((name, "all of it") for name in names))


def test_a_terminal_gets_every_policy_with_its_meaning_and_every_tool():
    text = write_plain_table(TABLE)
    for policy in POLICIES:
        assert f"sources.licence_policy={policy}: {WHAT[policy]}" in text
    assert "premium_deep                 x.y, windows" in text
    assert text.count("nothing lost") == 4


def test_markdown_has_a_row_for_each_tool():
    assert write_markdown_table(TABLE).split("\n") == [
        "| Tool | lost with `no_forbidden` | lost with `commercial` |",
        "|---|---|---|",
        "| `premium_deep` | x.y | x.y, windows |",
        "| `premium_b` | nothing lost | nothing lost |",
    ]


def test_routes_name_the_price_what_is_kept_and_the_terms_of_each_source():
    deep = replace(DEEP, sources=TINY["place"].sources) if TINY.get("place") else DEEP
    (source,) = TINY.sources
    other = replace(source, name="Other.one", licence=replace(source.licence, kind="no", terms_url=None))
    registry = Registry([replace(deep, sources=(source, other))])
    readings = {"Sample": TermsReading("Sample", "read", date(2026, 11, 25), "All may use it")}
    text = write_routes(TABLE, registry, readings)
    place = "[`Sample.place`](https://upstream.example/terms)"
    assert text.split("\n")[2:] == [
        "| `premium_deep`, 2 credits | `notes` | not needed | not needed | [below](#evidence) |",
        f"| `premium_deep` | `x.y` | `OWN_URL` | {place} | Sample: read, 2026-11-25 |",
        f"| `premium_deep` | `windows` | – | {place} and `Other.one` (forbidden) | Sample: read, 2026-11-25 |",
    ]
    assert write_readings(registry, readings).split("\n")[2:] == [
        f"| Sample | {source.licence.kind} | All may use it | [read](https://upstream.example/terms) | 2026-11-25 |"
    ]


def test_every_publisher_that_a_premium_tool_reads_has_a_reading_of_its_terms_and_no_other_has():
    sources = Registry(list_premium(Registry.load("tools"))).sources
    own = {"BitcoinCore"}  # has no terms: it is the operator's
    assert {publisher_of(source.name) for source in sources} - own == find_readings(["tools"]).keys()


@pytest.mark.parametrize(
    ("rights", "lost"),
    [
        (Rights(), []),
        (Rights("no_forbidden"), ["x.y"]),
        (Rights("commercial"), ["x.y", "windows"]),
        (Rights("commercial", keys=frozenset({"OWN_URL"})), ["windows"]),
        (contracts("Sample"), ["windows"]),
        (contracts("Other.one"), ["x.y", "windows"]),
        (contracts("Sample", "Other"), []),
    ],
)
def test_a_section_is_back_when_the_operator_has_all_that_one_of_its_routes_needs(rights, lost):
    assert TABLE.find_lost("premium_deep", rights) == lost


def test_a_tool_says_what_it_lacks_and_costs_less_if_that_is_more_than_half_and_is_unlisted_if_it_is_all():
    assert withhold(TINY, TABLE, Rights()) is TINY
    little = withhold(TINY, TABLE, Rights("no_forbidden"))["premium_deep"]
    assert (little.credits, little.withheld) == (DEEP.credits, ("x.y",))
    assert "Always null here, for licence reasons: x.y." in little.description
    much = withhold(TINY, TABLE, Rights("commercial"))
    assert (much["premium_deep"].credits, much["premium_deep"].lack in much["premium_deep"].text) == (1, True)
    assert [one.name for one in much.listed] == [one.name for one in TINY.listed]
    whole = LicenceTable({"premium_deep": ["x.y", "windows"]}, TABLE.lost)
    registry = withhold(TINY, whole, Rights("commercial"))
    assert "premium_deep" not in [one.name for one in registry.listed]
    assert registry["premium_deep"].withheld == ("x.y", "windows")
