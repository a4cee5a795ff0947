"""GET /api/llm-tools: which layouts and tools it lists, and what it says about itself."""

from datetime import UTC, datetime

import pytest

from catalog.llm_tools import answer_query, llm_tools
from tests.catalog.tiny import FACTS, TINY
from tests.requirements import proves
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import TOOL_FORMATS

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
RUNNING = {"base_url", "calling", "routes"}


def asked(format, **more):
    return llm_tools(TINY, FACTS, format=format, generated_at=NOW, **more)


OLD_KEY = "openai_responses"  # announced in DEPRECATIONS


@proves("definitions.formats", "definitions.body")
def test_both_means_openai_and_anthropic_and_is_the_default():
    document = llm_tools(TINY, FACTS, generated_at=NOW)
    assert document == asked("both")
    assert document.keys() == {"source", "generated_at", "docs", "auth", "count", "openai", "anthropic", *RUNNING}
    assert document["generated_at"] == "2027-01-15T08:00:00Z"


@proves("definitions.formats", "definitions.body")
@pytest.mark.parametrize("format", [format for format in TOOL_FORMATS if format not in ("both", "routes")])
def test_each_format_has_one_list_of_its_name_with_every_tool(format):
    document = asked(format)
    listed = document[format]
    assert len(listed) == document["count"] == len(TINY)
    assert [key for key in document if isinstance(document[key], list) and key != OLD_KEY] == [format]
    assert document.get(OLD_KEY) == (listed if format == "openai-responses" else None)


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


def answered(**given):
    return answer_query(TINY, FACTS, given, generated_at=NOW)


@proves("definitions.routes")
@pytest.mark.parametrize("format", TOOL_FORMATS)
def test_every_layout_says_how_each_of_its_tools_is_called(format):
    document = asked(format)
    assert list(document["routes"]) == [operation.name for operation in TINY]
    assert document["routes"]["webhook_unsubscribe"] == {
        "method": "DELETE",
        "path": "/api/pro/subscribe/{id}",
        "auth": "bearer",
        "credits": 0,
        "arguments": {"id": "path"},
    }
    assert document["routes"]["payment_buy_credits"]["arguments"] == {"amount_usd": "body"}
    assert document["routes"]["sights"]["auth"] == "none"
    assert document["routes"]["premium_deep"]["credits"] == TINY["premium_deep"].credits > 0
    assert document["base_url"] == "https://data.example"


@proves("definitions.choice")
def test_tools_and_toolsets_are_chosen_as_on_mcp_and_all_are_listed_without_a_choice():
    assert list(answered(toolset="core")["routes"]) == ["sights"]
    assert list(answered(tools=" Digest,premium_deep ,")["routes"]) == ["digest", "premium_deep"]
    assert list(answered(tools="digest,premium_deep", tier="premium")["routes"]) == ["premium_deep"]
    assert answered(toolset="all") == answered()


@pytest.mark.parametrize(
    ("given", "valid", "near"),
    [
        ({"toolset": "most"}, "core, all", None),
        ({"tools": "digest,sight"}, "sights", ["sights"]),
        ({"tools": " , "}, "digest", None),
        ({"format": ""}, "openai", None),
        ({"fromat": "raw"}, "format, tier, toolset, tools", ["format"]),
        ({"colour": "red"}, "format, tier, toolset, tools", None),
    ],
)
def test_an_unknown_choice_or_parameter_is_refused_with_the_valid_ones_and_the_nearest(given, valid, near):
    with pytest.raises(InvalidArguments, match=valid) as refused:
        answered(**given)
    assert refused.value.extra.get("did_you_mean") == near


def test_the_routes_can_be_had_alone():
    document = asked("routes")
    assert [key for key in document if isinstance(document[key], list)] == []
    assert list(document["routes"]) == [operation.name for operation in TINY]
