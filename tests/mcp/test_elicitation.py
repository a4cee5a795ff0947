"""Paying by an address to open: who is asked, what a repeated call brings, and which states are refused."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import msgspec
import pytest

from tests.mcp.service import POOR, START, TOKEN, Service, asked, headers_for, running
from toolserver.calls.payment_links import LIFE_S, WAIT_S
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import NotFound
from toolserver.mcp import messages
from toolserver.mcp.request_state import RequestStates
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.receipts.keys import KeyRing, ensure_keys, revoke_key, rotate_keys, write

URL = {"elicitation": {"url": {}}}
ACCEPT, DECLINE, CANCEL = ({"buy": {"action": action}} for action in ("accept", "decline", "cancel"))
UNKNOWN = "svc_live_" + "0" * 64
REFUSED = {
    "code": messages.INVALID_PARAMS,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}


class Chat:
    """A modern client of the service that can open addresses, unless a test says otherwise."""

    def __init__(self, service: Service, http: httpx.AsyncClient) -> None:
        self.service, self.http = service, http
        assert service.links is not None
        self.links = service.links

    async def send(
        self, token: str | None = None, capabilities: dict[str, Any] = URL, *, modern: bool = True, **params: Any
    ) -> dict[str, Any]:
        meta = {"_meta": {messages.CAPABILITIES_KEY: capabilities}} if modern else {}
        message = asked("tools/call", {"name": "oracle", "arguments": {}} | params | meta, modern=modern)
        headers = headers_for(message, messages.MODERN if modern else None)
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return (await self.http.post("/api/mcp", json=message, headers=headers)).json()

    async def call(self, *args: Any, **params: Any) -> dict[str, Any]:
        return (await self.send(*args, **params))["result"]

    async def repeat(self, first: dict[str, Any], token: str | None = None, **params: Any) -> dict[str, Any]:
        return await self.send(token, **({"requestState": first["requestState"], "inputResponses": ACCEPT} | params))

    async def pay(self, first: dict[str, Any], token: str) -> None:
        """What the page does with a token of the payer's browser."""
        await self.links.pay_call(self.links.read(link_of(first)), token)


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "receipts.json", ManualClock(START))


@pytest.fixture
async def chat(ring: KeyRing) -> AsyncIterator[Chat]:
    async with running(ring=ring) as service, service.client() as http:
        yield Chat(service, http)


def request_of(result: dict[str, Any]) -> dict[str, Any]:
    assert result["resultType"] == "input_required", result
    request = result["inputRequests"]["buy"]
    assert (list(result["inputRequests"]), request["method"]) == (["buy"], "elicitation/create")
    return request["params"]


def link_of(result: dict[str, Any]) -> str:
    url = urlsplit(request_of(result)["url"])
    assert f"{url.scheme}://{url.netloc}{url.path}" == "https://data.example/buy"
    return parse_qs(url.query)["p"][0]


def refusal_of(result: dict[str, Any]) -> dict[str, Any]:
    assert (result["resultType"], result["isError"]) == ("complete", True)
    return json.loads(result["content"][0]["text"])


async def test_a_call_without_a_token_asks_to_open_a_page_that_shows_the_same_code(chat: Chat) -> None:
    result = await chat.call()
    request, link = request_of(result), chat.links.read(link_of(result))
    assert (request["mode"], set(request)) == ("url", {"mode", "message", "url"})
    assert "Oracle costs 2 credits" in request["message"]
    assert request["message"].startswith(f"Pay only if the page shows the code {link.code}.")
    assert (link.tool, link.credits, link.account) == ("oracle", 2, None)
    assert result["_meta"] == {messages.SERVER_KEY: messages.SERVER_INFO}


async def test_nothing_secret_is_in_the_address_or_readable_in_the_state(chat: Chat) -> None:
    result = await chat.call()
    assert "svc_" not in json.dumps(result)
    first, second = await chat.call(), await chat.call()
    assert chat.links.read(link_of(first)).spender != chat.links.read(link_of(second)).spender
    assert len(request_of(first)["url"]) < 300


async def test_the_official_types_accept_the_result(chat: Chat) -> None:
    from mcp_types import ElicitRequest, InputRequiredResult

    result = InputRequiredResult.model_validate(await chat.call())
    assert result.input_requests is not None
    assert isinstance(result.input_requests["buy"], ElicitRequest)


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}, {"elicitation": {"url": None}}],
    ids=["none", "bare", "form", "null"],
)
async def test_who_cannot_open_addresses_gets_the_ordinary_refusal(chat: Chat, capabilities: dict[str, Any]) -> None:
    assert refusal_of(await chat.call(None, capabilities))["error"] == "missing_token"


async def test_a_legacy_client_gets_the_ordinary_refusal(chat: Chat) -> None:
    result = await chat.call(None, modern=False)
    assert "resultType" not in result
    assert json.loads(result["content"][0]["text"])["error"] == "missing_token"


@pytest.mark.parametrize(("token", "code"), [(UNKNOWN, "invalid_token"), ("nonsense", "invalid_token")])
async def test_buying_is_not_proposed_where_it_does_not_help(chat: Chat, token: str, code: str) -> None:
    assert refusal_of(await chat.call(token))["error"] == code


async def test_a_cap_that_is_reached_is_no_reason_to_buy(chat: Chat) -> None:
    capped = "svc_live_" + "ef" * 32
    await chat.service.ledger.create_allowance(TOKEN, token_hash(capped).hex(), AllowanceTerms("a chat", 1))
    refusal = refusal_of(await chat.call(capped))
    assert (refusal["error"], refusal["cap"]) == ("insufficient_credits", "credits")


async def test_a_server_that_sells_nothing_asks_nobody() -> None:
    async with running() as service, service.client() as http:
        assert service.links is None
        message = asked("tools/call", {"name": "oracle", "_meta": {messages.CAPABILITIES_KEY: URL}}, modern=True)
        answer = await http.post("/api/mcp", json=message, headers=headers_for(message, messages.MODERN))
        assert refusal_of(answer.json()["result"])["error"] == "missing_token"


# --- going on ---


async def test_once_it_is_paid_the_repeated_call_answers_once(chat: Chat) -> None:
    first = await chat.call(arguments={"question": "how"})
    await chat.pay(first, TOKEN)
    result = (await chat.repeat(first, arguments={"question": "how"}))["result"]
    assert (result["resultType"], result["isError"], result["structuredContent"]["meaning"]) == (
        "complete",
        False,
        "42",
    )
    assert (await chat.service.ledger.balance(TOKEN), result["_meta"]["credits_remaining"]) == (98, 0)
    again = refusal_of((await chat.repeat(first, arguments={"question": "how"}))["result"])
    assert (again["error"], await chat.service.ledger.balance(TOKEN)) == ("insufficient_credits", 98)


async def test_a_repeated_call_of_an_account_waits_for_its_credits(chat: Chat) -> None:
    first = await chat.call(POOR)
    link = chat.links.read(link_of(first))
    assert link.account is not None
    assert link.spender is None
    assert "your token has too few" in request_of(first)["message"]
    chat.service.ledger.fund(POOR, 3)
    result = (await chat.repeat(first, POOR))["result"]
    assert (result["isError"], await chat.service.ledger.balance(POOR)) == (False, 2)


async def test_it_waits_for_the_ledger_no_longer_than_it_says(chat: Chat) -> None:
    first, before = await chat.call(), chat.service.clock.monotonic()
    refusal = refusal_of((await chat.repeat(first))["result"])
    assert (refusal["error"], chat.service.clock.monotonic() - before) == ("payment_pending", WAIT_S)
    assert refusal["purchase"]["url"] == request_of(first)["url"]
    assert refusal["purchase"]["code"] in request_of(first)["message"]
    assert refusal["next"]["tool"] == "oracle"


async def test_an_account_that_has_not_paid_can_call_again_without_a_state(chat: Chat) -> None:
    first = await chat.call(POOR)
    assert refusal_of((await chat.repeat(first, POOR))["result"])["error"] == "payment_pending"
    chat.service.ledger.fund(POOR, 3)
    assert (await chat.call(POOR))["isError"] is False


async def test_a_payment_during_the_wait_ends_it(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    first, sleep = await chat.call(), chat.service.clock.sleep

    async def sleep_and_pay(seconds: float) -> None:
        await sleep(seconds)
        await chat.pay(first, TOKEN)

    monkeypatch.setattr(chat.service.clock, "sleep", sleep_and_pay)
    before = chat.service.clock.monotonic()
    assert (await chat.repeat(first))["result"]["isError"] is False
    assert chat.service.clock.monotonic() - before < WAIT_S


async def test_the_wait_ends_when_the_caller_leaves(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    first, waits = await chat.call(), anyio.Event()

    async def sleep_forever(seconds: float) -> None:
        waits.set()
        await anyio.sleep_forever()

    monkeypatch.setattr(chat.service.clock, "sleep", sleep_forever)
    sent: list[Any] = []
    message = asked(
        "tools/call",
        {"name": "oracle", "arguments": {}, "requestState": first["requestState"], "inputResponses": ACCEPT}
        | {"_meta": {messages.CAPABILITIES_KEY: URL}},
        modern=True,
    )
    head = [(name.encode(), value.encode()) for name, value in headers_for(message, messages.MODERN).items()]
    scope = {"type": "http", "method": "POST", "path": "/api/mcp", "query_string": b"", "headers": head}
    bodies = [{"type": "http.request", "body": json.dumps(message).encode()}]

    async def receive() -> dict[str, Any]:
        if bodies:
            return bodies.pop()
        await waits.wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    with anyio.fail_after(5):
        await chat.service.endpoint(scope, receive, send)
    assert sent == []


@pytest.mark.parametrize(
    "answers",
    [
        DECLINE,
        CANCEL,
        {},
        {"buy": {}},
        {"buy": None},
        {"buy": {"action": 1}},
        {"other": {"action": "accept"}},
        [],
        "no",
    ],
    ids=["decline", "cancel", "silence", "empty", "null", "number", "other", "list", "text"],
)
async def test_who_does_not_agree_gets_the_ordinary_refusal_at_once(chat: Chat, answers: Any) -> None:
    first, before = await chat.call(), chat.service.clock.monotonic()
    refusal = refusal_of((await chat.repeat(first, inputResponses=answers))["result"])
    assert (refusal["error"], refusal["signup"]) == ("missing_token", "https://data.example/docs/payments")
    assert chat.service.clock.monotonic() == before


@pytest.mark.parametrize("state", [{}, {"requestState": None}], ids=["absent", "null"])
async def test_input_without_a_state_is_an_ordinary_call_and_nobody_is_asked_twice(chat: Chat, state: Any) -> None:
    assert refusal_of(await chat.call(inputResponses=ACCEPT, **state))["error"] == "missing_token"
    assert (await chat.call(TOKEN, inputResponses=ACCEPT, **state))["isError"] is False


async def test_a_person_who_got_a_token_meanwhile_may_bring_a_state_of_nobody(chat: Chat) -> None:
    first = await chat.call()
    await chat.pay(first, TOKEN)
    assert (await chat.repeat(first, POOR))["result"]["isError"] is False
    assert await chat.service.ledger.balance(POOR) == 1


async def test_states_outlive_a_rotation_of_the_keys_and_other_instances_open_them(tmp_path: Path) -> None:
    path, clock = tmp_path / "receipts.json", ManualClock(START)
    async with running(ring=KeyRing(path, clock), clock=clock) as service, service.client() as http:
        first = await Chat(service, http).call()
    write(path, rotate_keys(ensure_keys(path), clock.time(), after_s=60))
    clock.advance(90)
    async with running(ring=KeyRing(path, clock), clock=clock) as service, service.client() as http:
        other = Chat(service, http)
        assert other.links.read(link_of(first)).tool == "oracle"
        await other.pay(first, TOKEN)
        assert (await other.repeat(first))["result"]["isError"] is False


# --- states that are refused ---


def changed(at: int) -> Callable[[str], str]:
    def change(state: str) -> str:
        place = at % len(state)
        return state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]

    return change


FORGED: dict[str, Callable[[Any], Any]] = {
    "first character": changed(0),
    "nonce": changed(20),
    "content": changed(120),
    "near the end": changed(-4),
    "shortened": lambda state: state[:-4],
    "extended": lambda state: f"{state}AAAA",
    "padded": lambda state: f"{state}=",
    "halved": lambda state: state[: len(state) // 2],
    "empty": lambda state: "",
    "text": lambda state: "v1.AAAA",
    "number": lambda state: 7,
    "object": lambda state: {"state": state},
    "list": lambda state: [state],
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_a_state_that_was_tampered_with_is_refused(chat: Chat, forge: Callable[[Any], Any]) -> None:
    first = await chat.call()
    await chat.pay(first, TOKEN)
    answer = await chat.repeat(first, requestState=forge(first["requestState"]))
    assert answer["error"] == REFUSED
    assert await chat.service.ledger.balance(TOKEN) == 100


@pytest.mark.parametrize(
    "other",
    [{"arguments": {"question": "when"}}, {"name": "word"}, {"name": "echo", "arguments": {"text": "a"}}],
    ids=["arguments", "tool", "both"],
)
async def test_a_state_replayed_with_another_call_is_refused(chat: Chat, other: dict[str, Any]) -> None:
    first = await chat.call()
    await chat.pay(first, TOKEN)
    assert (await chat.repeat(first, **other))["error"] == REFUSED


@pytest.mark.parametrize("token", [None, TOKEN, UNKNOWN, "nonsense"], ids=["none", "another", "unknown", "malformed"])
async def test_a_state_of_an_account_is_refused_from_any_other_caller(chat: Chat, token: str | None) -> None:
    first = await chat.call(POOR)
    assert (await chat.repeat(first, token))["error"] == REFUSED
    assert await chat.service.ledger.balance(TOKEN) == 100


async def test_the_link_is_no_state_and_the_state_no_link(chat: Chat) -> None:
    first = await chat.call()
    assert (await chat.repeat(first, requestState=link_of(first)))["error"] == REFUSED
    with pytest.raises(NotFound):
        chat.links.read(first["requestState"])


async def test_a_state_that_another_service_sealed_is_refused(chat: Chat, tmp_path: Path) -> None:
    async with running(ring=KeyRing(tmp_path / "other.json", ManualClock(START))) as other, other.client() as http:
        foreign = await Chat(other, http).call()
    assert (await chat.repeat(foreign))["error"] == REFUSED


async def test_a_state_whose_link_was_made_elsewhere_is_refused(chat: Chat) -> None:
    states = RequestStates(chat.links.open_seal("request states"))
    content = msgspec.json.encode({"link": "AAAA", "secret": TOKEN}).decode()
    forged = await states.seal({"name": "oracle", "arguments": {}}, None, content)
    assert (await chat.send(requestState=forged, inputResponses=ACCEPT))["error"] == REFUSED


async def test_an_expired_state_is_refused(chat: Chat) -> None:
    first = await chat.call()
    await chat.pay(first, TOKEN)
    chat.service.clock.advance(LIFE_S)
    assert (await chat.repeat(first))["error"] == REFUSED


async def test_a_state_under_a_revoked_key_is_refused(tmp_path: Path) -> None:
    path, clock = tmp_path / "receipts.json", ManualClock(START)
    async with running(ring=KeyRing(path, clock), clock=clock) as service, service.client() as http:
        first = await Chat(service, http).call()
    keys = ensure_keys(path)
    write(path, revoke_key(keys, keys[0].kid, clock.time()))
    async with running(ring=KeyRing(path, clock), clock=clock) as service, service.client() as http:
        assert (await Chat(service, http).repeat(first))["error"] == REFUSED
