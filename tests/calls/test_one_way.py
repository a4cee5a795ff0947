"""Every call goes one way: what is sold from the cache, given back, released or looked for again is so on each."""

from dataclasses import replace

import anyio
import httpx
import pytest

from tests.calls.parts import RICH, engine
from tests.calls.toy import FIRST, ONE, REGISTRY, SECOND
from tests.requirements import proves
from toolserver.calls import paid_call
from toolserver.calls.arguments import Call, build_cache_key
from toolserver.calls.idempotency import Idempotency
from toolserver.calls.idempotency_store import MemoryIdempotencyStore
from toolserver.calls.paid_call import CallMoney, PaidCallRunner
from toolserver.calls.rate_limit import AT_ONCE, UnchargedLimit
from toolserver.calls.response import RenderedResponse
from toolserver.context.context import ToolContext
from toolserver.core.caller import Caller
from toolserver.core.models import TopLevel
from toolserver.core.waiting_room import WaitLimits
from toolserver.errors import BillingUnavailable, RateLimited
from toolserver.registry.registry import Registry, Tier, operation_of, tool


class Pulse(TopLevel):
    value: float


@tool(path="/api/pro/pulse", title="Pulse", tier=Tier.PREMIUM, credits=1, ttl_s=60, follow_s=600, sources=(ONE,))
async def premium_pulse(ctx: ToolContext) -> Pulse:
    """A number that is kept fresh while somebody buys it; for tests only.

    Source: nobody.
    """
    return Pulse(value=(await ctx.read(ONE)).value)


def call_of(operation, **caller):
    arguments = operation.arguments()
    origin = Caller("192.0.2.1", RICH, limited=False, **caller)
    return Call(operation, arguments, build_cache_key(operation, arguments), origin)


async def test_a_sale_from_the_cache_keeps_its_tool_fresh_like_any_other_call():
    async with engine(Registry([operation_of(premium_pulse)])) as e:
        e.internet.serves(FIRST, {"value": 3})
        await e.call("premium_pulse", token=RICH)
        e.clock.advance(5)
        call = call_of(e.registry["premium_pulse"])
        rendered = e.pipeline.peek(call.operation, call.key, e.clock.time())
        assert rendered is not None
        outcome = await e.pipeline.answer(call, rendered)

        assert (outcome.charged, outcome.rendered) == (1, rendered)
        assert e.pipeline.asked_at == {"premium_pulse": e.clock.monotonic()}


class LogOfUncharged:
    """Receipts of which only the log of uncharged calls matters."""

    def __init__(self):
        self.entries = []

    async def unheard(self, reason, owner, endpoint, cost):
        self.entries.append((reason, endpoint, cost))


async def test_a_call_whose_caller_leaves_while_it_is_composed_is_recorded_as_cancelled():
    async with engine(REGISTRY) as e:
        asked = anyio.Event()

        async def hang(request):
            asked.set()
            await anyio.sleep_forever()

        e.internet.serves(FIRST, hang)
        log = LogOfUncharged()
        money = CallMoney(e.ledger, Idempotency(MemoryIdempotencyStore(e.clock)), log)
        limit = UnchargedLimit(monotonic=e.clock.monotonic)
        runner = PaidCallRunner(e.answers, money, e.pipeline.metrics, limit)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.sell, call_of(e.registry["premium_report"]), RICH)
            await asked.wait()
            tasks.cancel_scope.cancel()

        assert log.entries == [("cancelled", e.registry["premium_report"].endpoint, 2)]
        assert await e.ledger.balance(RICH) == 10


class CountedReservations:
    """A ledger that counts the reservations made through it."""

    def __init__(self, ledger):
        self._ledger, self.reserved = ledger, 0

    def __getattr__(self, name):
        return getattr(self._ledger, name)

    async def reserve(self, *arguments, **named):
        self.reserved += 1
        return await self._ledger.reserve(*arguments, **named)


@proves("waits.ledger")
async def test_callers_who_wait_for_the_ledger_have_a_share_and_keep_no_other_client_from_it(monkeypatch):
    monkeypatch.setattr(paid_call, "LEDGER_WAITS", WaitLimits(most=3, share=2, crowd_share=2))
    async with engine(REGISTRY) as e:
        e.ledger.fund(RICH, 100)
        gate, refused = anyio.Event(), []

        class SlowLedger(CountedReservations):
            async def reserve(self, *arguments, **named):
                await gate.wait()
                return await super().reserve(*arguments, **named)

        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, {"value": 2})
        ledger = SlowLedger(e.ledger)
        money = CallMoney(ledger, Idempotency(MemoryIdempotencyStore(e.clock)))
        runner = PaidCallRunner(e.answers, money, e.pipeline.metrics, UnchargedLimit(monotonic=e.clock.monotonic))
        call = call_of(e.registry["premium_report"])

        async def buy(client):
            try:
                await runner.sell(replace(call, caller=replace(call.caller, client=client, limited=True)), RICH)
            except BillingUnavailable as refusal:
                refused.append((client, refusal.code))

        async with anyio.create_task_group() as tasks:
            for client in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"):
                tasks.start_soon(buy, client)
            await anyio.wait_all_tasks_blocked()
            assert refused == [("192.0.2.1", "billing_unavailable")]
            gate.set()
        assert ledger.reserved == 3


async def test_an_answer_that_was_made_while_a_call_waited_for_its_place_is_charged_in_one_step():
    async with engine(REGISTRY) as e:
        e.ledger.fund(RICH, 100)
        gate = anyio.Event()

        async def slow(request):
            await gate.wait()
            return httpx.Response(200, json={"value": 1})

        e.internet.serves(FIRST, slow)
        e.internet.serves(SECOND, slow)
        ledger = CountedReservations(e.ledger)
        money = CallMoney(ledger, Idempotency(MemoryIdempotencyStore(e.clock)))
        runner = PaidCallRunner(e.answers, money, e.pipeline.metrics, UnchargedLimit(monotonic=e.clock.monotonic))
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE + 1):
                tasks.start_soon(runner.sell, call_of(e.registry["premium_report"]), RICH)
            await anyio.wait_all_tasks_blocked()
            assert ledger.reserved == AT_ONCE
            gate.set()

        assert ledger.reserved == AT_ONCE
        assert await e.ledger.balance(RICH) == 110 - 2 * (AT_ONCE + 1)


@pytest.mark.parametrize("facts", [{"stale": True}, {"nothing": True}, {"no_charge": "empty_result"}])
async def test_only_an_answer_that_is_charged_in_full_is_sold_as_it_is(facts):
    async with engine(REGISTRY) as e:
        call, now = call_of(e.registry["premium_report"]), e.clock.time()
        for about, is_sold in (({}, True), (facts, False)):
            e.answers.table.keep(call.key, RenderedResponse(b'{"_meta":{}}', now, now + 60, now, **about))
            assert (e.pipeline.peek(call.operation, call.key, now) is not None) is is_sold


async def test_a_304_that_only_the_new_answer_shows_takes_no_place():
    async with engine(REGISTRY, limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        number, caller = e.registry["number"], Caller("192.0.2.1")
        first = await e.pipeline.call(number, {}, caller, None, lambda rendered: True)
        second = await e.pipeline.call(number, {}, caller)
        with pytest.raises(RateLimited):
            await e.pipeline.call(number, {}, caller)

    assert (first.unchanged, first.hit, second.unchanged, second.hit) == (True, False, False, True)
