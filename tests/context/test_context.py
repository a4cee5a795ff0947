"""What a tool reads, and what its answer then says about it."""

import anyio
import pytest

from tests.context.sources import NOW, A, Arranged, B, answer, context_of
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.context.context import via
from toolserver.core.caller import Caller
from toolserver.errors import PaymentRequired
from toolserver.upstream.source_errors import SourceDown, SourceExcluded, SourceUnproved, SourceUnusable
from toolserver.upstream.throttle import RequestWithheld


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio", {"loop_factory": SkippingLoop}


def sources(ctx):
    """The entries of `_meta.sources[]`: name, status and reason."""
    entries = ctx.notes.meta(stale=False)["sources"]
    return [(entry["name"].removeprefix("Test."), entry["status"], entry.get("reason")) for entry in entries]


def warnings(ctx):
    return [(caveat.section, caveat.code, caveat.source) for caveat in ctx.notes.caveats()]


async def test_a_source_that_answers_is_listed_without_a_warning():
    ctx = context_of(Arranged(A=1))
    assert await ctx.read(A) == 1
    assert (sources(ctx), warnings(ctx)) == ([("A", "live", None)], [])


async def test_a_fallback_is_listed_with_the_source_it_replaces_and_that_source_with_its_failure():
    ctx = context_of(Arranged(B=2))
    assert await ctx.first("data", via(A), via(B)) == 2
    assert sources(ctx) == [("B", "fallback", "http_503: Test.A"), ("A", "error", "http_503: arranged")]
    assert warnings(ctx) == [("data", "fallback_used", "Test.A")]
    assert ctx.notes.sources[0].replaces == "Test.A"


async def test_a_fallback_because_of_our_own_pacing_is_composed_again_soon():
    held, failed = context_of(Arranged(A=RequestWithheld(), B=2)), context_of(Arranged(B=2))
    for ctx in (held, failed):
        await ctx.first("data", via(A), via(B))
    assert (held.shortened_s, failed.shortened_s) == (30, None)


async def test_a_source_without_its_key_is_replaced_silently():
    ctx = context_of(Arranged(A=SourceUnusable("A"), B=2))
    assert await ctx.first("data", via(A), via(B)) == 2
    assert (sources(ctx), warnings(ctx)) == ([("B", "live", None)], [])


async def test_a_kept_answer_is_used_only_after_every_fallback_has_failed_and_is_marked_stale():
    reader = Arranged(B=2)
    reader.kept_answers = {"A": answer(1, age_s=600, latency_ms=None)}
    assert await context_of(reader).first("data", via(A), via(B)) == 2
    reader.answers.clear()
    ctx = context_of(reader)
    assert await ctx.first("data", via(A), via(B)) == 1
    assert sources(ctx) == [("A", "stale", "http_503: arranged"), ("B", "error", "http_503: arranged")]
    assert warnings(ctx) == [("data", "stale_data", "Test.A")]
    assert "the value is of 2027-01-15T07:50:00Z" in ctx.notes.warnings[0].message


async def test_when_nothing_answers_read_raises_and_section_returns_none_with_a_warning():
    ctx = context_of(Arranged())
    with pytest.raises(SourceDown):
        await ctx.read(A)
    ctx = context_of(Arranged())
    assert await ctx.section("data.a", via(A), via(B)) is None
    assert sources(ctx) == [("A", "error", "http_503: arranged"), ("B", "error", "http_503: arranged")]
    assert warnings(ctx) == [("data.a", "section_unavailable", "Test.A")]


async def test_a_section_that_nobody_proves_says_so():
    ctx = context_of(Arranged(A=SourceUnproved("no stamp proves it")))
    assert await ctx.section("data", via(A), via(B)) is None
    assert warnings(ctx) == [("data", "unproved_empty", "Test.A")]


async def test_a_section_whose_sources_are_all_barred_says_that_the_licence_is_why():
    ctx = context_of(Arranged(A=SourceExcluded("no"), B=SourceExcluded("unclear")))
    assert await ctx.section("data", via(A), via(B)) is None
    assert warnings(ctx) == [("data", "licence_excluded", None)]


async def test_a_section_without_any_usable_source_says_so():
    ctx = context_of(Arranged(A=SourceUnusable("A")))
    assert await ctx.section("data", via(A)) is None
    assert (sources(ctx), warnings(ctx)) == ([], [("data", "section_unavailable", None)])
    assert "no source is usable" in ctx.notes.warnings[0].message


async def test_a_refresh_that_failed_within_the_promise_is_cached_with_its_reason():
    ctx = context_of(Arranged(A=answer(1, age_s=90, latency_ms=None, failure="http_500")))
    assert await ctx.read(A) == 1
    assert (sources(ctx), warnings(ctx)) == ([("A", "cached", "http_500")], [])


@pytest.mark.parametrize(("age_s", "status"), [(60, "cached"), (3000, "stale")])
async def test_a_kept_answer_is_read_without_asking_and_noted_by_its_age(age_s, status):
    reader = Arranged(A=1)
    reader.kept_answers = {"A": answer(5, age_s=age_s, latency_ms=None)}
    ctx = context_of(reader)
    assert (await ctx.kept(A), await ctx.kept(B), reader.asked) == (5, None, [])
    assert sources(ctx) == [("A", status, None)]


async def test_after_its_patience_a_context_takes_what_is_kept():
    reader = Arranged(A=1)
    reader.takes_s = {"A": 1000}
    reader.kept_answers = {"A": answer(5, age_s=600, latency_ms=None)}
    began = anyio.current_time()
    ctx = context_of(reader, patience_s=8)
    assert (await ctx.read(A), anyio.current_time() - began) == (5, pytest.approx(8, abs=0.5))
    assert sources(ctx) == [("A", "stale", "timeout: no answer in the time there is")]


async def test_what_a_tool_declares_about_its_answer_is_kept():
    ctx = context_of(Arranged())
    assert (ctx.now, ctx.empty, ctx.shortened_s, ctx.notes.stale()) == (NOW, False, None, False)
    ctx.mark_empty()
    ctx.shorten(300)
    ctx.shorten(30)
    ctx.shorten(60)
    ctx.judge_stale(True)
    ctx.warn("data", "partial", "Half is missing.")
    assert (ctx.empty, ctx.shortened_s, ctx.notes.stale()) == (True, 30, True)
    assert warnings(ctx) == [("data", "partial", None)]


async def test_the_token_is_that_of_the_caller_and_without_one_payment_is_required():
    assert context_of(Arranged(), caller=Caller("192.0.2.1", token="t")).token == "t"
    for caller in (None, Caller("192.0.2.1")):
        with pytest.raises(PaymentRequired) as caught:
            _ = context_of(Arranged(), caller=caller).token
        assert caught.value.code == "missing_token"
