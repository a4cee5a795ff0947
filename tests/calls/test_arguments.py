"""Arguments are validated against the signature of the tool, and what is wrong is named without being repeated."""

import pytest

from tests.calls.toy import Reading, broken, number
from toolserver.calls.arguments import validate_arguments
from toolserver.context.context import ToolContext
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import operation_of, tool

NUMBER = operation_of(number)


def test_defaults_are_filled_in_and_types_are_converted():
    assert validate_arguments(NUMBER, {}).model_dump() == {"add": 0}
    assert validate_arguments(NUMBER, {"add": "7"}).model_dump() == {"add": 7}
    assert validate_arguments(operation_of(broken), {}).model_dump() == {}


def test_every_wrong_argument_is_named_and_its_value_is_not():
    with pytest.raises(InvalidArguments) as refused:
        validate_arguments(NUMBER, {"add": "svc_live_secret"})

    (error,) = refused.value.extra["errors"]
    assert (error["loc"], error["type"]) == ("add", "int_parsing")
    assert "svc_live_secret" not in refused.value.detail + str(refused.value.extra)
    assert refused.value.detail.startswith("add: ")


def test_a_nul_character_is_refused_in_any_text():
    with pytest.raises(InvalidArguments, match="NUL character") as refused:
        validate_arguments(NUMBER, {"other": "a\0b"})
    assert [error["loc"] for error in refused.value.extra["errors"]] == ["other"]


def test_a_tool_without_arguments_refuses_every_one():
    with pytest.raises(InvalidArguments, match="takes none"):
        validate_arguments(operation_of(broken), {"add": 1})


def test_each_argument_with_a_nul_character_is_named_in_short_and_others_are_not():
    with pytest.raises(InvalidArguments) as refused:
        validate_arguments(NUMBER, {"n" * 90: "\0", "add": 3, "other": "ab", "last": "b\0"})
    assert refused.value.extra["errors"] == [
        {"loc": name, "msg": "contains a NUL character", "type": "value_error"} for name in ("n" * 80, "last")
    ]


@tool(path="/api/demanding", title="Demanding", ttl_s=30)
async def demanding(ctx: ToolContext, place: str) -> Reading:
    """Takes an argument that every call has to give; for tests only."""
    return Reading(value=1, twice=2)


def test_an_argument_that_is_required_and_not_given_is_named():
    with pytest.raises(InvalidArguments, match="place: Field required"):
        validate_arguments(operation_of(demanding), {})
