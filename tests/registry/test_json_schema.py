"""Schemas that every host accepts: no titles, no `const`, no null arm on an input, references only to the root."""

from typing import Literal

from pydantic import BaseModel, Field

from toolserver.registry.json_schema import input_schema, output_schema


class Inner(BaseModel):
    size: int | None = None


class Arguments(BaseModel):
    kind: Literal["a"] = "a"
    mood: Literal["calm", "loud"] | None = None
    inner: Inner = Field(default_factory=Inner, description="The inner one")
    title: str = "x"


class Twice(BaseModel):
    first: Inner
    second: Inner | None


class AlwaysNull(BaseModel):
    first: Inner | None
    others: list[Inner | None]


class Tree(BaseModel):
    name: Literal["leaf", "node"] | None
    children: list["Tree"]


def test_an_input_is_inlined_and_optional_means_absent():
    assert input_schema(Arguments) == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["a"], "default": "a"},
            "mood": {"type": "string", "enum": ["calm", "loud"]},
            "inner": {"type": "object", "properties": {"size": {"type": "integer"}}, "description": "The inner one"},
            "title": {"type": "string", "default": "x"},
        },
    }


def test_an_optional_input_of_two_kinds_keeps_both_and_has_no_null_among_them():
    class Either(BaseModel):
        at: int | bool | None = None

    assert input_schema(Either)["properties"]["at"] == {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}
    assert {"type": "null"} in output_schema(Either)["properties"]["at"]["anyOf"]


def test_a_model_without_members_is_still_an_object_with_properties():
    class Empty(BaseModel):
        pass

    assert input_schema(Empty) == {"type": "object", "properties": {}}


def test_a_model_that_is_used_once_is_inlined_and_nullable_fields_say_so():
    class Once(BaseModel):
        inner: Inner

    assert output_schema(Once)["properties"]["inner"] == {
        "type": "object",
        "properties": {"size": {"type": ["integer", "null"]}},
    }
    assert "$defs" not in output_schema(Once)


def test_a_model_that_is_used_twice_is_defined_once():
    schema = output_schema(Twice)

    assert schema["properties"]["first"] == {"$ref": "#/$defs/Inner"}
    assert schema["properties"]["second"] == {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}
    assert list(schema["$defs"]) == ["Inner"]


def test_a_model_that_may_be_null_everywhere_says_so_itself():
    schema = output_schema(AlwaysNull)

    assert schema["$defs"]["Inner"]["type"] == ["object", "null"]
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Inner"}
    assert schema["properties"]["others"]["items"] == {"$ref": "#/$defs/Inner"}


def test_a_model_that_contains_itself_is_defined_and_a_nullable_enum_has_null_among_its_values():
    schema = output_schema(Tree)
    node = schema["$defs"]["Tree"]

    assert node["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert node["properties"]["name"] == {"type": ["string", "null"], "enum": ["leaf", "node", None]}
