"""The tools of the conformance suite: each has a schema, and those that never change are well-formed results."""

import pytest
from mcp_types import CallToolRequestParams, CallToolResult

from toolserver.mcp.conformance.fixtures import FIXED, FIXTURES, SCHEMAS, an_object, ask, input_required, said


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_fixed_result_is_one_that_the_sdk_accepts(name):
    assert CallToolResult.model_validate(FIXED[name]).content


def test_every_fixture_has_a_schema_and_none_is_both_fixed_and_made():
    assert SCHEMAS.keys() == FIXED.keys() | FIXTURES.keys()
    assert not FIXED.keys() & FIXTURES.keys()
    assert all(schema["type"] == "object" for schema in SCHEMAS.values())


async def test_a_round_of_input_ends_when_the_state_comes_back():
    tool = FIXTURES["test_input_required_result_tampered_state"]
    first = await tool(None, CallToolRequestParams(name="x"))
    again = await tool(None, CallToolRequestParams(name="x", request_state=first["requestState"]))

    assert first["resultType"] == "input_required"
    assert again == said("state-ok")


def test_the_parts_of_results():
    assert an_object(["a"], a={"type": "string"})["required"] == ["a"]
    assert "required" not in an_object()
    assert said("x", failed=True)["isError"] is True
    assert ask("who?", {})["params"]["message"] == "who?"
    assert "requestState" not in input_required({})
