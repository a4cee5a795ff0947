"""The way of a call: arguments, money, answers, and what is owed for them."""

import re

import anyio
import httpx
import msgspec
import pytest

from tests.calls.parts import POOR, RICH, engine
from tests.calls.toy import FIRST, ONE, REGISTRY, SECOND, Reading
from tests.requirements import proves
from toolserver.calls import pipeline
from toolserver.context.context import FallbackReader, ToolContext
from toolserver.errors import (
    IdempotencyConflict,
    InternalError,
    InvalidArguments,
    PaymentRequired,
    RateLimited,
    StorageUnavailable,
    UpstreamUnavailable,
)
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.upstream.source import SourceDown

DOWN = httpx.Response(500)


def payload(outcome):
    return msgspec.json.decode(outcome.rendered.payload)


@proves("envelope.free", "answers.meta-sources")
async def test_an_answer_has_its_envelope_and_says_where_it_comes_from():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        body = payload(await e.call("number", {"add": 1}))

    assert body["source"] == "data.example"
    assert body["endpoint"] == "number"
    assert body["updated_at"] == "2027-01-15T08:00:00Z"
    assert body["data"] == {"value": 4.0, "twice": 6.0}
    assert body["stale"] is False
    assert "warning" not in body
    assert list(body)[-1] == "_meta"
    (used,) = body["_meta"]["sources"]
    assert (used["name"], used["status"], used["section"]) == ("Test.one", "live", "data")


@proves("free.cached", "answers.same-bytes")
async def test_within_the_ttl_every_call_gets_the_same_bytes_and_after_it_new_ones():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        first = (await e.call("number")).rendered
        e.clock.advance(29)
        assert (await e.call("number")).rendered.payload is first.payload
        e.internet.serves(FIRST, {"value": 4})
        e.clock.advance(2)
        assert payload(await e.call("number"))["data"]["value"] == 4


@proves("answers.refresh-ahead")
async def test_a_popular_answer_is_composed_ahead_and_takes_over_only_when_the_old_one_ends():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        for _ in range(4):
            await e.call("number")
        e.internet.serves(FIRST, {"value": 4})
        e.clock.advance(27)
        before = payload(await e.call("number"))
        await anyio.wait_all_tasks_blocked()
        assert payload(await e.call("number")) == before
        e.internet.serves(FIRST, DOWN)
        e.clock.advance(4)
        after = await e.call("number")

    assert before["data"]["value"] == 3
    assert payload(after)["data"]["value"] == 3
    assert after.hit


@proves("answers.single-flight")
async def test_a_thousand_concurrent_calls_compose_once():
    async with engine(REGISTRY) as e:
        gate = anyio.Event()

        async def slow(request):
            await gate.wait()
            return httpx.Response(200, json={"value": 1})

        e.internet.serves(FIRST, slow)
        seen = set()

        async def one():
            seen.add((await e.call("number")).rendered.payload)

        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            gate.set()
        assert len(seen) == 1
        assert len(e.internet.asked) == 1


@proves("answers.fallback", "answers.warning")
async def test_the_second_source_steps_in_and_the_answer_says_so():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, DOWN)
        e.internet.serves(SECOND, {"value": 8})
        body = payload(await e.call("number"))

    assert body["data"]["value"] == 8
    assert body["stale"] is False
    assert [(w["code"], w["source"]) for w in body["warning"]] == [("fallback_used", "Test.one")]
    statuses = {s["name"]: s["status"] for s in body["_meta"]["sources"]}
    assert statuses == {"Test.two": "fallback", "Test.one": "error"}


@proves("free.stale", "answers.updated-at")
async def test_with_every_source_down_the_last_good_answer_is_served_stale_with_its_old_time():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        await e.call("number")
        e.internet.serves(FIRST, DOWN)
        e.clock.advance(600)
        outcome = await e.call("number")
        body = payload(outcome)

    assert body["data"]["value"] == 3
    assert body["stale"] is True
    assert body["updated_at"] == "2027-01-15T08:00:00Z"
    assert body["warning"][0]["code"] == "stale_data"
    assert outcome.rendered.stale


async def test_sources_that_hang_are_given_up_while_there_is_time_for_what_is_kept():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        await e.call("hasty")

        async def never(request):
            await anyio.sleep_forever()

        e.internet.serves(FIRST, never)
        e.internet.serves(SECOND, never)
        e.clock.advance(600)
        body = payload(await e.call("hasty"))

    assert (body["data"]["value"], body["stale"]) == (3, True)
    assert "timeout" in body["_meta"]["sources"][0]["reason"]


@tool(path="/api/late", title="Late", ttl_s=30, deadline_s=0.2, sources=(ONE,))
async def late(ctx: ToolContext) -> Reading:
    """A section that cannot be given up in time, as in a process that gets no processor; for tests only."""

    async def read_late(reading: FallbackReader) -> float:
        with anyio.move_on_after(0.4, shield=True):
            return (await reading.read(ONE)).value
        await anyio.lowlevel.checkpoint()
        raise SourceDown("late")

    return Reading(value=await ctx.first("data", read_late), twice=0)


async def test_when_the_time_of_a_tool_is_over_what_is_kept_is_served_and_nothing_is_waited_for():
    async with engine(Registry([operation_of(late)])) as e:
        e.internet.serves(FIRST, {"value": 3})
        await e.call("late")

        async def never(request):
            await anyio.sleep_forever()

        e.internet.serves(FIRST, never)
        e.clock.advance(600)
        body = payload(await e.call("late"))
        e.clock.advance(10_000)
        nothing = payload(await e.call("late"))

    assert (body["data"]["value"], body["stale"]) == (3, True)
    assert body["_meta"]["sources"][0]["reason"] == "timeout: not composed within 0.2 s"
    assert (nothing["data"], nothing["stale"]) == (None, True)


@proves("answers.nothing-ever", "answers.warning")
async def test_with_nothing_ever_fetched_the_data_are_null_and_a_warning_names_the_source():
    async with engine(REGISTRY) as e:
        body = payload(await e.call("number"))

    assert body["data"] is None
    assert body["updated_at"] is None
    assert body["stale"] is True
    assert body["warning"][0]["code"] == "section_unavailable"
    assert "Test.one" in body["warning"][0]["message"]


@proves("errors.invalid_arguments")
@pytest.mark.parametrize(
    "given", [{"add": -1}, {"add": 101}, {"add": "many"}, {"add": None}, {"add": 10**400}, {"add": [1]}]
)
async def test_wrong_arguments_are_named_and_nothing_is_asked_or_charged(given):
    async with engine(REGISTRY) as e:
        with pytest.raises(InvalidArguments) as caught:
            await e.call("number", given)
        assert caught.value.extra["errors"][0]["loc"] == "add"
        assert e.internet.asked == []


async def test_unknown_arguments_and_nul_are_refused_before_anything_is_asked():
    async with engine(REGISTRY) as e:
        for given in ({"nonsense": 1}, {"add": "a\0b"}):
            with pytest.raises(InvalidArguments):
                await e.call("number", given)
        assert e.internet.asked == []


@proves("limits.spacing", "limits.bearer")
async def test_the_second_call_within_the_spacing_is_refused_and_costs_nothing():
    async with engine(REGISTRY, limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        first = await e.call("number", limited=True)
        assert [s.header for s in first.limit_states] == ['"daily";r=99999;t=1', '"spacing";r=0;t=30']
        with pytest.raises(RateLimited) as caught:
            await e.call("number", limited=True)
        assert caught.value.headers["Retry-After"] == "30"
        await e.call("number", limited=True, client="192.0.2.2")
        await e.call("number", limited=True, token=RICH)
        e.clock.advance(30)
        await e.call("number", limited=True)


async def test_arguments_are_validated_once_and_the_cache_is_looked_up_once(monkeypatch):
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        checks, lookups = [], []
        check, find = pipeline.validate_arguments, e.answers.find
        monkeypatch.setattr(pipeline, "validate_arguments", lambda *given: checks.append(given) or check(*given))
        monkeypatch.setattr(e.answers, "find", lambda *given: lookups.append(given) or find(*given))
        missed = await e.call("number", {"add": 1})
        found = await e.call("number", {"add": 1})

    assert (missed.hit, found.hit) == (False, True)
    assert (len(checks), len(lookups)) == (2, 2)
    assert missed.key == found.key == ("number", 1)


@proves("charge.once", "answers.premium-envelope")
async def test_a_paid_call_is_charged_once_and_says_what_is_left():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, {"value": 2})
        outcome = await e.call("premium_report", {"history": "30d"}, token=RICH)
        body = payload(outcome)

    assert (outcome.charged, outcome.credits_remaining, outcome.no_charge) == (2, 8, None)
    assert (body["one"], body["two"], body["notes"]) == (1, 2, {"history": "30d"})
    assert body["captured_at"] == "2027-01-15T08:00:00Z"
    assert body["endpoint"] == "/api/pro/report"


@proves(
    "premium.bearer", "payment-error.missing_token", "payment-error.invalid_token", "payment-error.insufficient_credits"
)
@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "missing_token"),
        ("nonsense", "invalid_token"),
        ("svc_live_" + "0" * 64, "invalid_token"),
        (POOR, "insufficient_credits"),
    ],
)
async def test_without_credits_nothing_is_fetched(token, code):
    async with engine(REGISTRY) as e:
        with pytest.raises(PaymentRequired) as caught:
            await e.call("premium_report", token=token)
        assert caught.value.code == code
        assert e.internet.asked == []


@proves("charge.partial", "no-charge.stale")
async def test_a_missing_section_is_charged_and_a_stale_one_is_not():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, DOWN)
        partial = await e.call("premium_report", token=RICH)
        assert (partial.charged, payload(partial)["two"]) == (2, None)
        assert payload(partial)["warning"][0]["section"] == "two"

        e.internet.serves(FIRST, DOWN)
        e.clock.advance(400)
        stale = await e.call("premium_report", token=RICH)
        assert (stale.charged, stale.no_charge, stale.credits_remaining) == (0, "stale_data", 8)


@proves("charge.all-failed", "no-charge.5xx")
async def test_when_everything_failed_nothing_is_sold():
    async with engine(REGISTRY) as e:
        with pytest.raises(UpstreamUnavailable):
            await e.call("premium_report", token=RICH)
        assert await e.ledger.balance(RICH) == 10


@proves("charge.hang-up", "charge.before-fetch")
async def test_a_caller_who_hangs_up_is_not_charged():
    async with engine(REGISTRY) as e:
        started = anyio.Event()

        async def never(request):
            started.set()
            await anyio.sleep_forever()

        e.internet.serves(FIRST, never)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: e.call("premium_report", token=RICH))
            await started.wait()
            assert await e.ledger.balance(RICH) == 8
            tasks.cancel_scope.cancel()
        assert await e.ledger.balance(RICH) == 10
        assert [h.reason for h in e.ledger.held.values()] == ["cancelled"]


@proves("charge.idempotent", "charge.twin", "errors.idempotency_conflict")
async def test_the_same_idempotency_key_is_one_call_and_other_arguments_are_a_conflict():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, {"value": 2})
        outcomes = []

        async def one():
            outcomes.append(await e.call("premium_report", token=RICH, idempotency_key="k1"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
        assert len({id(o.rendered) for o in outcomes}) == 1
        assert await e.ledger.balance(RICH) == 8
        with pytest.raises(IdempotencyConflict):
            await e.call("premium_report", {"history": "30d"}, token=RICH, idempotency_key="k1")


@proves("errors.internal_error")
@pytest.mark.parametrize("name", ["broken", "liar"])
async def test_a_fault_of_ours_says_nothing_of_our_insides(name):
    async with engine(REGISTRY) as e:
        with pytest.raises(InternalError) as caught:
            await e.call(name)
        assert "svc_live" not in caught.value.detail


@tool(path="/api/payment/slow", title="Slow", tier=Tier.PAYMENT, method="POST", deadline_s=0.2)
async def slow(ctx: ToolContext) -> Reading:
    """A call for one caller alone whose storage does not answer in time; for tests only."""
    await anyio.sleep(5)
    return Reading(value=1, twice=2)


async def test_a_call_for_one_caller_that_does_not_end_in_time_is_to_be_repeated():
    async with engine(Registry([operation_of(slow)])) as e:
        with pytest.raises(StorageUnavailable, match="timed out") as caught:
            await e.call("slow")
    assert (caught.value.status, caught.value.headers, caught.value.extra) == (
        503,
        {"Retry-After": "5"},
        {"retry_after_seconds": 5},
    )


def counted(e):
    """How often each (tool, outcome) was counted."""
    lines = re.findall(
        r'^toolserver_calls_total{outcome="(.*?)",tier="free",tool="(.*?)"} (.*)$',
        e.pipeline.metrics.text().decode(),
        re.M,
    )
    return {(tool, outcome): float(count) for outcome, tool, count in lines}


@pytest.mark.parametrize("name", ["broken", "liar"])
async def test_an_exception_in_a_free_tool_counts_as_the_internal_error_that_the_alarm_watches(name):
    async with engine(REGISTRY) as e:
        with pytest.raises(InternalError):
            await e.call(name)

        assert counted(e) == {(name, "internal_error"): 1}
        assert [call.status for call in e.pipeline.usage.counted().recent] == [500]


async def test_a_client_that_hangs_up_counts_as_cancelled_and_not_as_a_fault_of_ours():
    async with engine(REGISTRY) as e:
        started = anyio.Event()

        async def never(request):
            started.set()
            await anyio.sleep_forever()

        e.internet.serves(FIRST, never)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(e.call, "number")
            await started.wait()
            tasks.cancel_scope.cancel()

        assert counted(e) == {("number", "cancelled"): 1}
        assert [call.status for call in e.pipeline.usage.counted().recent] == [499]


async def test_a_release_dominates_a_charge():
    async with engine(REGISTRY) as e:
        await e.ledger.reserve("c1", RICH, 2, endpoint="/x", ttl_s=60)
        await e.ledger.settle("c1", no_charge=None)
        await e.ledger.settle("c1", no_charge="5xx")
        assert await e.ledger.balance(RICH) == 10
        await e.ledger.settle("c1", no_charge=None)
        assert await e.ledger.balance(RICH) == 10


async def test_a_call_that_is_refused_from_the_cache_counts_as_rate_limited_and_took_no_time():
    async with engine(REGISTRY, limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        number, now = REGISTRY["number"], e.clock.time()
        rendered = await e.answers.get(number, number.arguments(), ("number", 0))
        states = await e.pipeline.admit_cached(number, ("number", 0), "192.0.2.1", "", now, unchanged=False)
        with pytest.raises(RateLimited):
            await e.pipeline.admit_cached(number, ("number", 0), "192.0.2.1", "", now, unchanged=False)

        assert e.pipeline.peek(number, ("number", 0), now) is rendered
        assert [state.quota.name for state in states] == ["daily", "spacing"]
        assert counted(e)["number", "rate_limited"] == 1
        assert b'_seconds_sum{tool="number"} 0.0\n' in e.pipeline.metrics.text()
        assert sorted(call.status for call in e.pipeline.usage.counted().recent) == [200, 429]


async def test_who_has_no_limits_is_not_counted():
    async with engine(REGISTRY, limits=True) as e:
        e.internet.serves(FIRST, {"value": 3})
        outcomes = [await e.call("number", limited=False) for _ in range(3)]
    assert [(outcome.limit_states, outcome.hit) for outcome in outcomes] == [
        ([], False),
        ([], True),
        ([], True),
    ]
