"""Compare the public definition of every tool with its file: a change becomes a diff that a person reviews.

`UPDATE_CONTRACTS=1 make test ARGS=tests/test_contracts.py` updates the files.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.house.fields import list_silent_fields, list_unclear_nulls
from tests.requirements import proves
from toolserver.mcp.definitions import definition
from toolserver.registry.field_table import rows
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.response_schema import answer_schema

FOLDER = Path(__file__).parent / "contracts"
REGISTRY = Registry.load("tools")
MEND = "this writes it: UPDATE_CONTRACTS=1 make test ARGS=tests/test_contracts.py"
SECRETS = re.compile(r"key|secret|password|token|credential", re.IGNORECASE)


def contract(operation: Operation) -> dict[str, Any]:
    """What callers may rely on."""
    return {
        **definition(operation),
        "inputSchema": operation.input_schema,
        "outputSchema": answer_schema(operation),
        "rest": f"{operation.method} {operation.path}",
        "tier": operation.tier,
        "credits": operation.credits,
        "toolset": operation.toolset,
        "ttl_s": operation.longest_ttl,
        "aliases": list(operation.aliases),
        "sources": list(dict.fromkeys(source.name for source in operation.sources)),
    }


@proves("version.permanent")
@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_a_tool_is_what_its_contract_says(operation):
    path = FOLDER / f"{operation.name}.json"
    text = json.dumps(contract(operation), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_CONTRACTS"):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"tests/contracts/{path.name} is missing; {MEND}"
    assert path.read_text(encoding="utf-8") == text, f"tests/contracts/{path.name} says otherwise; {MEND}"


@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_every_argument_says_what_it_means(operation):
    silent = [row.path for row in rows(operation.input_schema) if len(row.description) < 8]

    assert silent == []


def test_every_field_of_every_answer_says_what_it_means():
    """In three to a dozen words, `Field(description=...)`: what it is, in which unit, in whose term."""
    assert list_silent_fields(REGISTRY) == []


def test_every_field_that_may_be_null_says_when():
    """`null: ...` after a semicolon; or `absent ...` for what is left out unless it is asked for."""
    assert [name for operation in REGISTRY for name in list_unclear_nulls(operation)] == []


def test_no_contract_is_left_of_a_tool_that_is_gone():
    assert {path.stem for path in FOLDER.glob("*.json")} == {operation.name for operation in REGISTRY}


@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_every_tool_keeps_the_rules(operation):
    assert 20 <= len(operation.description) <= 400
    assert re.fullmatch(r"[a-z][a-z0-9_]{2,60}", operation.name)
    assert operation.path.startswith("/api/")
    assert (operation.credits > 0) == (operation.tier is Tier.PREMIUM)
    assert operation.name.startswith("premium_") == (operation.tier is Tier.PREMIUM)
    if operation.tier in (Tier.FREE, Tier.PREMIUM):
        assert not [name for name in operation.arguments.model_fields if SECRETS.search(name)]


@proves("version.additive")
@pytest.mark.parametrize("operation", list(REGISTRY), ids=lambda operation: operation.name)
def test_every_answer_may_get_new_members(operation):
    closed = [path for path in objects(definition(operation)["outputSchema"]) if path.endswith("!")]
    assert closed == []


def objects(node: Any, path: str = "") -> list[str]:
    """The paths of object schemas; those that allow no other members end with an exclamation mark."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item, path)]
    if not isinstance(node, dict):
        return []
    here = [path + "!"] if node.get("additionalProperties") is False else []
    return here + [found for key, inner in node.items() for found in objects(inner, f"{path}/{key}")]
