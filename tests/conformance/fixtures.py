"""Provide the tools that the MCP conformance suite calls by name.

Results are written as they are sent. The fast path answers those that never change, so that the suite checks the fast
path's bytes too.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Context = ServerRequestContext[Any, Any]
Result = dict[str, Any]
Fixture = Callable[[Context, CallToolRequestParams], Awaitable[Result]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTHING: Result = {"type": "object", "additionalProperties": False}


def an_object(required: list[str] | None = None, **properties: Any) -> Result:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def said(text: str, *, failed: bool = False) -> Result:
    """Return a result with one text."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def resource(uri: str, kind: str, text: str) -> Result:
    """Return a content block that is a resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


IMAGE: Result = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
AUDIO: Result = {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}
EMBEDDED = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
MIXED = resource("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
FIXED: dict[str, Result] = {
    "test_simple_text": said("This is a simple text response for testing."),
    "test_image_content": {"content": [IMAGE], "isError": False},
    "test_audio_content": {"content": [AUDIO], "isError": False},
    "test_embedded_resource": {"content": [EMBEDDED], "isError": False},
    "test_multiple_content_types": {
        "content": [{"type": "text", "text": "Multiple content types test:"}, IMAGE, MIXED],
        "isError": False,
    },
    "test_error_handling": said("This tool intentionally returns an error for testing", failed=True),
    "json_schema_2020_12_tool": said("The schema is what matters."),
}

ADDRESS = {"$anchor": "addressDef", **an_object(street={"type": "string"}, city={"type": "string"})}
SCHEMAS: dict[str, Result] = dict.fromkeys(FIXED, NOTHING) | {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": ADDRESS},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}
FIXTURES: dict[str, Fixture] = {}
BUS = InMemorySubscriptionBus()


def fixture(schema: Result = NOTHING, *names: str) -> Callable[[Fixture], Fixture]:
    """Decorate a function that answers the tool of its name and of the other names."""

    def register(function: Fixture) -> Fixture:
        for name in (function.__name__, *names):
            FIXTURES[name], SCHEMAS[name] = function, schema
        return function

    return register


# --- a stream of notifications ---


@fixture(NOTHING, "test_logging_tool")
async def test_tool_with_logging(ctx: Context, params: CallToolRequestParams) -> Result:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    return said("logged")


@fixture()
async def test_tool_with_progress(ctx: Context, params: CallToolRequestParams) -> Result:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(0.05)
    return said("done")


@fixture()
async def test_reconnection(ctx: Context, params: CallToolRequestParams) -> Result:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    return said("Reconnection test completed")


async def _announce(event: ServerEvent) -> Result:
    await BUS.publish(event)
    return said("announced")


@fixture()
async def test_trigger_tool_change(ctx: Context, params: CallToolRequestParams) -> Result:
    return await _announce(ToolsListChanged())


@fixture()
async def test_trigger_prompt_change(ctx: Context, params: CallToolRequestParams) -> Result:
    return await _announce(PromptsListChanged())


# --- requests to the client, legacy era ---


@fixture(an_object(["prompt"], prompt={"type": "string"}))
async def test_sampling(ctx: Context, params: CallToolRequestParams) -> Result:
    content = TextContent(type="text", text=str((params.arguments or {})["prompt"]))
    message = SamplingMessage(role="user", content=content)
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return said(f"LLM response: {getattr(answer.content, 'text', '')}")


async def _elicit(ctx: Context, message: str, schema: Result) -> Result:
    answer = await ctx.session.elicit_form(message, schema, ctx.request_id)
    return said(f"User response: action={answer.action}, content={json.dumps(answer.content)}")


@fixture(an_object(["message"], message={"type": "string"}))
async def test_elicitation(ctx: Context, params: CallToolRequestParams) -> Result:
    message = str((params.arguments or {})["message"])
    return await _elicit(ctx, message, an_object(["response"], response={"type": "string"}))


@fixture()
async def test_elicitation_sep1034_defaults(ctx: Context, params: CallToolRequestParams) -> Result:
    schema = an_object(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await _elicit(ctx, "Fields with defaults", schema)


@fixture()
async def test_elicitation_sep1330_enums(ctx: Context, params: CallToolRequestParams) -> Result:
    single = [{"const": f"value{n}", "title": title} for n, title in enumerate(("First", "Second", "Third"), 1)]
    schema = an_object(
        untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
        titledSingle={"type": "string", "oneOf": single},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
        titledMulti={"type": "array", "items": {"anyOf": single}},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
    )
    return await _elicit(ctx, "Fields with choices", schema)


# --- rounds of input, modern era ---

NAME = an_object(["name"], name={"type": "string"})
OK = an_object(["ok"], ok={"type": "boolean"})
ROOTS: Result = {"method": "roots/list"}


def ask(message: str, schema: Result) -> Result:
    """Return a request for the user's input."""
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sample(text: str) -> Result:
    """Return a request for the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 50}}


def input_required(requests: Mapping[str, Result], state: str | None = None) -> Result:
    """Return the interim result that asks for input."""
    stated = {} if state is None else {"requestState": state}
    return {"resultType": "input_required", "inputRequests": dict(requests), **stated}


@fixture(an_object(region={"type": "string", "x-mcp-header": "Region"}))
async def test_x_mcp_header(ctx: Context, params: CallToolRequestParams) -> Result:
    return said(f"region: {(params.arguments or {}).get('region')}")


@fixture()
async def test_missing_capability(ctx: Context, params: CallToolRequestParams) -> Result:
    can = ctx.session.client_capabilities
    if can is None or can.sampling is None:
        data: Result = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message="This needs sampling", data=data)
    return said("It can sample.")


@fixture()
async def test_streaming_elicitation(ctx: Context, params: CallToolRequestParams) -> Result:
    await ctx.session.report_progress(1, 2, "half")
    return input_required({"user_name": ask("What is your name?", NAME)})


@fixture()
async def test_input_required_result_elicitation(ctx: Context, params: CallToolRequestParams) -> Result:
    answer = (params.input_responses or {}).get("user_name")
    if isinstance(answer, ElicitResult) and answer.content:
        return said(f"Hello, {answer.content.get('name')}!")
    return input_required({"user_name": ask("What is your name?", NAME)})


@fixture()
async def test_input_required_result_sampling(ctx: Context, params: CallToolRequestParams) -> Result:
    answer = (params.input_responses or {}).get("capital_question")
    if isinstance(answer, CreateMessageResult):
        return said(f"Model said: {getattr(answer.content, 'text', '')}")
    return input_required({"capital_question": sample("What is the capital of France?")})


@fixture()
async def test_input_required_result_list_roots(ctx: Context, params: CallToolRequestParams) -> Result:
    answer = (params.input_responses or {}).get("client_roots")
    return (
        said(f"{len(answer.roots)} roots")
        if isinstance(answer, ListRootsResult)
        else input_required({"client_roots": ROOTS})
    )


@fixture()
async def test_input_required_result_request_state(ctx: Context, params: CallToolRequestParams) -> Result:
    if "confirm" in (params.input_responses or {}) and params.request_state == "nonce":
        return said("state-ok: confirmation received")
    return input_required({"confirm": ask("Please confirm", OK)}, "nonce")


@fixture()
async def test_input_required_result_multiple_inputs(ctx: Context, params: CallToolRequestParams) -> Result:
    requests = {
        "user_name": ask("What is your name?", NAME),
        "greeting": sample("Generate a greeting"),
        "client_roots": ROOTS,
    }
    if requests.keys() <= (params.input_responses or {}).keys():
        return said("All inputs received.")
    return input_required(requests, "multi")


@fixture()
async def test_input_required_result_multi_round(ctx: Context, params: CallToolRequestParams) -> Result:
    answers, state = params.input_responses or {}, params.request_state
    if state == "round 1" and "step1" in answers:
        return input_required({"step2": ask("Step 2", an_object(["color"], color={"type": "string"}))}, "round 2")
    if state == "round 2" and "step2" in answers:
        return said("done")
    return input_required({"step1": ask("Step 1", NAME)}, "round 1")


@fixture()
async def test_input_required_result_tampered_state(ctx: Context, params: CallToolRequestParams) -> Result:
    return (
        input_required({"confirm": ask("Please confirm", OK)}, "round 1")
        if params.request_state is None
        else said("state-ok")
    )


@fixture()
async def test_input_required_result_capabilities(ctx: Context, params: CallToolRequestParams) -> Result:
    can, requests = ctx.session.client_capabilities, {}
    if can is None or can.sampling is not None:
        requests["sample"] = sample("Say hello")
    if can is None or can.elicitation is not None:
        requests["ask"] = ask("What is your name?", NAME)
    return input_required(requests, "gated")
