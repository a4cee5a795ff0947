"""Names in any case: found by our own spelling, wherever a hint lists them."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from tests.served import all_tools
from toolserver.calls.arguments import validate_arguments
from toolserver.errors import InvalidArguments
from toolserver.registry.spelling import accept_any_case, find_word

View = Literal["raw", "Summary"]


@pytest.mark.parametrize(("given", "found"), [("RAW", "raw"), (" summary ", "Summary"), ("ra", None), ("", None)])
def test_a_word_is_found_in_any_case(given, found):
    assert find_word(given, ("raw", "Summary")) == found


@pytest.mark.parametrize(
    "hint", [View, View | None, Annotated[View, Field(description="x")], Annotated[View | None, Field()]]
)
def test_a_hint_takes_its_words_in_any_case_and_no_others(hint):
    adapter = TypeAdapter(accept_any_case(hint))
    assert adapter.validate_python("SUMMARY") == "Summary"
    assert adapter.json_schema() == TypeAdapter(hint).json_schema()
    for wrong in ("sum", 1, ["raw"]):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)


def test_a_hint_without_words_is_left_alone():
    for hint in (str, int | None, list[View], dict[str, View], Literal[1, 2]):
        assert accept_any_case(hint) is hint


CHOICES = [
    (o, name, field["enum"])
    for o in all_tools()
    for name, field in o.input_schema["properties"].items()
    if "enum" in field
]


@pytest.mark.parametrize(("operation", "name", "words"), CHOICES, ids=lambda value: getattr(value, "name", None))
def test_every_choice_of_every_tool_may_be_spelled_in_capitals_or_not(operation, name, words):
    needed = {"id": "wh_0123456789abcdef"} if "id" in operation.input_schema.get("required", ()) else {}
    for word in words:
        for spelled in (word.upper(), word.lower(), f" {word}"):
            assert getattr(validate_arguments(operation, {**needed, name: spelled}), name) == word
    with pytest.raises(InvalidArguments):
        validate_arguments(operation, {**needed, name: "no such word"})
