"""Schemas as types: the walk over objects, lists, choices and references."""

from catalog.schema_types import SchemaTypes, TypeWords, camel_case, join_types
from tests.catalog.tiny import TINY
from tests.served import all_tools

WORDS = TypeWords(
    scalars={"string": "S", "integer": "I", "number": "N", "boolean": "B", "null": "0"},
    one_of=lambda values: "/".join(map(str, values)),
    list_of=lambda item: f"[{item}]",
    map_of=lambda value: f"<{value}>",
    anything="?",
)


def typed(types, name):
    return {field.name: field.type for field in types.models[name]}


def test_the_arguments_and_the_payload_of_a_tool():
    types = SchemaTypes(WORDS)
    tool = types.add_tool(TINY["sights"])
    assert {f.name: (f.type, f.is_required) for f in tool.arguments} == {
        "lat": ("N", True),
        "kind": ("tower/bridge", False),
        "period": ("24h", False),
        "names": ("[a/b]", False),
    }
    assert tool.arguments[0].description == "Latitude"
    assert tool.payload == "SightsPayload"
    assert typed(types, "SightsPayload")["data"] == "SightsData | 0"
    assert typed(types, "SightsData")["seen"] == "[SightsSight]"
    assert typed(types, "SightsSight") == {"name": "S", "height_m": "N | 0"}


def test_what_all_answers_share_is_there_once_and_optional_members_are_marked():
    types = SchemaTypes(WORDS)
    for name in ("sights", "premium_deep"):
        types.add_tool(TINY[name])
    assert typed(types, "Meta")["sources"] == "[SourceUse]"
    required = {field.name: field.is_required for field in types.models["PremiumDeepPayload"]}
    assert (required["generated_at"], required["warning"]) == (True, False)
    assert typed(types, "PremiumDeepPayload")["windows"] == "<PremiumDeepWindows>"
    assert typed(types, "PremiumDeepPayload")["warning"] == "[Warning]"


def test_several_object_types_in_one_place_are_numbered():
    types = SchemaTypes(WORDS)
    arms = [{"type": "object", "properties": {name: {"type": "string"}}} for name in "ab"]
    assert types._type({"anyOf": [*arms, arms[0], {}]}, "Here") == "Here | Here2 | ?"


def test_every_tool_of_the_project_has_types():
    types = SchemaTypes(WORDS)
    payloads = [types.add_tool(operation).payload for operation in all_tools()]
    assert set(payloads) <= types.models.keys()
    assert len(set(payloads)) == len(all_tools())


def test_words():
    assert camel_case("crypto_movers") == "CryptoMovers"
    assert camel_case("_meta") == "Meta"
    assert join_types(["a", "b", "a"]) == "a | b"
