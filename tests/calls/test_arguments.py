"""Arguments are validated against the signature of the tool, and what is wrong is named without being repeated."""

import pytest

from tests.calls.toy import broken, number
from toolserver.calls.arguments import validate_arguments
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import operation_of

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
