"""What the fast path answers is what the SDK answers, for every tool, era, choice and kind of id."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mcp.service import TOKEN, Service, asked, echo, headers_for, oracle, running
from tests.requirements import proves
from tests.size import sized
from toolserver.calls import pipeline
from toolserver.calls.paid_call import PaidCallResult
from toolserver.calls.pipeline import Outcome
from toolserver.calls.response import RenderedResponse
from toolserver.errors import InsufficientCredits
from toolserver.mcp import messages, sdk_server
from toolserver.mcp.call_arguments import next_step
from toolserver.mcp.definitions import ToolRoute
from toolserver.mcp.fast_path import (
    FastPath,
    ToolResult,
    arguments_of,
    is_modern_request,
    is_plain_notification,
    render_core,
    render_failure,
    render_result,
)
from toolserver.mcp.messages import NO_PARAMS
from toolserver.money.x402.wire import META_RESPONSE, REQUIRED, RESPONSE, header
from toolserver.registry.registry import Tier, operation_of
from toolserver.registry.site_facts import SiteFacts

VERSIONS = [None, *messages.LEGACY, messages.MODERN]
IDS = [0, 1, -7, 2**53, 2**63 - 1, 2**70, "", "a", 'ünï\u2028"\\', "0"]
INITIALIZE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Pair:
    """One service asked over both ways. A call's id differs each time, so it is compared without what is its own."""

    def __init__(self, service: Service, fast: httpx.AsyncClient, sdk: httpx.AsyncClient) -> None:
        self.service, self._fast, self._sdk = service, fast, sdk
        self.by_sdk = 0

    async def ask(self, message: dict[str, Any], version: str | None, query: str = "", **more: str) -> tuple[Any, Any]:
        """`(status, message)` by the fast path and by the SDK."""
        headers = headers_for(message, version) | {"x-request-id": "req_00000001"} | more
        body = json.dumps(message)
        fast = await self._fast.post(f"/api/mcp{query}", content=body, headers=headers)
        sdk = await self._sdk.post(f"/api/mcp{query}", content=body, headers=headers)
        return (fast.status_code, _parsed(fast)), (sdk.status_code, _parsed(sdk))


def _parsed(answer: httpx.Response) -> Any:
    return json.loads(answer.content) if answer.content else None


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    async with running() as service, running() as other:
        other.endpoint.answer_at_once = AsyncMock(return_value=None)
        other.endpoint.answer_later = other.endpoint.answer_by_sdk
        service.endpoint.sdk = _Forbidden()
        async with service.client() as fast, other.client() as sdk:
            yield Pair(service, fast, sdk)


class _Forbidden:
    async def __call__(self, *args: Any, **named: Any) -> None:
        raise AssertionError("this message was to be answered without the SDK")


CALLS = [
    ("word", {}),
    ("word", {"ignored": [1, {"deep": None}]}),
    ("echo", {"text": "hello"}),
    ("echo", {"text": 'q"\\\u2028 ünï', "times": 3, "mood": "loud"}),
    ("parrot", {"text": "an alias"}),
    ("echo", {}),
    ("echo", {"text": "x", "times": 99}),
    ("echo", {"text": 5}),
    ("oracle", {}),
    ("oracle", {"question": "when"}),
    ("coin", {}),
    ("broken", {}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("token", [None, TOKEN, "svc_live_wrong"])
async def test_every_tool_gives_the_same_result_in_every_era(version: str | None, token: str | None) -> None:
    more = {"authorization": f"Bearer {token}"} if token else {}
    async with pair() as both:
        for name, arguments in CALLS:
            for _ in range(2):  # the second call is answered from what is at hand
                message = asked("tools/call", {"name": name, "arguments": arguments}, modern=version == messages.MODERN)
                fast, sdk = await both.ask(message, version, "?toolset=all", **more)
                assert fast == sdk
                assert fast[0] == 200


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("query", ["", "?toolset=all", "?tools=word,parrot", "?output_schema=off&toolset=core"])
async def test_the_list_of_tools_is_the_same(version: str | None, query: str) -> None:
    async with pair() as both:
        fast, sdk = await both.ask(asked("tools/list", modern=version == messages.MODERN), version, query)

    assert fast == sdk
    assert fast[1]["result"]["tools"]


@pytest.mark.parametrize("requested", [*messages.LEGACY, "1999-01-01", messages.MODERN])
async def test_initialize_is_the_same_for_every_version_asked_for(requested: str) -> None:
    async with pair() as both:
        fast, sdk = await both.ask(asked("initialize", {"protocolVersion": requested, **INITIALIZE}), None)

    assert fast == sdk
    assert fast[1]["result"]["protocolVersion"] in messages.LEGACY


@pytest.mark.parametrize("version", [None, *messages.LEGACY])
async def test_ping_is_the_same(version: str | None) -> None:
    async with pair() as both:
        fast, sdk = await both.ask(asked("ping"), version)

    assert fast == sdk == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})


async def test_discover_is_the_same() -> None:
    async with pair() as both:
        fast, sdk = await both.ask(asked("server/discover", modern=True), messages.MODERN)

    assert fast == sdk
    assert fast[1]["result"]["supportedVersions"] == [messages.MODERN]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/whatever"])
async def test_notifications_are_acknowledged_the_same_way(version: str | None, method: str) -> None:
    async with pair() as both:
        fast, sdk = await both.ask({"jsonrpc": "2.0", "method": method, "params": {}}, version)

    assert fast == sdk == (202, None)


@pytest.mark.parametrize("value", IDS)
@pytest.mark.parametrize("version", [None, "2025-11-25", messages.MODERN])
async def test_every_kind_of_id_comes_back_as_it_was(value: Any, version: str | None) -> None:
    message = asked("tools/call", {"name": "word"}, value=value, modern=version == messages.MODERN)
    async with pair() as both:
        fast, sdk = await both.ask(message, version)

    assert fast == sdk
    assert fast[1]["id"] == value
    assert type(fast[1]["id"]) is type(value)


NOT_OFFERED: list[tuple[str, dict[str, Any]]] = [
    ("prompts/list", {}),
    ("prompts/get", {"name": "any"}),
    ("prompts/get", {"name": "any", "arguments": {"a": "b"}}),
    ("no/such", {}),
    ("no/such", {"name": "x", "more": [1]}),
    ("tasks/get", {"taskId": "1"}),
    ("notifications/initialized", {}),
    ("svc_live_" + "ab" * 32, {}),
]
LEGACY_ONLY = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
MODERN_ONLY = ("server/discover", "subscriptions/listen")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("value", [1, "a"])
async def test_what_is_not_offered_is_refused_in_the_words_of_the_sdk(version: str | None, value: Any) -> None:
    modern = version == messages.MODERN
    asked_for = [*NOT_OFFERED, *((name, {"uri": "test://any"}) for name in (LEGACY_ONLY if modern else MODERN_ONLY))]
    if not modern:
        asked_for += [("resources/subscribe", {"uri": "test://any"}), ("resources/unsubscribe", {"uri": "x"})]
    async with pair() as both:
        for method, params in asked_for:
            named = {"mcp-name": str(params.get("name") or params.get("uri"))} if modern else {}
            fast, sdk = await both.ask(asked(method, params, value=value, modern=modern), version, **named)
            assert fast == sdk, method
            assert fast[1]["error"]["code"] == messages.METHOD_NOT_FOUND
            assert fast[0] == (404 if modern else 200)


JUDGED: list[tuple[str, dict[str, Any]]] = [
    ("prompts/list", {"cursor": 5}),
    ("prompts/list", {"cursor": "next"}),
    ("prompts/get", {}),
    ("prompts/get", {"name": "x", "arguments": {"a": 1}}),
    ("prompts/get", {"name": "x", "arguments": []}),
    ("completion/complete", {}),
    ("tools/call", {"arguments": {}}),
    ("no/such", {"name": 7}),
]


@pytest.mark.parametrize(("method", "params"), JUDGED)
@pytest.mark.parametrize("version", ["2025-11-25", messages.MODERN])
async def test_what_is_not_well_formed_is_left_to_the_sdk(method: str, params: Any, version: str) -> None:
    message = asked(method, params, modern=version == messages.MODERN)
    named = headers_for({**message, "params": {"name": "x", **params}}, version) | {"mcp-name": "x"}
    async with running() as service, service.client() as client:
        counts = service.pipeline.metrics.mcp_messages
        answer = await client.post("/api/mcp", json=message, headers={k: str(v) for k, v in named.items()})
        assert answer.json()["error"]["code"] in (messages.INVALID_PARAMS, messages.METHOD_NOT_FOUND, -32020)
        assert (counts.taken, counts.by_sdk) == (1, 0 if method == "tools/call" else 1)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["word", "echo", "oracle", "coin", "parrot"])
arguments = st.none() | st.dictionaries(st.sampled_from(["text", "times", "mood", "question", "other"]), json_values)
metas = st.fixed_dictionaries(
    {},
    optional={
        "progressToken": st.integers(0, 9) | st.text(max_size=3),
        "idempotency_key": st.text(max_size=5),
        "agent_nonce": st.text(max_size=5),
        "com.example/own": json_values,
        messages.CLIENT_KEY: st.fixed_dictionaries({"name": st.text(max_size=5), "version": st.text(max_size=5)}),
    },
)


@settings(max_examples=sized(30, fast=20, long=1000), suppress_health_check=list(HealthCheck))
@given(
    name=names,
    given_arguments=arguments,
    meta=metas,
    version=st.sampled_from(VERSIONS),
    value=st.integers() | st.text(),
    token=st.booleans(),
)
async def test_any_call_gives_the_same_result(
    name: str, given_arguments: Any, meta: dict[str, Any], version: str | None, value: Any, token: bool
) -> None:
    params: dict[str, Any] = {"name": name, "arguments": given_arguments}
    modern = version == messages.MODERN
    message = asked("tools/call", {**params, "_meta": meta} if meta or modern else params, value=value, modern=modern)
    if not modern:
        message["params"].get("_meta", {}).pop(messages.CLIENT_KEY, None)
    more = {"authorization": f"Bearer {TOKEN}"} if token else {}
    async with pair() as both:
        for _ in range(2):
            fast, sdk = await both.ask(message, version, "?toolset=all", **more)
            assert fast == sdk


def test_the_sdk_knows_the_same_versions() -> None:
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    assert messages.LEGACY == HANDSHAKE_PROTOCOL_VERSIONS
    assert (messages.MODERN,) == MODERN_PROTOCOL_VERSIONS
    assert sdk_server.HINTS["tools/list"].ttl_ms == messages.LIST_TTL_MS


@pytest.mark.parametrize("version", [None, messages.MODERN])
async def test_a_message_is_decoded_once_and_its_arguments_are_validated_once(
    version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as service, service.client() as client:
        read, check = messages.read_message, pipeline.validate_arguments
        reads: list[Any] = []
        checks: list[Any] = []
        monkeypatch.setattr(messages, "read_message", lambda body: reads.append(body) or read(body))
        monkeypatch.setattr(pipeline, "validate_arguments", lambda *given: checks.append(given) or check(*given))
        message = asked("tools/call", {"name": "echo", "arguments": {"text": "x"}}, modern=version is not None)
        answer = await client.post("/api/mcp", json=message, headers=headers_for(message, version))
        again = await client.post("/api/mcp", json=message, headers=headers_for(message, version))

    assert answer.json()["result"]["isError"] is False
    assert answer.content == again.content
    assert (len(reads), len(checks)) == (2, 1)  # the second call knows its arguments by how they are written


def test_a_modern_body_without_a_version_header_is_left_to_the_sdk():
    legacy = messages.read_message(json.dumps(asked("tools/list")).encode())
    modern = messages.read_message(json.dumps(asked("tools/list", modern=True)).encode())

    assert legacy is not None
    assert modern is not None
    assert (is_modern_request(legacy, {}), is_modern_request(modern, {})) == (False, None)


async def test_a_sold_answer_that_is_at_hand_is_charged_without_another_call(monkeypatch):
    async with running() as service:
        fast, route = FastPath(service.pipeline, service.facts), ToolRoute(service.registry["oracle"])
        paying = service.caller(token=TOKEN)
        first = await fast.call(route, NO_PARAMS, {}, paying)
        monkeypatch.setattr(service.pipeline, "call", None)
        second = await fast.call(route, NO_PARAMS, {}, paying)

        assert [each.meta["credits_remaining"] for each in (first, second)] == [98, 96]
        assert await service.ledger.balance(TOKEN) == 96
        for given, caller in (
            ({"question": "why"}, paying),
            ({}, service.caller()),
            ({}, service.caller(token=TOKEN, payment="{}")),
        ):
            with pytest.raises(TypeError):  # it asks for a call
                await fast.call(route, NO_PARAMS, given, caller)
        assert await service.ledger.balance(TOKEN) == 96


async def test_an_answer_at_hand_is_found_by_how_its_arguments_are_written_until_it_expires():
    async with running() as service:
        fast, route = FastPath(service.pipeline, service.facts), ToolRoute(service.registry["echo"])

        def read(**params):
            return messages.read_message(json.dumps(asked("tools/call", {"name": "echo", **params})).encode()).params

        written = read(arguments={"text": "hi"})
        assert fast.answer_unlimited(route, written, "") is None
        made = await fast.call(route, written, {"text": "hi"}, service.caller())
        assert fast.answer_unlimited(route, written, "") == made.core
        assert await fast.answer_from_cache(route, written, None, "") == ToolResult(made.core, {})
        short = await fast.answer_from_cache(route, written, None, "", short_meta=True)
        assert short is not None
        assert len(short.core) < len(made.core)
        for other in (read(arguments={"text": "hi", "times": 1}), read(), read(arguments={"text": "hi"}, task={})):
            assert fast.answer_unlimited(route, other, "") is None
        service.clock.advance(61)
        assert fast.answer_unlimited(route, written, "") is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", {}), ("null", {}), ("{}", {}), ('{"a":1}', {"a": 1}), ("[]", None), ('"a"', None), ("0", None)],
)
def test_arguments_are_an_object_or_left_out(written, expected):
    member = f',"arguments":{written}' if written else ""
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x"{member}}}}}'
    message = messages.read_message(body.encode())
    assert message is not None
    assert arguments_of(message.params) == expected


@pytest.mark.parametrize(
    ("version", "strict", "envelope", "expected"),
    [
        (None, False, False, False),
        (None, False, True, None),
        ("2025-11-25", False, False, False),
        ("2025-11-25", True, False, False),
        ("2025-11-25", False, True, False),
        ("2025-11-25", True, True, None),
        ("1999-01-01", False, False, None),
        (messages.MODERN, False, True, True),
        (messages.MODERN, True, True, True),
        (messages.MODERN, False, False, None),
    ],
)
def test_the_era_of_a_request_is_that_of_its_header_if_the_body_agrees(version, strict, envelope, expected):
    message = messages.read_message(json.dumps(asked("tools/list", modern=envelope)).encode())
    headers = {b"mcp-method": b"tools/list"}
    if version is not None:
        headers[b"mcp-protocol-version"] = version.encode()
    assert message is not None
    assert is_modern_request(message, headers, strict=strict) is expected


@pytest.mark.parametrize(
    ("message", "version", "expected"),
    [
        ({"method": "notifications/initialized"}, None, True),
        ({"method": "notifications/initialized"}, "2024-11-05", True),
        ({"method": "notifications/initialized"}, messages.MODERN, True),
        ({"method": "notifications/initialized"}, "1999-01-01", False),
        ({"method": "notifications/initialized", "id": 1}, None, False),
        ({"method": "ping"}, None, False),
    ],
)
def test_a_notification_has_no_id_and_a_version_that_we_serve(message, version, expected):
    read = messages.read_message(json.dumps({"jsonrpc": "2.0", **message}).encode())
    assert read is not None
    headers = {} if version is None else {b"mcp-protocol-version": version.encode()}
    assert is_plain_notification(read, headers) is expected


FACTS = SiteFacts("https://data.example", "data.example")
PREMIUM = RenderedResponse(b'{"a":"\\u00fc\\"","_meta":{"stale":false}}', 0.0, 60.0, None)


def sold(rendered: RenderedResponse, remaining: int | None = None, **receipt: str) -> Outcome:
    """The outcome of a sale of two credits."""
    return Outcome.of_sale(PaidCallResult(rendered, 2, remaining, **receipt))


def whole(core: bytes) -> dict[str, object]:
    result: dict[str, object] = json.loads(core + b"}")
    return result


def test_a_free_result_is_made_once_per_answer() -> None:
    made = render_core(PREMIUM)
    assert render_core(PREMIUM) is made
    payload = {"a": 'ü"', "_meta": {"stale": False}}
    told = whole(made)
    assert told["structuredContent"] == payload
    assert json.loads(told["content"][0]["text"]) == payload  # type: ignore[index]
    assert (told.keys(), told["isError"]) == ({"content", "structuredContent", "isError"}, False)


def test_a_result_that_cost_nothing_is_the_one_made_once_and_says_nothing_of_credits() -> None:
    result = render_result(operation_of(echo), Outcome(PREMIUM))
    assert (result.core, result.meta, result.failed) == (render_core(PREMIUM), {}, False)


@proves("mcp.charged")
def test_an_answer_paid_for_with_the_call_says_what_it_cost_but_nothing_of_credits_left() -> None:
    signed = render_result(operation_of(echo), sold(PREMIUM, receipt="jws", receipt_id="rcpt_1"))
    note = {"credits_charged": 2, "receipt_id": "rcpt_1"}

    assert signed.meta == {**note, "receipt": "jws"}
    assert whole(signed.core)["structuredContent"] == {"a": 'ü"', "_meta": {"stale": False, **note}}


def test_a_payment_with_the_call_is_confirmed_beside_the_result() -> None:
    settled = {"success": True, "transaction": "0x12"}
    result = render_result(operation_of(oracle), Outcome(PREMIUM, settlement=settled))
    assert result.meta == {META_RESPONSE: settled}


def test_a_result_is_closed_with_its_own_meta_if_it_has_one() -> None:
    plain, told = ToolResult(b"{", {}), ToolResult(b"{", {"credits_remaining": 7})
    for modern in (False, True):
        assert plain.end(modern=modern) == messages.end(modern=modern)
        assert told.end(modern=modern) == messages.end_with({"credits_remaining": 7}, modern=modern)


def test_the_credits_left_stand_in_both_copies() -> None:
    result = render_result(operation_of(oracle), sold(PREMIUM, 7, receipt="jws", receipt_id="rcpt_1"))
    told = whole(result.core)

    note = {"credits_remaining": 7, "credits_charged": 2, "receipt_id": "rcpt_1"}
    assert told["structuredContent"] == {"a": 'ü"', "_meta": {"stale": False, **note}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
    assert result.meta == {**note, "receipt": "jws"}


def test_a_receipt_by_reference_is_named_beside_the_hash_that_it_has_signed() -> None:
    result = render_result(operation_of(oracle), sold(PREMIUM, 7, receipt_id="rcpt_1"))
    payload = whole(result.core)["content"][0]["text"]  # type: ignore[index]
    digest = hashlib.sha256(payload.encode()).hexdigest()

    note = {"credits_remaining": 7, "credits_charged": 2, "receipt_id": "rcpt_1"}
    assert result.meta == {**note, "response_sha256": digest}


def test_a_bare_payload_gets_a_meta_of_its_own() -> None:
    operation = replace(operation_of(echo), tier=Tier.PAYMENT, method="POST")
    bare = RenderedResponse(b'{"wallet":"0x","quote":{"credits":50}}', 0.0, 0.0, None)
    told = whole(render_result(operation, Outcome.of_sale(PaidCallResult(bare, 0, 50))).core)

    note = {"credits_remaining": 50, "credits_charged": 0}
    assert told["structuredContent"] == {"wallet": "0x", "quote": {"credits": 50}, "_meta": note}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]


@proves("errors.mcp-text")
def test_a_refusal_is_text_only_and_has_the_body_of_rest() -> None:
    error = InsufficientCredits('Too few: "1".', required=2, credits_remaining=1)
    result = render_failure(error, FACTS, "req_1")
    told = whole(result.core)

    assert told.keys() == {"content", "isError"}
    assert told["isError"] is True
    assert json.loads(told["content"][0]["text"]) == {
        "error": "insufficient_credits",
        "signup": "https://data.example/docs/payments",
        "pricing": {"1 USD": "50 credits"},
        "detail": 'Too few: "1".',
        "request_id": "req_1",
        "required": 2,
        "credits_remaining": 1,
        "next": next_step("insufficient_credits")["next"],
    }
    assert (result.meta, result.failed) == ({}, True)


def test_a_refusal_hands_on_what_the_headers_of_rest_say_of_receipt_and_payment() -> None:
    failed = {"success": False, "errorReason": "late"}
    headers = {"X-Service-Receipt": "jws", "X-Service-Receipt-Id": "rcpt_1", RESPONSE: header(failed)}
    result = render_failure(InsufficientCredits("No.", headers=headers), FACTS, "req_1")

    assert result.meta == {"receipt": "jws", "receipt_id": "rcpt_1", META_RESPONSE: failed}
    assert whole(result.core).keys() == {"content", "isError"}


def test_an_offer_to_pay_is_one_object_with_the_error() -> None:
    error = InsufficientCredits("Pay.", headers={REQUIRED: header({"x402Version": 2, "accepts": []})})
    result = render_failure(error, FACTS, "req_1")
    told = whole(result.core)

    offer = told["structuredContent"]
    assert (offer["x402Version"], offer["accepts"], offer["error"]) == (2, [], "insufficient_credits")  # type: ignore[index]
    assert json.loads(told["content"][0]["text"]) == offer  # type: ignore[index]
    assert (told["isError"], result.meta, result.failed) == (True, {}, True)
