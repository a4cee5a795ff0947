"""MCP Events as clients see them: what is advertised and listed in both eras, and every refusal with its code."""

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tests.calls.parts import POOR, RICH
from tests.mcp.service import MODERN_META, asked, headers_for
from tests.requirements import proves
from tests.webhooks.receivers import receiving, receiving_events
from tests.webhooks.room import EVENT_SECRET
from tests.webhooks.served_hooks import HookedService, hooked
from tests.webhooks.shop import fire
from toolserver.calls.pipeline import TOKEN_TRIES
from toolserver.calls.response_cache import ResponseCache
from toolserver.core.waiting_room import waiting_client
from toolserver.mcp import messages
from toolserver.mcp.events import CODES
from toolserver.webhooks.fire_operations import AddFire, FinishFire
from toolserver.webhooks.records import Attempt

NAMES = [
    "earthquake.new",
    "launch.soon",
    "market.moved",
    "price.crossed",
    "report.ready",
    "service.down",
    "severe_weather.new",
]
BITCOIN = {"symbol": "btc", "below": 1}


@pytest.fixture
async def served() -> AsyncIterator[HookedService]:
    async with hooked() as service:
        yield service


async def post(
    served: HookedService, method: str, *, modern: bool = False, token: str | None = RICH, **params: Any
) -> tuple[int, Any]:
    message = asked(method, params, modern=modern)
    headers = headers_for(message, messages.MODERN if modern else None)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    answer = await served.client.post("/api/mcp", json=message, headers=headers)
    return answer.status_code, answer.json()


def wanted(url: str, **changes: Any) -> dict[str, Any]:
    """The parameters of a subscription; `delivery` changes single members of it."""
    delivery = {"mode": "webhook", "url": url, "secret": EVENT_SECRET} | changes.pop("delivery", {})
    return {"name": "price.crossed", "arguments": BITCOIN, "cursor": None, "delivery": delivery} | changes


@proves("events.list")
@pytest.mark.parametrize("modern", [False, True])
async def test_events_are_listed_without_a_token_with_source_price_and_flat_schemas(served, modern) -> None:
    status, answer = await post(served, "events/list", modern=modern, token=None)
    result = answer["result"]
    assert status == 200
    assert sorted(event["name"] for event in result["events"]) == NAMES
    assert result.get("resultType") == ("complete" if modern else None)
    assert "required" not in result["events"][0]["inputSchema"], "a client that takes the first has a subscription"
    for event in result["events"]:
        assert event["delivery"] == ["webhook"]
        assert "Source: " in event["description"]
        assert "1 credit" in event["description"]
        assert event["inputSchema"]["type"] == event["payloadSchema"]["type"] == "object"
        for argument in event["inputSchema"]["properties"].values():
            assert argument["type"] in ("string", "number", "integer")
        assert not event["inputSchema"].keys() & {"oneOf", "anyOf", "allOf", "$defs"}


@proves("events.list")
@pytest.mark.parametrize("unusual", [False, True], ids=["fast", "sdk"])
async def test_both_capabilities_are_advertised_in_both_eras(served, unusual) -> None:
    more: dict[str, Any] = {"extra": 1, "cursor": "x"} if unusual else {}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    for method, params, modern in (("initialize", about, False), ("server/discover", {}, True)):
        _, answer = await post(served, method, modern=modern, **params, **more)
        capabilities = answer["result"]["capabilities"]
        assert capabilities["events"] == {}
        assert capabilities["extensions"]["io.modelcontextprotocol/events"] == {}
        assert capabilities["tools"] == {"listChanged": False}


async def test_no_cursor_of_a_list_is_known(served) -> None:
    _, answer = await post(served, "events/list", cursor="2")
    assert answer["error"]["code"] == -32602


@proves("events.renewed", "events.ended")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_subscription_is_made_renewed_and_ended(served, modern) -> None:
    async with receiving_events() as receiver:
        made = (await post(served, "events/subscribe", modern=modern, **wanted(receiver.url())))[1]["result"]
        again = (await post(served, "events/subscribe", modern=modern, **wanted(receiver.url(), ttlMs=None)))[1][
            "result"
        ]
        assert made["id"] == again["id"]
        assert made["refreshBefore"].endswith("Z")
        assert made["refreshBefore"] < again["refreshBefore"]
        assert (made["cursor"], made["truncated"], made["deliveryStatus"]["active"]) == (None, False, True)
        assert made.get("resultType") == ("complete" if modern else None)
        assert len(receiver.requests) == 1
        [listed] = (await served.call("GET", "/api/pro/subscriptions")).json()["subscriptions"]
        assert listed["id"].startswith("wh_")
        assert EVENT_SECRET not in json.dumps(listed)
        status, ended = await post(served, "events/unsubscribe", modern=modern, **wanted(receiver.url()))
        assert (status, "error" in ended) == (200, False)
        assert await post(served, "events/unsubscribe", modern=modern, **wanted(receiver.url())) == (status, ended)


@pytest.mark.parametrize(("error", "said"), [("http_413", "http_4xx"), ("tls", "tls_error"), ("timeout", "timeout")])
async def test_what_is_wrong_with_a_receiver_is_said_in_the_words_of_the_protocol(served, error, said) -> None:
    async with receiving_events() as receiver:
        await post(served, "events/subscribe", **wanted(receiver.url()))
        [listed] = (await served.call("GET", "/api/pro/subscriptions")).json()["subscriptions"]
        store, now = served.service.webhooks.store, int(served.clock.time() * 1000)
        missed = fire(subscription=listed["id"], created_at=now, due_at=now, expires_at=now + 300_000)
        await store.apply(AddFire(missed))
        await store.apply(FinishFire(missed.id, "released", "delivery_failed", now, Attempt(None, error, 9)))
        _, answer = await post(served, "events/subscribe", **wanted(receiver.url()))
        assert answer["result"]["deliveryStatus"]["lastError"] == said


async def test_a_cursor_says_that_events_since_it_are_lost(served) -> None:
    async with receiving_events() as receiver:
        _, answer = await post(served, "events/subscribe", **wanted(receiver.url(), cursor="c"))
        assert answer["result"]["truncated"] is True


REFUSED = [
    ({"name": "price.crosed"}, "not_found"),
    ({"arguments": {"symbol": "btc"}}, None),
    ({"arguments": BITCOIN | {"abbove": 1}}, None),
    ({"arguments": [1]}, None),
    ({"delivery": {"mode": "poll"}}, "unsupported"),
    ({"delivery": {"secret": "whsec_short"}}, None),
    ({"delivery": {"secret": 5}}, None),
    ({"delivery": {"url": "https://example.com/a#b"}}, None),
    ({"delivery": {"url": "ftp://example.com/a"}}, None),
    ({"delivery": {"url": "https://user:password@example.com/a"}}, None),
    ({"delivery": {"url": "https://10.0.0.1/a"}}, None),
    ({"ttlMs": 0}, None),
    ({"ttlMs": "soon"}, None),
    ({"ttlMs": True}, None),
]


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize(("changes", "kind"), REFUSED)
async def test_what_is_wrong_is_refused_by_its_code_and_without_the_secret(served, changes, kind, modern) -> None:
    params = wanted("https://example.com/a") | changes
    params["delivery"] = wanted("https://example.com/a")["delivery"] | changes.get("delivery", {})
    status, answer = await post(served, "events/subscribe", modern=modern, **params)
    code = -32602 if kind is None else getattr(CODES["sketch"], kind)
    assert answer["error"]["code"] == code
    assert status == (400 if modern and code == -32602 else 200)
    assert "whsec_" not in json.dumps(answer).replace("must be whsec_ and the base64", "")
    assert "password" not in answer["error"]["message"].replace("user name or password", "")


@pytest.mark.parametrize("token", [None, "svc_live_" + "0" * 64, "svc_free_abc"])
async def test_without_a_valid_token_it_is_forbidden(served, token) -> None:
    _, answer = await post(served, "events/subscribe", token=token, **wanted("https://example.com/a"))
    assert answer["error"]["code"] == CODES["sketch"].forbidden


async def test_without_credits_it_says_so_and_asks_no_receiver(served) -> None:
    async with receiving_events() as receiver:
        _, answer = await post(served, "events/subscribe", token=POOR, **wanted(receiver.url()))
        assert answer["error"]["code"] == CODES["sketch"].exhausted
        assert answer["error"]["data"]["limit"] == "credits"
        assert receiver.requests == []


@proves("events.verified")
async def test_a_receiver_that_proves_nothing_is_named_with_the_reason(served) -> None:
    async with receiving() as receiver:
        _, answer = await post(served, "events/subscribe", **wanted(receiver.url()))
        assert answer["error"]["code"] == CODES["sketch"].receiver
        assert answer["error"]["data"] == {"reason": "challenge_failed"}


async def test_the_sixth_says_how_many_there_may_be(served) -> None:
    async with receiving_events() as receiver:
        for bound in range(1, 6):
            params = wanted(receiver.url(), arguments=BITCOIN | {"below": bound})
            assert "result" in (await post(served, "events/subscribe", **params))[1]
        _, answer = await post(served, "events/subscribe", **wanted(receiver.url(), arguments=BITCOIN | {"below": 9}))
        assert answer["error"]["data"] == {"limit": "subscriptions", "max": 5}


async def test_an_unknown_symbol_is_refused_before_it_waits_for_ever(served) -> None:
    params = wanted("https://example.com/a", arguments={"symbol": "NOSUCHCOIN", "above": 1})
    _, answer = await post(served, "events/subscribe", **params)
    assert answer["error"]["code"] == -32602
    assert "symbol" in answer["error"]["message"]


async def test_the_dialect_of_the_extension_has_its_codes_and_names_what_is_not_there() -> None:
    async with hooked(events_dialect="extension") as served:
        _, unknown = await post(served, "events/unsubscribe", **wanted("https://example.com/a"))
        assert unknown["error"]["code"] == -32023
        assert unknown["error"]["data"] == {"kind": "subscription"}
        _, forbidden = await post(served, "events/subscribe", token=None, **wanted("https://example.com/a"))
        assert forbidden["error"]["code"] == -32024


async def test_headers_that_say_something_else_are_refused(served) -> None:
    message = asked("events/list", modern=True)
    headers = headers_for(message, messages.MODERN) | {"mcp-method": "tools/list"}
    answer = await served.client.post("/api/mcp", json=message, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == messages.HEADER_MISMATCH


async def test_a_message_of_an_unusual_shape_is_answered_too(served) -> None:
    message = asked("events/subscribe", {"name": 5, "_meta": MODERN_META, "delivery": {"secret": EVENT_SECRET}})
    answer = await served.client.post("/api/mcp", json=message, headers=headers_for(message, messages.MODERN))
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32602
    assert EVENT_SECRET not in answer.text


async def test_verifications_count_with_tests_of_webhooks() -> None:
    async with hooked(limited=True) as served, receiving_events() as receiver:
        codes = []
        for number in range(6):
            _, answer = await post(served, "events/subscribe", **wanted(receiver.url(path=f"/{number % 3}")))
            await post(served, "events/unsubscribe", **wanted(receiver.url(path=f"/{number % 3}")))
            codes.append(answer.get("error", {}).get("code"))
        assert codes == [None] * 6, "each receiver proved itself once"
        assert len(receiver.requests) == 3
        refused = [
            (await post(served, "events/subscribe", **wanted(receiver.url(path=f"/new{number}"))))[1].get("error")
            for number in range(3)
        ]
        assert refused[:2] == [None, None]
        assert refused[2]["data"]["limit"] == "rate"
        assert refused[2]["data"]["retry_after_seconds"] > 0


async def test_subscribing_and_ending_count_like_the_tools_of_webhooks_though_nothing_is_verified() -> None:
    async with hooked(limited=True) as served, receiving_events() as receiver:
        params = wanted(receiver.url())
        said = [(await post(served, "events/subscribe", **params))[1].get("error") for _ in range(31)]
        assert said[:30] == [None] * 30
        assert (said[30]["code"], said[30]["data"]["limit"]) == (CODES["sketch"].exhausted, "rate")
        assert len(receiver.requests) == 1
        served.clock.advance(61)
        ended = [(await post(served, "events/unsubscribe", **params))[1].get("error") for _ in range(61)]
        assert ended[:60] == [None] * 60
        assert ended[60]["data"]["limit"] == "rate"


async def test_invented_tokens_are_refused_by_address_before_the_ledger_is_asked() -> None:
    async with hooked(limited=True) as served:
        for number in range(TOKEN_TRIES.quota):
            token = f"svc_live_{number:064x}"
            _, answer = await post(served, "events/unsubscribe", token=token, **wanted("https://example.com/a"))
            assert answer["error"]["code"] == CODES["sketch"].forbidden
        token = "svc_live_" + "e" * 64
        _, answer = await post(served, "events/unsubscribe", token=token, **wanted("https://example.com/a"))
        assert answer["error"]["code"] == CODES["sketch"].exhausted
        assert answer["error"]["data"]["limit"] == "rate"


async def test_what_is_composed_to_try_an_event_waits_as_its_client(served, monkeypatch) -> None:
    waited_as = []
    compose = ResponseCache.get

    async def spy(self: ResponseCache, *args: Any, **named: Any) -> Any:
        waited_as.append(waiting_client.get())
        return await compose(self, *args, **named)

    monkeypatch.setattr(ResponseCache, "get", spy)
    async with receiving_events() as receiver:
        await post(served, "events/subscribe", **wanted(receiver.url()))
    assert waited_as == ["192.0.2.1"], "the share of one client, and not a place of our own, which never makes room"


async def test_a_delivery_is_never_printed() -> None:
    from toolserver.mcp.events import EventDelivery, EventParams

    params = msgspec.convert(wanted("https://example.com/a"), EventParams)
    assert EVENT_SECRET not in repr(params)
    assert EVENT_SECRET not in repr(EventDelivery("u", secret=EVENT_SECRET))
