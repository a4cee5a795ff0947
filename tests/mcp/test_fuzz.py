"""Whatever is sent, the answer is a clean message: never a traceback, never a server error, never our inside."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mcp.service import running
from tests.size import sized
from toolserver.mcp import messages as wire

JSON = {"content-type": "application/json"}
STATUSES = {200, 202, 400, 404, 406}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=8), v, max_size=3), max_leaves=8
)
methods = st.sampled_from(
    ["tools/call", "tools/list", "initialize", "ping", "server/discover", "prompts/list", "resources/read",
     "notifications/cancelled", "logging/setLevel", "subscriptions/listen", "completion/complete", "x"]
)  # fmt: skip
metas = st.dictionaries(
    st.sampled_from([wire.VERSION_KEY, wire.CAPABILITIES_KEY, wire.CLIENT_KEY, "progressToken", "idempotency_key"]),
    values | st.sampled_from([wire.MODERN, "2025-11-25", {}, {"name": "n", "version": "v"}]),
)
params = st.dictionaries(
    st.sampled_from(["name", "arguments", "cursor", "protocolVersion", "capabilities", "clientInfo", "uri", "task"]),
    values | st.sampled_from(["word", "echo", "oracle", {"text": "x"}, {}]),
).flatmap(lambda p: st.just(p) | metas.map(lambda m: {**p, "_meta": m}))
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | scalars},
    optional={
        "id": st.integers() | st.text(max_size=5) | values,
        "method": methods | values,
        "params": params | values,
        "result": values,
        "error": values,
    },
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([wire.MODERN, "2025-11-25", "2025-03-26", "2099-01-01", "x", ""]),
        "mcp-method": methods,
        "mcp-name": st.sampled_from(["word", "echo", "=?base64?d29yZA==?=", "=?base64?!?=", ""]),
        "mcp-session-id": st.just("abc"),
        "accept": st.sampled_from(
            ["*/*", "application/json", "text/event-stream", "application/json, text/event-stream"]
        ),
        "authorization": st.sampled_from(["Bearer x", "Basic x", "", "Bearer svc_live_" + "ab" * 32]),
    },
)


async def sent(body: bytes, more: dict[str, str]) -> None:
    async with running() as service, service.client() as http:
        answer = await http.post("/api/mcp", content=body, headers=JSON | more)

    assert answer.status_code in STATUSES
    assert "Traceback" not in answer.text
    assert "pydantic" not in answer.text
    if answer.status_code != 202 and answer.headers.get("content-type", "").startswith("application/json"):
        told = json.loads(answer.content)
        assert told["jsonrpc"] == "2.0"
        assert ("result" in told) != ("error" in told)


fuzzed = settings(max_examples=sized(30, fast=20, long=1000), suppress_health_check=list(HealthCheck))


@fuzzed
@given(st.binary(max_size=200), headers)
async def test_any_bytes(body: bytes, more: dict[str, str]) -> None:
    await sent(body, more)


@fuzzed
@given(messages, headers)
async def test_any_json_that_looks_like_a_message(message: Any, more: dict[str, str]) -> None:
    await sent(json.dumps(message).encode(), more)


@fuzzed
@given(methods, params, headers, st.booleans())
async def test_any_parameters_of_a_proper_message(
    method: str, given_params: Any, more: dict[str, str], fits: bool
) -> None:
    if fits:
        more = more | {"mcp-protocol-version": wire.MODERN, "mcp-method": method}
        given_params = {**given_params, "_meta": {wire.VERSION_KEY: wire.MODERN, wire.CAPABILITIES_KEY: {}}}
        if isinstance(name := given_params.get("name"), str) and name.isascii() and name.isprintable():
            more = more | {"mcp-name": name}
    await sent(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given_params}).encode(), more)
