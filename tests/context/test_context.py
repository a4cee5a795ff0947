"""What a tool reads, and what its answer then says about it."""

import anyio
import pytest

from tests.calls.parts import number_source
from tests.context.sources import NOW, A, Arranged, B, C, answer, context_of
from tests.requirements import proves
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.context.context import Surroundings, TimeSeriesStore, via
from toolserver.core.caller import Caller
from toolserver.errors import PaymentRequired
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.source import SourceDown, SourceExcluded, SourceUnproved, SourceUnusable


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
    assert "the value is from 2027-01-15T07:50:00Z" in ctx.notes.warnings[0].message


async def test_when_nothing_answers_read_raises_and_section_returns_none_with_a_warning():
    ctx = context_of(Arranged())
    with pytest.raises(SourceDown):
        await ctx.read(A)
    ctx = context_of(Arranged())
    assert await ctx.section("data.a", via(A), via(B)) is None
    assert sources(ctx) == [("A", "error", "http_503: arranged"), ("B", "error", "http_503: arranged")]
    assert warnings(ctx) == [("data.a", "section_unavailable", "Test.A")]


@proves("answers.proved-empty")
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
    assert sources(ctx) == [("A", "stale", "timeout: no answer in the available time")]


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


def told(ctx):
    return [caveat.message for caveat in ctx.notes.caveats()]


async def test_a_list_that_is_cut_warns_how_many_there_are_and_one_that_fits_does_not():
    ctx = context_of(Arranged())
    assert ctx.page([1, 2], 2) == [1, 2]
    assert warnings(ctx) == []
    assert ctx.page([1, 2, 3], 2) == [1, 2]
    assert ctx.page_from("abcd", 2, "a", str, "data.letters") == (["b", "c"], 4, "c")
    assert warnings(ctx) == [("data", "truncated", None), ("data.letters", "truncated", None)]
    assert told(ctx) == ["2 of 3 are listed.", "2 of 4 are listed."]


async def test_a_warning_says_in_a_sentence_which_source_gave_nothing_and_which_are_used():
    async def both(reading):
        return await reading.read(C) + await reading.read(B)

    ctx = context_of(Arranged(B=2, C=3))
    assert await ctx.first("data", via(A), both) == 5
    assert told(ctx) == ["Test.A gave nothing (http_503); Test.B, Test.C is used."]
    ctx = context_of(Arranged())
    await ctx.section("data", via(A), via(B))
    assert told(ctx) == ["No source answered (Test.A: http_503: arranged; Test.B: http_503: arranged)."]


async def test_a_fallback_that_is_itself_stale_stays_stale_and_its_reason_is_not_endless():
    long = number_source("Test." + "x" * 200)
    ctx = context_of(Arranged(B=answer(2, age_s=121, latency_ms=None)))
    assert await ctx.first("data", via(long), via(B)) == 2
    (used, _) = ctx.notes.sources
    assert (used.status, used.replaces) == ("stale", long.name)
    assert used.reason == f"http_503: {long.name}"[:120]
    assert [code for _, code, _ in warnings(ctx)] == ["fallback_used", "stale_data"]
    assert told(ctx)[1].endswith("; the value is from 2027-01-15T07:57:59Z.")


async def test_what_a_fallback_could_do_without_stays_a_failure_in_the_sources():
    async def with_luck(reading):
        await reading.attempt(C)
        return await reading.read(B)

    ctx = context_of(Arranged(B=2))
    await ctx.first("data", via(A), with_luck)
    assert sources(ctx) == [
        ("B", "fallback", "http_503: Test.A"),
        ("A", "error", "http_503: arranged"),
        ("C", "error", "http_503: arranged"),
    ]


async def test_a_kept_answer_of_the_second_source_is_used_if_the_first_has_none():
    reader = Arranged()
    reader.kept_answers = {"B": answer(5, age_s=60, latency_ms=None)}
    ctx = context_of(reader)
    assert await ctx.attempt("data", via(A), via(B)) == 5
    assert sources(ctx) == [("B", "stale", "http_503: arranged"), ("A", "error", "http_503: arranged")]
    assert told(ctx) == ["Test.B could not be refreshed (http_503: arranged); the value is from 2027-01-15T07:59:00Z."]


async def test_an_attempt_gives_the_error_itself_and_warns():
    ctx = context_of(Arranged())
    assert isinstance(await ctx.attempt("data", via(A)), SourceDown)
    assert warnings(ctx) == [("data", "section_unavailable", "Test.A")]


async def test_only_if_every_source_is_barred_is_the_licence_why():
    ctx = context_of(Arranged(A=SourceExcluded("no")))
    await ctx.section("data", via(A), via(B))
    assert warnings(ctx) == [("data", "section_unavailable", "Test.A")]


@pytest.mark.parametrize(("given", "after_s"), [({}, 2.5), ({"hedge_after_s": 7}, 7)])
async def test_the_next_source_is_asked_after_two_and_a_half_seconds_unless_it_is_told_otherwise(given, after_s):
    reader = Arranged(A=1, B=2)
    reader.takes_s = {"A": 60}
    began = anyio.current_time()
    ctx = context_of(reader, **given)
    assert await ctx.first("data", via(A), via(B)) == 2
    assert anyio.current_time() - began == pytest.approx(after_s, abs=0.01)
    assert sources(ctx) == [("B", "fallback", "timeout: Test.A"), ("A", "error", "timeout: overtaken")]


async def test_without_a_limit_a_context_waits_for_as_long_as_its_source_takes():
    reader = Arranged(A=1)
    reader.takes_s = {"A": 10_000}
    assert await context_of(reader).read(A) == 1


async def test_a_tool_has_its_own_history_or_the_one_that_it_is_given():
    kept = TimeSeriesStore()
    assert context_of(Arranged()).history.keys("x") == []
    assert context_of(Arranged(), surroundings=Surroundings(history=kept)).history is kept
    assert context_of(Arranged(), surroundings=Surroundings("the service")).host == "the service"


async def test_a_section_that_answers_is_its_value_and_needs_no_warning():
    ctx = context_of(Arranged(A=1))
    assert (await ctx.section("data", via(A)), await ctx.attempt("more", via(A))) == (1, 1)
    assert warnings(ctx) == []


async def test_what_an_optional_source_lacked_stays_a_failure_when_the_rest_is_kept():
    async def with_luck(reading):
        await reading.attempt(C)
        return await reading.read(B)

    reader = Arranged()
    reader.kept_answers = {"B": answer(5, age_s=60, latency_ms=None)}
    ctx = context_of(reader)
    assert await ctx.first("data", with_luck) == 5
    assert sources(ctx) == [("B", "stale", "http_503: arranged"), ("C", "error", "empty: nothing kept")]
