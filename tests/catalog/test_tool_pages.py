"""The registry as Markdown: a page for each tool, and the tables of tools, sources and errors."""

from dataclasses import replace
from datetime import date

import pytest

from catalog.tool_pages import errors_page, sources_page, tool_page, tools_page
from tests.catalog.tiny import PLACE, TINY
from toolserver.registry.error_codes import PROBLEMS
from toolserver.registry.registry import Registry
from toolserver.registry.source_facts import Announced, GoneMember, Sighting, SourceFacts


def page(name, example=None):
    return tool_page(TINY[name], example)


def row_of(text, start):
    (row,) = [line for line in text.splitlines() if line.startswith(start)]
    return row


def test_a_page_begins_with_the_name_and_says_how_to_call_the_tool_and_for_how_much():
    lines = page("premium_deep").splitlines()
    assert lines[0] == "# premium_deep"
    assert "`GET /api/pro/deep`, or the MCP tool `premium_deep`; 2 credits, with a bearer token." in lines
    assert "`GET /api/sights`, or the MCP tool `sights`; free." in page("sights").splitlines()


def test_a_page_says_for_how_long_the_answer_stays_the_same():
    assert "The answer stays the same bytes for 90 s." in page("sights")
    assert "same bytes" not in page("payment_balance")


def test_arguments_are_a_table_with_type_default_and_whether_they_are_required():
    text = page("sights")
    assert row_of(text, "| `lat` |") == "| `lat` | number, from -90 to 90 (required) | Latitude |"
    assert "default `tower`" in row_of(text, "| `kind` |")
    assert "(required)" not in row_of(text, "| `kind` |")


def test_a_tool_without_arguments_says_so():
    assert "## Arguments\n\nNone.\n" in page("digest")


def test_the_pipe_in_a_type_does_not_end_its_cell():
    for line in page("sights").splitlines():
        if line.startswith("| `"):
            assert line.replace("\\|", "").count("|") == 4, line


def test_an_example_is_shown_as_indented_json_where_there_is_one():
    assert '```json\n{\n  "height_m": "30 m²"\n}\n```' in page("sights", {"height_m": "30 m²"})
    assert "## Example" not in page("sights")


def test_each_source_is_named_once_with_its_licence():
    assert "- [`Sample.place`](../sources.md): Sample & Sons <office>, free with credit" in page("sights")
    assert "## Sources" not in page("payment_balance")


@pytest.mark.parametrize(
    ("name", "said", "not_said"),
    [
        ("sights", "rate_limited", "402 codes"),
        ("premium_deep", "402 codes", "rate_limited"),
        ("payment_balance", "invalid_arguments", "If a source is down"),
        ("sights", "If a source is down", "upstream_unavailable"),
    ],
)
def test_a_page_names_the_failures_of_its_tier(name, said, not_said):
    text = page(name)
    assert said in text
    assert not_said not in text


def test_the_table_of_tools_has_a_section_for_each_tier_and_marks_the_core():
    text = tools_page(TINY)
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Free tools", "## Premium tools", "## Payment tools", "## Account tools"]
    assert row_of(text, "| [`sights`]") == (
        "| [`sights`](tools/sights.md) * | `GET /api/sights` | free | 90 s | Sights |"
    )
    assert " * |" not in row_of(text, "| [`digest`]")
    assert "| none |" in row_of(text, "| [`payment_balance`]")


def test_the_table_of_sources_names_each_once_with_its_terms_and_its_users():
    assert row_of(sources_page(TINY), "| `Sample.place` |") == (
        "| `Sample.place` | Sample & Sons <office> | [free with credit](https://upstream.example/terms) | 1 min | 1 h"
        " | [sights](tools/sights.md), [digest](tools/digest.md), [premium_deep](tools/premium_deep.md) |"
    )


def test_what_is_known_of_a_source_stands_in_a_table_of_its_own():
    ends = Announced("sunset", "Fri, 01 May 2026 00:00:00 GMT", date(2026, 7, 1))
    gone = GoneMember("price", date(2026, 4, 9))
    facts = {PLACE.name: SourceFacts(Sighting(date(2026, 7, 11), "recorded body"), (ends,), (gone,), "Nobody else")}
    table = sources_page(TINY, facts).partition("## What is known")[2]
    assert row_of(table, f"| `{PLACE.name}`") == (
        f"| `{PLACE.name}` | 2026-07-11 | recorded body | sunset: {ends.text}; `price`, last given 2026-04-09"
        " | Nobody else | – |"
    )
    assert PLACE.name not in sources_page(TINY).partition("## What is known")[2]


def test_a_source_that_is_shipped_is_named_without_a_lifetime():
    copy = replace(PLACE, name="Sample.copy")
    shipped = Registry([replace(TINY["sights"], shipped=(copy,))])
    assert " | a copy that is shipped | – | [sights](tools/sights.md) |" in row_of(
        sources_page(shipped), "| `Sample.copy`"
    )
    assert "- [`Sample.copy`](../sources.md): " in tool_page(shipped["sights"], None)


def test_the_table_of_errors_has_a_row_for_every_code():
    text = errors_page(PROBLEMS)
    for problem in PROBLEMS.values():
        expected = f"| `{problem.code}` | {problem.status} | {problem.meaning} | {problem.advice} |"
        assert row_of(text, f"| `{problem.code}` |") == expected
