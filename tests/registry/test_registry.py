"""From typed functions to operations, and from operations to the one list."""

import sys
import types
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from tests.calls.toy import REGISTRY, Reading, number, premium_report
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

    assert operation.description == "First paragraph, on two lines."
    assert operation.text.endswith("Second paragraph.")
    assert operation.result is Reading
    assert list(operation.arguments.model_fields) == ["size"]
    assert operation.arguments().size == 1
    assert operation.input_schema["properties"]["size"] == {"type": "integer", "minimum": 1, "default": 1}
    with pytest.raises(ValidationError):
        operation.arguments(size=0)


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
