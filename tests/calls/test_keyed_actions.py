"""POSTs of payment and account tools with an Idempotency-Key: done once, answered again, kept unreadable."""

import anyio
import pytest

from tests.calls.parts import POOR, RICH, START
from tests.served import all_tools
from tests.webhooks.served_hooks import hooked
from toolserver.calls.arguments import Call
from toolserver.calls.idempotency import Idempotency, KeyedActions, fingerprint
from toolserver.calls.idempotency_store import MemoryIdempotencyStore
from toolserver.calls.response import RenderedResponse
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import IdempotencyConflict, InvalidArguments

LONG = "k" * 16
SUBSCRIPTION = {"endpoint": "agent-context", "webhook_url": "http://127.0.0.1:1/"}


@pytest.fixture
async def hooks():
    async with hooked() as served:
        yield served


async def post(hooks, path, key, token=RICH, **body):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return await hooks.client.post(path, headers=headers | {"idempotency-key": key}, json=body)


def reason_of(answer):
    return answer.status_code, answer.json()["type"].rpartition("/")[2]


async def test_a_repeated_rotation_returns_the_same_secret_and_says_that_it_is_repeated(hooks):
    id = (await hooks.subscribe("http://127.0.0.1:1/"))["id"]
    rotate = f"/api/pro/subscribe/{id}/rotate-secret"

    first, again, other = [await post(hooks, rotate, key) for key in ("one", "one", "two")]

    assert (first.status_code, again.content) == (200, first.content)
    assert other.json()["secret"] != first.json()["secret"]
    assert [answer.headers.get("idempotency-replayed") for answer in (first, again, other)] == [None, "true", None]


async def test_a_repeated_subscription_is_one_and_two_at_once_are_one(hooks):
    answers = []

    async def subscribe():
        answers.append(await post(hooks, "/api/pro/subscribe", "one", **SUBSCRIPTION))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subscribe)
        tasks.start_soon(subscribe)
    answers.append(await post(hooks, "/api/pro/subscribe", "one", **SUBSCRIPTION))

    assert [answer.status_code for answer in answers] == [201] * 3
    assert len({answer.content for answer in answers}) == 1
    assert sorted(answer.headers.get("idempotency-replayed", "") for answer in answers) == ["", "true", "true"]
    listed = (await hooks.call("GET", "/api/pro/subscriptions")).json()
    assert len(listed["subscriptions"]) == 1


async def test_a_key_stands_for_one_action_of_one_token(hooks):
    await post(hooks, "/api/pro/subscribe", "one", **SUBSCRIPTION)

    changed = await post(hooks, "/api/pro/subscribe", "one", **{**SUBSCRIPTION, "endpoint": "btc-price"})
    sold = await hooks.client.get(
        "/api/pro/agent-context", headers={"authorization": f"Bearer {RICH}", "idempotency-key": "one"}
    )
    poor = await post(hooks, "/api/pro/subscribe", "one", POOR, **SUBSCRIPTION)

    assert [reason_of(answer) for answer in (changed, sold)] == [(422, "idempotency_conflict")] * 2
    assert poor.status_code == 402


async def test_a_refused_action_leaves_its_key_free(hooks):
    refused = await post(hooks, "/api/pro/subscribe", "one", **{**SUBSCRIPTION, "webhook_url": "nothing"})
    done = await post(hooks, "/api/pro/subscribe", "one", **SUBSCRIPTION)

    assert (refused.status_code, done.status_code) == (400, 201)
    assert "idempotency-replayed" not in done.headers


def quote_call(key, token=None, client="192.0.2.1", amount_usd=5):
    operation = all_tools()["payment_buy_credits"]
    arguments = operation.arguments.model_validate({"amount_usd": amount_usd})
    return Call(operation, arguments, None, Caller(client=client, token=token, idempotency_key=key))


def only_kept(quotes):
    name = ("address 192.0.2.1", fingerprint(LONG))
    token = (fingerprint(RICH), LONG)
    return next((known, call) for known in (name, token) if (call := quotes.store.find(known)) is not None)


class Quotes:
    """Gives each action an answer of its own, and keeps them in a store that a test can read."""

    def __init__(self):
        self.store = MemoryIdempotencyStore(ManualClock(START))
        self.actions = KeyedActions(Idempotency(self.store))
        self.given = 0

    async def ask(self, *asked, **more):
        rendered, is_repeated = await self.actions.once(quote_call(*asked, **more), self._quote)
        return rendered.payload, is_repeated

    async def _quote(self):
        self.given += 1
        return RenderedResponse(b'{"memo":"secret %d"}' % self.given, 1.0, 2.0, None)


async def test_without_a_token_a_key_is_long_and_counts_for_one_address():
    quotes = Quotes()
    with pytest.raises(InvalidArguments, match="16 characters"):
        await quotes.ask("k" * 15)
    first = await quotes.ask(LONG)
    assert await quotes.ask(LONG) == (first[0], True)
    assert await quotes.ask(LONG, client="192.0.2.2") == (b'{"memo":"secret 2"}', False)
    with pytest.raises(IdempotencyConflict):
        await quotes.ask(LONG, amount_usd=6)


@pytest.mark.parametrize("token", [None, RICH])
async def test_what_is_kept_shows_a_reader_neither_the_answer_nor_what_opens_it(token):
    quotes = Quotes()
    await quotes.ask(LONG, token)
    name, kept = only_kept(quotes)
    assert b"secret" not in kept.result
    assert RICH not in repr((name, kept))
    assert token is not None or LONG not in repr((name, kept))


async def test_an_answer_that_another_key_opens_is_not_shown():
    quotes = Quotes()
    await quotes.ask(LONG, RICH)
    name, kept = only_kept(quotes)
    quotes.store.add(name, kept._replace(result=b"a paid answer"))
    with pytest.raises(IdempotencyConflict):
        await quotes.ask(LONG, RICH)


async def test_a_paid_answer_that_is_repeated_says_so(hooks):
    headers = {"authorization": f"Bearer {RICH}", "idempotency-key": "one"}
    first, again = [await hooks.client.get("/api/pro/agent-context", headers=headers) for _ in range(2)]

    assert again.content == first.content
    assert ["idempotency-replayed" in answer.headers for answer in (first, again)] == [False, True]
