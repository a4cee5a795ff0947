"""Wrong arguments: refused with the valid names, the nearest one, and a call that works."""

import pytest

from toolserver.calls.argument_errors import SYNONYMS, describe_invalid, example_call, suggest_name
from toolserver.calls.arguments import validate_arguments
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry

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
    assert "this tool takes none" in refused("btc_price", currency="EUR").detail


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
    if operation.tier in ("free", "premium"):
        validate_arguments(operation, example["arguments"])


def test_spelling_is_forgiven():
    assert suggest_name("symblos", ["symbols"]) == "symbols"
    assert suggest_name("zzz", ["symbols"]) is None


def test_every_synonym_belongs_to_an_argument_of_some_tool():
    names = {name for operation in TOOLS for name in operation.arguments.model_fields}

    assert set(SYNONYMS) - names <= {"place", "coins", "cursor", "limit"}
    assert describe_invalid.__doc__
