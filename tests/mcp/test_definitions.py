"""What `tools/list` says about the real tools: small enough to be read by a model, plain enough for every host."""

import json
import re
from typing import Any

import pytest

from tests.requirements import proves
from toolserver.mcp import messages
from toolserver.mcp.definitions import LONGEST_PATTERN, annotations, definition
from toolserver.registry.registry import Operation, Registry, Tier

KIB = 1024


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load("tools")


def size(operations: list[Operation], **named: Any) -> int:
    return len(messages.encode([definition(operation, **named) for operation in operations]))


def test_the_free_core_is_small(registry: Registry) -> None:
    free = [operation for operation in registry.chosen() if operation.tier is Tier.FREE]

    assert size(free) < 25 * KIB
    assert size(free, output_schema=False) < 6 * KIB


@proves("discovery.small")
def test_the_whole_core_is_small(registry: Registry) -> None:
    assert size(registry.chosen()) < 60 * KIB
    assert size(registry.chosen(), output_schema=False) < 15 * KIB


def test_definitions_are_the_same_every_time() -> None:
    once, again = (messages.encode([definition(o) for o in Registry.load("tools")]) for _ in range(2))

    assert once == again


def test_every_tool_says_all_four_hints(registry: Registry) -> None:
    for operation in registry:
        hints = annotations(operation)
        assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert not (hints["destructiveHint"] and hints["readOnlyHint"])
        assert not (hints["idempotentHint"] and operation.credits)


def test_priced_tools_name_their_price_and_free_ones_have_no_meta(registry: Registry) -> None:
    for operation in registry:
        told = definition(operation).get("_meta")
        if operation.credits:
            assert told == {"toolserver/tier": operation.tier.value, "toolserver/cost_credits": operation.credits}
        else:
            assert told is None


def nodes(schema: Any) -> Any:
    """Every object inside a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item)
    elif isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)


def test_schemas_are_portable(registry: Registry) -> None:
    for operation in registry:
        entry = definition(operation)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry["name"])
        assert 20 <= len(entry["description"]) <= 400
        for schema in (entry["inputSchema"], entry["outputSchema"]):
            assert schema["type"] == "object"
            assert not schema.keys() & {"anyOf", "oneOf", "allOf", "not", "enum"}
            assert all("const" not in node or isinstance(node["const"], dict) for node in nodes(schema))
            referred = set(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
            assert referred <= set(schema.get("$defs", {}))
        assert "$ref" not in json.dumps(entry["inputSchema"])


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """The listing module of the engine is used by the server; the SDK only by what is not common."""
    import subprocess
    import sys

    script = (
        "import sys, toolserver.mcp.stdio as s\n"
        "light = not {'pydantic', 'mcp', 'toolserver.registry.registry'} & set(sys.modules)\n"
        "import toolserver.mcp.endpoint\n"
        "print(light, not {'mcp', 'mcp_types', 'web3', 'fastmcp', 'fastapi'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "True"]


def test_a_long_pattern_is_left_to_the_api_description(registry: Registry) -> None:
    def pattern(entry: dict[str, Any], name: str) -> str | None:
        return entry["inputSchema"]["properties"][name].get("pattern")

    found = {operation.name: operation for operation in registry}
    briefing, confirm = found["premium_briefing"], found["payment_confirm"]
    assert len(briefing.input_schema["properties"]["include"]["pattern"]) > LONGEST_PATTERN
    assert pattern(definition(briefing), "include") is None
    assert pattern(definition(confirm), "nonce") == "^svc_buy_[0-9a-f]{32}$"
