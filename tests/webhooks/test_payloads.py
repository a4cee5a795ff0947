import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from tests.calls.parts import START, engine
from tests.calls.shop import premium_broken, premium_liar, premium_void
from tests.calls.toy import FIRST, SECOND, premium_report
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.models import TopLevel
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.sql.sqlite import in_memory
from toolserver.webhooks.delivery import AGAIN_MS, CACHED, PayloadShelf, PayloadSource
from toolserver.webhooks.store import WebhookStore

seen = []


class Heard(TopLevel):
    since: str | None


@tool(path="/api/pro/heard", title="Heard", tier=Tier.PREMIUM, credits=1, ttl_s=60, tags={"webhook_since": "since"})
async def premium_heard(ctx, since: str | None = None) -> Heard:
    """Says since when it was asked for news, so that a test can tell; for tests only."""
    seen.append(since)
    return Heard(since=since)


TOOLS = [premium_report, premium_broken, premium_liar, premium_void, premium_heard]
REGISTRY = Registry([operation_of(function) for function in TOOLS])


@pytest.fixture
async def source():
    async with engine(REGISTRY) as running:
        running.internet.serves(FIRST, {"value": 1})
        running.internet.serves(SECOND, {"value": 2})
        seen.clear()
        yield PayloadSource(REGISTRY, running.pipeline)


async def test_a_payload_is_the_answer_that_other_callers_get(source):
    payload = await source.compose("report", b'{"history":"30d"}')
    assert (payload.no_charge, payload.captured_at) == (None, START.timestamp() * 1000)
    assert msgspec.json.decode(payload.body)["notes"] == {"history": "30d"}
    assert (await source.compose("report", b'{"history":"30d"}')).digest == payload.digest
    assert source.decode(payload) is source.decode(payload)


@proves("webhook.short-name")
async def test_premium_endpoints_have_short_names_and_their_own_parameters(source):
    assert source.endpoints == ["broken", "heard", "liar", "report", "void", "credit-alerts"]
    assert source.operation("credit-alerts") is None
    assert source.operation("nothing") is None
    source.check("report", {"history": "30d"})
    for params in ({"nothing": 1}, {"history": "1d"}):
        with pytest.raises(InvalidArguments):
            source.check("report", params)


async def test_what_fails_or_is_empty_is_a_payload_with_a_reason_not_to_charge(source):
    reasons = {name: (await source.compose(name, b"{}")).no_charge for name in ("liar", "void", "broken")}
    assert reasons == {"liar": "schema_failure", "void": "empty_result", "broken": "5xx"}


async def test_an_endpoint_that_knows_what_is_new_is_asked_for_that(source):
    moment = int(START.timestamp() * 1000) + 61_000
    await source.compose("heard", b"{}", moment)
    await source.compose("heard", b"{}", moment + 30_000)
    await source.compose("heard", b"{}")
    await source.compose("heard", b'{"since":"mine"}', moment)
    assert seen == ["2027-01-15T07:41:00Z", None, "mine"], "one composition for all of a minute, for what comes late"


class CountingStore(WebhookStore):
    """A store that counts."""

    def __init__(self, file):
        super().__init__(file)
        self.saved, self.read = [], []

    async def save_payload(self, digest, body, now):
        self.saved.append(digest)
        await asyncio.sleep(0)
        await super().save_payload(digest, body, now)

    async def payload(self, digest):
        self.read.append(digest)
        return await super().payload(digest)


@pytest.fixture
async def store():
    async with in_memory() as file:
        yield CountingStore(file)


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 1, tzinfo=UTC))


async def test_a_payload_that_many_share_is_stored_once_and_again_while_it_is_used(store, clock):
    shelf = PayloadShelf(store, clock)
    for _ in range(5):
        await shelf.put("d", b"body")
    assert (store.saved, await shelf.get("d"), store.read) == (["d"], b"body", [])
    clock.advance(AGAIN_MS / 1000)
    await shelf.put("d", b"body")
    clock.advance(-86_400)
    await shelf.put("d", b"body")
    assert store.saved == ["d"] * 3


async def test_those_who_come_at_once_share_one_write(store, clock):
    shelf = PayloadShelf(store, clock)
    await asyncio.gather(*(shelf.put("d", b"body") for _ in range(20)))
    assert store.saved == ["d"]


async def test_after_a_restart_it_is_read_from_the_store_once(store, clock):
    await PayloadShelf(store, clock).put("d", b"body")
    shelf = PayloadShelf(store, clock)
    assert [await shelf.get("d") for _ in range(3)] == [b"body"] * 3
    assert store.read == ["d"]
    assert await shelf.get("nothing") is None


async def test_what_was_only_read_is_stored_when_it_is_put(store, clock):
    await PayloadShelf(store, clock).put("d", b"body")
    shelf = PayloadShelf(store, clock)
    await shelf.get("d")
    await shelf.put("d", b"body")
    assert store.saved == ["d", "d"]


async def test_the_memory_is_bounded(store, clock):
    shelf = PayloadShelf(store, clock)
    for number in range(CACHED + 5):
        await shelf.put(str(number), b"body")
    assert await shelf.get("0") == b"body"
    assert store.read == ["0"]
