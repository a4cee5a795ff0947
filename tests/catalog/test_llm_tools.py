"""GET /api/llm-tools: which layouts and tools it lists, and what it says about itself."""

from datetime import UTC, datetime

import pytest

from catalog.llm_tools import llm_tools
from tests.catalog.tiny import FACTS, TINY
from tests.requirements import proves
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import TOOL_FORMATS

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)


def asked(format, **more):
    return llm_tools(TINY, FACTS, format=format, generated_at=NOW, **more)


@proves("definitions.formats", "definitions.body")
def test_both_means_openai_and_anthropic_and_is_the_default():
    document = llm_tools(TINY, FACTS, generated_at=NOW)
    assert document == asked("both")
    assert document.keys() == {"source", "generated_at", "docs", "auth", "count", "openai", "anthropic"}
    assert document["generated_at"] == "2027-01-15T08:00:00Z"


@proves("definitions.formats", "definitions.body")
@pytest.mark.parametrize("format", [format for format in TOOL_FORMATS if format != "both"])
def test_each_format_has_one_list_of_its_name_with_every_tool(format):
    document = asked(format)
    listed = document[format.replace("-", "_")]
    assert len(listed) == document["count"] == len(TINY)
    assert [key for key in document if isinstance(document[key], list)] == [format.replace("-", "_")]


@proves("definitions.tier")
def test_a_tier_narrows_the_list():
    assert [item["name"] for item in asked("raw", tier="premium")["raw"]] == ["premium_deep"]
    assert {item["name"] for item in asked("raw", tier="free")["raw"]} == {"digest", "sights"}


@pytest.mark.parametrize(
    ("argument", "valid"), [({"format": "xml"}, "openai-responses"), ({"tier": "gold"}, "premium")]
)
def test_an_unknown_format_or_tier_is_refused_with_the_valid_ones_named(argument, valid):
    with pytest.raises(InvalidArguments, match=valid) as caught:
        llm_tools(TINY, FACTS, **{"format": "both", **argument}, generated_at=NOW)
    assert caught.value.extra["errors"][0]["loc"] in argument


def test_a_server_that_sells_nothing_says_that_no_token_is_needed():
    free = Registry([TINY["digest"]])
    assert llm_tools(free, FACTS, generated_at=NOW)["auth"]["type"] == "none"


def test_the_document_says_where_the_docs_are_and_how_a_token_is_sent():
    document = asked("raw")
    assert (document["source"], document["docs"]) == ("data.example", "https://data.example/docs")
    assert document["auth"]["type"] == "bearer"
    assert document["auth"]["signup"] == "https://data.example/docs/payments"


def test_without_a_tier_every_tool_is_listed_in_registry_order():
    assert [item["name"] for item in asked("raw")["raw"]] == [operation.name for operation in TINY]


def test_a_long_wrong_value_is_cut_in_the_refusal():
    with pytest.raises(InvalidArguments) as refused:
        asked("x" * 500)
    assert len(str(refused.value)) < 200


def test_formats_and_tiers_may_be_written_in_any_case():
    assert asked("OpenAI", tier="FREE") == asked("openai", tier="free")
