"""From typed functions to operations, and from operations to the one list."""

import sys
import types
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from tests.calls.toy import REGISTRY, Reading, number, premium_report
from tests.requirements import proves
from toolserver.context.context import ToolContext
from toolserver.registry.registry import Registry, Tier, operation_of, tool

NUMBER, REPORT = operation_of(number), operation_of(premium_report)


def made(name: str, path: str | None = None, **more):
    """An operation of that name."""

    async def function(ctx: ToolContext, size: Annotated[int, Field(ge=1)] = 1) -> Reading:
        """First paragraph,
        on two lines.

        Second paragraph.
        """
        raise NotImplementedError

    function.__name__ = name
    return operation_of(tool(path=path or f"/api/{name}", title=name.title(), **more)(function))


def test_the_signature_is_the_arguments_and_the_docstring_the_description():
    operation = made("sample", ttl_s=30)

    assert operation.description == "First paragraph, on two lines. Free; fresh for 30 seconds."
    assert operation.text.endswith("Free; fresh for 30 seconds.\n\nSecond paragraph.")
    assert operation.result is Reading
    assert list(operation.arguments.model_fields) == ["size"]
    assert operation.arguments().size == 1
    assert operation.input_schema["properties"]["size"] == {"type": "integer", "minimum": 1, "default": 1}
    with pytest.raises(ValidationError):
        operation.arguments(size=0)


@proves("terms.price")
@pytest.mark.parametrize(
    ("tier", "credits", "terms"),
    [
        (Tier.FREE, 0, "Free"),
        (Tier.ACCOUNT, 0, "Costs no credits"),
        (Tier.PAYMENT, 0, "Costs no credits"),
        (Tier.PREMIUM, 1, "Costs 1 credit (0.02 USD) a call"),
        (Tier.PREMIUM, 2, "Costs 2 credits (0.04 USD) a call"),
        (Tier.PREMIUM, 75, "Costs 75 credits (1.50 USD) a call"),
    ],
)
def test_a_price_stands_in_words_in_the_first_line_of_a_description_that_sells_and_at_the_end_of_others(
    tier, credits, terms
):
    operation = made("sample", tier=tier, credits=credits)
    priced, free = f"{terms}. First paragraph, on two lines.", f"First paragraph, on two lines. {terms}."
    assert operation.description == (priced if credits else free)
    assert operation.text.partition("\n\n")[2] == "Second paragraph."


@proves("terms.fresh")
@pytest.mark.parametrize(
    ("ttl_s", "words"),
    [
        (15, "15 seconds"),
        (60, "60 seconds"),
        (90, "90 seconds"),
        (120, "2 minutes"),
        (3600, "1 hour"),
        (5400, "90 minutes"),
        (43_200, "12 hours"),
    ],
)
def test_a_description_says_for_how_long_an_answer_is_fresh(ttl_s, words):
    assert made("sample", ttl_s=ttl_s).description.endswith(f" Free; fresh for {words}.")
    sold = made("sample", ttl_s=ttl_s, tier=Tier.PREMIUM, credits=2)
    assert sold.description.startswith(f"Costs 2 credits (0.04 USD) a call; fresh for {words}. First ")


def test_where_a_lifetime_depends_on_a_word_the_longest_is_said():
    @tool(
        path="/api/period",
        title="Period",
        ttl_s=lambda arguments: {"hour": 60, "day": 120, "month": 900}[arguments.period],
    )
    async def period(ctx: ToolContext, period: Literal["hour", "day", "month"] = "day") -> Reading:
        """Reads."""
        raise NotImplementedError

    assert operation_of(period).fresh_s == (60, 900)
    assert operation_of(period).description == "Reads. Free; fresh for at most 15 minutes."


def test_the_endpoint_is_the_tail_of_a_free_path_and_the_whole_of_others():
    assert (NUMBER.endpoint, REPORT.endpoint) == ("number", "/api/pro/report")


def test_what_a_tier_means():
    payment, account = made("buy", tier=Tier.PAYMENT, method="POST"), made("mine", tier=Tier.ACCOUNT)
    balance = made("balance", tier=Tier.PAYMENT)

    assert [o.needs_token for o in (NUMBER, REPORT, payment, balance, account)] == [False, True, False, True, True]
    assert [o.personal for o in (NUMBER, REPORT, payment, account)] == [False, False, True, True]
    assert [o.reads_only for o in (NUMBER, payment)] == [True, False]
    assert [o.enveloped for o in (NUMBER, REPORT)] == [True, False]


def test_a_ttl_may_depend_on_the_arguments():
    operation = made("sample", ttl_s=lambda arguments: 10.0 * arguments.size)

    assert operation.ttl(operation.arguments(size=3)) == 30
    assert operation.longest_ttl == 10
    assert NUMBER.ttl(NUMBER.arguments()) == NUMBER.longest_ttl == 30


def test_the_order_is_tier_core_name_whatever_order_they_come_in():
    tools = [
        made("zeta", toolset="core"),
        made("alpha"),
        made("beta", toolset="core"),
        made("paid", tier=Tier.PREMIUM),
    ]
    for order in (tools, tools[::-1]):
        assert [operation.name for operation in Registry(order)] == ["beta", "zeta", "alpha", "paid"]


def test_names_aliases_and_paths_are_found():
    registry = Registry([made("one", aliases=("uno",)), made("two")])

    assert registry.get("uno") is registry["one"]
    assert registry.by_route["GET", "/api/two"] is registry["two"]
    assert (registry.get("three"), len(registry)) == (None, 2)
    with pytest.raises(KeyError):
        registry["three"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"name": "one", "path": "/api/other"}, "two tools are called one"),
        ({"name": "uno"}, "two tools are called uno"),
        ({"name": "other", "aliases": ("one",)}, "two tools are called one"),
        ({"name": "other", "path": "/api/one"}, "two tools answer GET /api/one"),
    ],
)
def test_a_name_or_a_path_that_is_taken_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        Registry([made("one", aliases=("uno",)), made(**other)])


def test_a_client_chooses_a_toolset_or_tools_by_name_or_alias():
    registry = Registry([made("one", toolset="core"), made("two", aliases=("duo",)), made("three")])

    def names(**choice):
        return [operation.name for operation in registry.chosen(**choice)]

    assert names() == names(toolset="core") == ["one"]
    assert names(toolset="all") == ["one", "three", "two"]
    assert names(tools=["duo", "one", "duo"]) == ["one", "two"]
    assert names(tools=[]) == []
    for wrong in ({"toolset": "some"}, {"tools": ["four"]}):
        with pytest.raises(KeyError):
            registry.chosen(**wrong)


def test_a_source_that_several_tools_name_is_listed_once_by_name():
    assert [source.name for source in REGISTRY.sources] == ["Test.one", "Test.two"]


def test_a_plain_module_of_tools_is_loaded_without_those_it_imports(monkeypatch):
    module = types.ModuleType("sample_tools")
    own = made("own").function
    own.__module__ = "sample_tools"
    module.own, module.imported = own, number
    monkeypatch.setitem(sys.modules, "sample_tools", module)

    assert [operation.name for operation in Registry.load("sample_tools")] == ["own"]


def test_tools_stay_unlisted_when_others_are_unlisted_too():
    first, second, *others = (operation.name for operation in REGISTRY)
    registry = REGISTRY.unlist([first]).unlist([second])

    assert [operation.name for operation in registry.listed] == others
    assert registry[first] is REGISTRY[first]
