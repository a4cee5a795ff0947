"""Wrong arguments: refused with the valid names, the nearest one, and a call that works."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from tests.calls.toy import Reading, number
from tests.json_schemas import prepare
from toolserver.calls.arguments import SYNONYMS, describe_invalid, example_call, suggest_name, validate_arguments
from toolserver.context.context import ToolContext
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry, operation_of, tool

TOOLS = Registry.load("tools")


def refused(tool: str, **given: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(TOOLS[tool], given)
    return caught.value


@pytest.mark.parametrize(
    ("tool", "given", "valid"),
    [
        ("climate_weather_alerts", "state", "area"),
        ("climate_weather_alerts", "count", "limit"),
        ("stocks", "symbol", "symbols"),
        ("stocks", "ticker", "symbols"),
        ("weather", "latitude", "lat"),
        ("weather", "lng", "lon"),
        ("climate_earthquakes", "min_magnitude", "magnitude"),
        ("climate_earthquakes", "timeframe", "period"),
        ("exposure_lookup", "ip_address", "ip"),
        ("premium_world_deltas", "from", "since"),
        ("payment_confirm", "txid", "tx_hash"),
    ],
)
def test_a_name_that_models_try_leads_to_the_valid_one(tool, given, valid):
    error = refused(tool, **{given: "x"})

    assert f"{given}: unknown argument; did you mean {valid!r}?" in error.detail
    assert error.extra["did_you_mean"] == [valid]
    assert error.extra["valid_arguments"] == list(TOOLS[tool].arguments.model_fields)


def test_a_tool_without_arguments_says_so():
    assert "this tool takes none" in refused("forex", currency="EUR").detail


@pytest.mark.parametrize(("tool", "argument"), [("earthquakes", "limit"), ("allowance_create", "credits")])
@pytest.mark.parametrize("switch", [True, False])
def test_true_is_not_1(tool, argument, switch):
    assert f"{argument}: takes neither true nor false" in refused(tool, **{argument: switch}).detail


def test_a_switch_is_taken_where_there_is_one():
    given = validate_arguments(TOOLS["payment_topup"], {"amount_usd": 5, "by_transfer": True})
    assert given.model_dump()["by_transfer"] is True


def test_no_value_is_ever_repeated():
    error = refused("stocks", symbol="svc_live_secret")

    assert "secret" not in error.detail + str(error.extra)


def test_a_pattern_is_told_in_words():
    error = refused("climate_weather_alerts", area="California")

    assert "pattern" not in error.detail
    assert "^" not in error.detail


@pytest.mark.parametrize("operation", list(TOOLS), ids=lambda operation: operation.name)
def test_the_example_is_a_call_that_passes(operation):
    example = example_call(operation)

    assert example["name"] == operation.name
    validate_arguments(operation, example["arguments"])
    assert prepare(operation.input_schema).is_valid(example["arguments"])


def test_spelling_is_forgiven():
    assert suggest_name("symblos", ["symbols"]) == "symbols"
    assert suggest_name("zzz", ["symbols"]) is None


def test_every_synonym_belongs_to_an_argument_of_some_tool():
    names = {name for operation in TOOLS for name in operation.arguments.model_fields}

    assert set(SYNONYMS) - names <= {"place", "coins", "cursor", "limit"}
    assert describe_invalid.__doc__


NUMBER = operation_of(number)


def refused_number(**given: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(NUMBER, given)
    return caught.value


def test_a_name_that_nobody_means_is_answered_with_the_valid_ones_alone():
    error = refused_number(zzz=1)

    assert error.detail == "zzz: unknown argument; the valid ones are add"
    assert error.extra == {
        "errors": [{"loc": "zzz", "msg": "unknown argument; the valid ones are add", "type": "extra_forbidden"}],
        "valid_arguments": ["add"],
        "example": {"name": "number", "arguments": {}},
    }


def test_a_long_name_is_cut_and_of_many_errors_five_are_told_in_the_sentence_and_all_in_the_list():
    error = refused_number(**{f"{letter * 90}": 1 for letter in "uvwxyz"})

    assert [each["loc"] for each in error.extra["errors"]] == [letter * 80 for letter in "uvwxyz"]
    assert [part.split(":")[0] for part in error.detail.split("; ")[::2]] == [letter * 80 for letter in "uvwxy"]


@tool(path="/api/lettered", title="Lettered", ttl_s=30)
async def lettered(
    ctx: ToolContext,
    country: Annotated[str, Field(pattern="^[A-Z]{2}$", description="Two capital letters", examples=["DE"])] = "DE",
    word: Annotated[str, Field(min_length=2, max_length=4, description="A short word")] = "word",
    bare: Annotated[str, Field(max_length=4)] = "bare",
) -> Reading:
    """Takes texts of certain forms; it shows how a wrong one is refused, for tests only."""
    return Reading(value=1, twice=2)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("country", "de", "must be: Two capital letters (for example 'DE')"),
        ("word", "w", "must be: A short word"),
        ("word", "words", "must be: A short word"),
        ("bare", "words", "String should have at most 4 characters"),
    ],
)
def test_the_form_of_a_text_is_told_by_its_description_and_an_example(name, given, told):
    with pytest.raises(InvalidArguments) as caught:
        validate_arguments(operation_of(lettered), {name: given})
    assert caught.value.detail == f"{name}: {told}"


@pytest.mark.parametrize("given", ["SYMBOL", "sym-bol", "symbols-", "Tickers"])
def test_case_hyphens_and_a_plural_do_not_hide_what_is_meant(given):
    assert suggest_name(given, ["other", "symbols"]) == "symbols"


@tool(path="/api/filled", title="Filled", ttl_s=30)
async def filled(
    ctx: ToolContext,
    text: str,
    count: Annotated[int, Field(ge=5)],
    share: float,
    is_on: bool,
    unit: Literal["m", "ft"],
    kind: Annotated[str, Field(examples=["a kind"])],
    more: Annotated[str, Field(examples=["more"])] = "",
) -> Reading:
    """Takes an argument of every type; it shows what an example gives for each, for tests only."""
    return Reading(value=1, twice=2)


def test_an_example_has_a_value_of_each_required_type_and_nothing_more():
    assert example_call(operation_of(filled)) == {
        "name": "filled",
        "arguments": {"text": "text", "count": 5, "share": 1, "is_on": True, "unit": "m", "kind": "a kind"},
    }
