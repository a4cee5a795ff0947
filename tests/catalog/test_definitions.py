"""Tool definitions in every layout, judged by the providers' own libraries and by our linter.

The libraries take seconds to import: each test imports what it needs, and a process without these tests nothing.
"""

import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import httpx
import httpx2
import pytest
from pydantic import TypeAdapter

from catalog import definitions
from catalog.llm_tools import llm_tools
from tests.catalog.portability import faults
from tests.catalog.tiny import FACTS, TINY
from tests.json_schemas import check_schema
from tests.requirements import proves
from toolserver.registry.registry import Registry

PROJECT = Registry.load("tools")
ALL = [*PROJECT, *TINY]
NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)

libraries = pytest.mark.slow("it imports the providers' libraries, for seconds")
every_tool = pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)


def asked(format, **more):
    return llm_tools(TINY, FACTS, format=format, generated_at=NOW, **more)


@libraries
@every_tool
def test_openai_accepts_every_tool(operation):
    from openai.types.chat import ChatCompletionFunctionToolParam
    from openai.types.responses import FunctionTool, FunctionToolParam

    TypeAdapter(ChatCompletionFunctionToolParam).validate_python(definitions.openai(operation))
    TypeAdapter(FunctionToolParam).validate_python(definitions.openai_responses(operation))
    FunctionTool.model_validate(definitions.openai_responses(operation), strict=True)


@libraries
@every_tool
def test_anthropic_accepts_every_tool(operation):
    from anthropic.types import ToolParam

    TypeAdapter(ToolParam).validate_python(definitions.anthropic(operation))


@proves("definitions.layouts")
@libraries
@every_tool
def test_gemini_accepts_every_tool_in_both_its_readings(operation):
    from google.genai import types as google

    google.FunctionDeclaration.model_validate(definitions.gemini(operation))
    google.Tool(function_declarations=[definitions.gemini(operation)])
    schema = definitions.gemini(operation).get("parametersJsonSchema", {"type": "object"})
    google.Schema.from_json_schema(json_schema=google.JSONSchema.model_validate(schema))


def test_gemini_does_not_see_keywords_it_does_not_know_but_names_stay_whatever_they_are():
    schema = {"type": "object", "properties": {"examples": {"type": "number", "exclusiveMinimum": 0, "examples": [1]}}}
    tool = SimpleNamespace(name="zoo", description="Animals.", input_schema=schema)
    assert definitions.gemini(tool)["parametersJsonSchema"] == {
        "type": "object",
        "properties": {"examples": {"type": "number"}},
    }


def test_gemini_gets_no_empty_object_for_a_tool_without_arguments():
    assert definitions.gemini(TINY["digest"]).keys() == {"name", "description"}


@proves("definitions.layouts")
@every_tool
def test_bedrock_gets_a_tool_spec(operation):
    spec = definitions.bedrock(operation)["toolSpec"]
    assert spec.keys() == {"name", "description", "inputSchema"}
    assert spec["inputSchema"] == {"json": operation.input_schema}


@every_tool
def test_no_provider_would_refuse_the_tool(operation):
    assert faults(operation.name, operation.description, operation.input_schema) == []
    check_schema(operation.input_schema)


def test_the_linter_finds_what_it_is_there_for():
    bad = {
        "type": "object",
        "anyOf": [],
        "properties": {
            "a": {"const": 1},
            "b": {"type": ["string", "null"]},
            "c": {"$ref": "#/$defs/Gone"},
            "d": {"anyOf": [{"type": "null"}]},
        },
        "required": ["e"],
    }
    found = faults("a.b", "short", bad)
    words = ("name", "description", "anyOf at the root", "const", "/b: null", "/c: a ref", "/d/anyOf/0: null", "e is")
    for word in words:
        assert any(word in fault for fault in found), word


@proves("definitions.true")
def test_bounds_enums_defaults_and_required_arguments_are_the_tool_s_own():
    parameters = asked("openai")["openai"][0]["function"]["parameters"]
    assert parameters["required"] == ["lat"]
    assert parameters["properties"]["lat"] == {
        "type": "number",
        "minimum": -90,
        "maximum": 90,
        "description": "Latitude",
    }
    assert parameters["properties"]["kind"] == {"type": "string", "enum": ["tower", "bridge"], "default": "tower"}
    assert parameters["properties"]["period"] == {"type": "string", "enum": ["24h"]}


@proves("definitions.layouts")
def test_strict_is_left_out_where_it_is_off_by_itself_and_off_where_it_is_not():
    assert "strict" not in asked("openai")["openai"][0]["function"]
    assert asked("openai-responses")["openai-responses"][0]["strict"] is False


def test_the_raw_layout_says_where_how_and_for_how_much():
    found = {item["name"]: item for item in asked("raw")["raw"]}
    assert found["premium_deep"] | {"parameters": 0, "returns": 0, "description": 0} == {
        "name": "premium_deep",
        "title": "Deep look",
        "description": 0,
        "url": "https://data.example/api/pro/deep",
        "method": "GET",
        "auth": "bearer",
        "tier": "premium",
        "cost_credits": 2,
        "cache_ttl_s": 300,
        "parameters": 0,
        "returns": 0,
    }
    assert {name: item["auth"] for name, item in found.items()} == {
        "digest": "none",
        "sights": "none",
        "premium_deep": "bearer",
        "payment_buy_credits": "none",
        "payment_balance": "bearer",
        "webhook_unsubscribe": "bearer",
    }


def test_every_description_is_one_line_of_prose():
    for operation in ALL:
        assert not re.search(r"\n|\s{2}", operation.description), operation.name


@libraries
def test_the_providers_clients_send_the_definitions_unchanged():
    import anthropic
    import openai
    from google import genai
    from google.genai import types as google

    sent = {}

    def keep(name, request, response):
        sent[name] = json.loads(request.content)["tools"]
        return response(400, json={"error": {"message": "stop"}})

    chat, messages, gemini = (asked(f)[f] for f in ("openai", "anthropic", "gemini"))
    with httpx.Client(transport=httpx.MockTransport(lambda r: keep("openai", r, httpx.Response))) as http:
        client = openai.OpenAI(api_key="x", http_client=http, max_retries=0)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], tools=chat)
    with httpx2.Client(transport=httpx2.MockTransport(lambda r: keep("anthropic", r, httpx2.Response))) as http:
        client = anthropic.Anthropic(api_key="x", http_client=http, max_retries=0)
        asks = [{"role": "user", "content": "hi"}]
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(model="m", max_tokens=1, messages=asks, tools=messages)
    with httpx.Client(transport=httpx.MockTransport(lambda r: keep("gemini", r, httpx.Response))) as http:
        client = genai.Client(api_key="x", http_options=google.HttpOptions(httpx_client=http))
        with pytest.raises(genai.errors.ClientError):
            client.models.generate_content(
                model="m", contents="hi", config={"tools": [{"function_declarations": gemini}]}
            )
    assert sent["openai"] == chat
    assert sent["anthropic"] == messages
    assert [d["name"] for d in sent["gemini"][0]["functionDeclarations"]] == [d["name"] for d in gemini]
