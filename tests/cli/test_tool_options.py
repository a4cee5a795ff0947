"""Flags of `toolserver call`: which argument each is, its type, its synonyms, and what is said of a wrong one."""

import click
import pytest

from toolserver.cli.call import complete_flags, describe_unknown_tool, read_flags, tool_command, write_flag
from toolserver.registry.registry import Registry
from toolserver.registry.tool_packages import tool_packages

SCHEMA = {
    "properties": {
        "place": {"type": "string", "description": "Where", "examples": ["Paris"]},
        "lat": {"type": "number"},
        "per_day": {"type": "integer", "default": 3},
        "units": {"type": "string", "enum": ["us", "metric"]},
        "symbols": {"type": "array", "items": {"type": "string"}},
        "when": {"type": "object"},
        "receipt": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "exact": {"type": "boolean"},
    }
}


def read(*words):
    return read_flags("tool", SCHEMA, words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {}),
        (("--place", "New York"), {"place": "New York"}),
        (("--place=Paris",), {"place": "Paris"}),
        (("--lat", "-74.5"), {"lat": -74.5}),
        (("--per-day", "7"), {"per_day": 7}),
        (("--per_day", "7"), {"per_day": 7}),
        (("--units", "Metric"), {"units": "metric"}),
        (("--symbols", "AAPL, MSFT"), {"symbols": ["AAPL", "MSFT"]}),
        (("--symbols", '["AAPL"]'), {"symbols": ["AAPL"]}),
        (("--when", '{"path": "a.b"}'), {"when": {"path": "a.b"}}),
        (("--receipt", "a.b.c"), {"receipt": "a.b.c"}),
        (("--receipt", '{"signature": "a"}'), {"receipt": {"signature": "a"}}),
        (("--exact",), {"exact": True}),
        (("--no-exact",), {"exact": False}),
    ],
)
def test_a_flag_is_the_argument_of_its_name_with_the_type_of_the_schema(words, expected):
    assert read(*words) == expected


def test_what_people_call_an_argument_is_taken_for_it_and_told(capsys):
    assert read("--city", "Paris", "--latitude", "2") == {"place": "Paris", "lat": 2.0}
    assert capsys.readouterr().err == "--city is taken for --place\n--latitude is taken for --lat\n"
    with pytest.raises(click.UsageError, match="--city and --place are the same argument"):
        read("--city", "Paris", "--place", "Rome")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plaec", "Paris"), "tool has no argument --plaec; did you mean --place?"),
        (("--cty", "Paris"), "did you mean --place?"),
        (("--perday", "7"), "did you mean --per-day?"),
        (("--xyzzy", "1"), "no argument --xyzzy; the valid ones are --place, --lat"),
        (("--lat", "north"), "'north' is not a valid float"),
        (("--units", "si"), "'si' is not one of"),
        (("--when", "{"), "this is not JSON"),
        (("Paris",), "unexpected extra argument"),
    ],
)
def test_a_wrong_flag_is_refused_with_the_nearest_one(words, said):
    with pytest.raises(click.UsageError) as refused:
        read(*words)
    assert said in refused.value.format_message()


def test_a_tool_without_arguments_says_so():
    with pytest.raises(click.UsageError, match="tool takes no arguments"):
        read_flags("tool", {"properties": {}}, ["--limit", "1"])


def test_every_argument_of_every_tool_has_a_flag():
    for operation in Registry.load(*tool_packages(())):
        flags = {flag for param in tool_command(operation.name, operation.input_schema).params for flag in param.opts}
        assert {write_flag(name) for name in operation.input_schema["properties"]} <= flags


def test_an_unknown_tool_is_told_with_the_nearest_names():
    assert "did you mean btc_price?" in describe_unknown_tool("btc-price", ["btc_price", "gas"])
    assert "did you mean" not in describe_unknown_tool("xyzzy", ["btc_price", "gas"])


def test_flags_and_the_values_of_a_list_are_completed():
    def values(words, incomplete):
        return [item.value for item in complete_flags(SCHEMA, words, incomplete)]

    assert values((), "--p") == ["--place", "--per-day"]
    assert values(("--place", "Paris"), "--p") == ["--per-day"]
    assert values(("--units",), "m") == ["metric"]
    assert values(("--place",), "") == []
