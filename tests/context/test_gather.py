"""Sources of one fallback asked at once: who failed is who is blamed, and who hangs is who was overtaken."""

from datetime import UTC, datetime

import anyio
import pytest

from tests.calls.parts import number_source
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.context.context import Fallback, ToolContext, via
from toolserver.context.fallback import (
    FallbackReader,
    convert_fallback,
    delay_second,
    limit_time,
    read_all,
    read_any,
    read_beside,
)
from toolserver.upstream.source import SourceAnswer, SourceDown, SourceError

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ONE, TWO, THREE = (number_source(f"Test.{name}") for name in ("one", "two", "three"))


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


class Late:
    """A desk that answers after so many seconds, or fails then."""

    def __init__(self, **takes: float) -> None:
        self.takes, self.asked = takes, list[str]()

    async def fresh(self, source, query, *, sla_s):
        name = source.name.removeprefix("Test.")
        self.asked.append(name)
        seconds = self.takes[name]
        await anyio.sleep(abs(seconds))
        if seconds < 0:
            raise SourceDown("arranged", word="http_503")
        return SourceAnswer(name, AT, None, None, latency_ms=1)

    async def kept(self, source, query):
        return None


def context(desk: Late) -> ToolContext:
    return ToolContext(desk, now=lambda: AT, sla_s=60)


def fallback(gather) -> Fallback:
    async def run(reading):
        return await gather(reading, (ONE, None), (TWO, None))

    return run


def said(ctx: ToolContext) -> dict[str, str]:
    return {note.source.name: note.reason or note.status for note in ctx.notes.sources}


async def test_both_are_asked_at_once():
    began = anyio.current_time()
    found = await context(Late(one=1, two=2)).first("data", fallback(read_all))
    assert found == ("one", "two")
    assert anyio.current_time() - began == pytest.approx(2)


async def test_the_first_failure_ends_it_and_is_the_one_that_is_named():
    ctx, began = context(Late(one=9, two=-1, three=0)), anyio.current_time()
    assert await ctx.first("data", fallback(read_all), via(THREE)) == "three"
    assert anyio.current_time() - began == pytest.approx(1)
    assert said(ctx) == {"Test.two": "http_503: arranged", "Test.three": "http_503: Test.two"}


async def test_who_hangs_is_who_was_overtaken():
    for hanging, other in (("one", "two"), ("two", "one")):
        ctx = context(Late(**{hanging: 60, other: 1, "three": 1}))
        assert await ctx.first("data", fallback(read_all), via(THREE)) == "three"
        assert said(ctx)[f"Test.{hanging}"] == "timeout: overtaken"
        assert f"Test.{other}" not in said(ctx)


async def test_an_answer_and_its_proof_are_asked_at_once_and_the_proof_may_fail():
    for proof_takes_s, noted in ((2, "live"), (-2, "http_503: arranged")):
        ctx, began = context(Late(one=1, two=proof_takes_s)), anyio.current_time()
        value, proof = await ctx.first("data", fallback(read_beside))
        assert value == "one"
        assert proof.reason == noted if isinstance(proof, SourceError) else proof == "two"
        assert isinstance(proof, SourceError) == (proof_takes_s < 0)
        assert anyio.current_time() - began == pytest.approx(2)
        assert said(ctx) == {"Test.one": "live", "Test.two": noted}


async def test_without_an_answer_its_proof_is_not_waited_for():
    ctx, began = context(Late(one=-1, two=9, three=0)), anyio.current_time()
    assert await ctx.first("data", fallback(read_beside), via(THREE)) == "three"
    assert anyio.current_time() - began == pytest.approx(1)
    assert said(ctx) == {"Test.one": "http_503: arranged", "Test.three": "http_503: Test.one"}


async def test_one_of_two_is_enough_where_either_will_do():
    ctx = context(Late(one=-1, two=2))
    assert await ctx.first("data", fallback(read_any)) == (None, "two")
    assert said(ctx) == {"Test.one": "http_503: arranged", "Test.two": "live"}
    with pytest.raises(SourceError):
        await context(Late(one=-1, two=-2)).first("data", fallback(read_any))


async def test_the_second_source_is_not_asked_when_the_first_has_answered_late():
    desk = Late(one=4, two=0)
    assert await context(desk).first("data", *delay_second(via(ONE), via(TWO), 3)) == "one"
    assert desk.asked == ["one"]


@pytest.mark.parametrize(("takes", "after_s"), [(-4, 4), (60, 5.5)])
async def test_it_is_asked_once_the_first_has_failed_or_kept_it_waiting_for_long(takes, after_s):
    desk, began = Late(one=takes, two=0), anyio.current_time()
    assert await context(desk).first("data", *delay_second(via(ONE), via(TWO), 3)) == "two"
    assert anyio.current_time() - began == pytest.approx(after_s)


@pytest.fixture
def reading():
    """A reading of a desk at which the first source takes a minute and the second half a second."""
    return FallbackReader(Late(one=60, two=0.5, three=0.2), "data", lambda: AT, 60)


async def test_a_section_has_nine_seconds_for_all_its_fallbacks_and_then_each_a_moment_for_what_is_kept(reading):
    began = anyio.current_time()
    first, second, third = limit_time((via(ONE), via(TWO), via(THREE)))
    with pytest.raises(SourceDown) as caught:
        await first(reading)
    assert (caught.value.word, anyio.current_time() - began) == ("timeout", pytest.approx(9))
    with pytest.raises(SourceDown):
        await second(reading)
    assert anyio.current_time() - began == pytest.approx(9.3)
    assert await third(reading) == "three"


async def test_a_limit_counts_from_when_it_is_set_and_hinders_nobody_who_keeps_it(reading):
    (limited,) = limit_time((via(TWO),), seconds=0.6)
    assert await limited(reading) == "two"


async def test_a_value_is_converted_after_it_was_read(reading):
    assert await convert_fallback(via(TWO), str.upper)(reading) == "TWO"


async def test_if_all_fail_the_first_of_the_questions_is_the_one_that_is_blamed():
    ctx = context(Late(one=-2, two=-1))
    with pytest.raises(SourceError):
        await ctx.first("data", fallback(read_any))
    assert said(ctx) == {"Test.one": "http_503: arranged"}


async def test_whatever_either_of_two_says_both_are_waited_for():
    ctx, began = context(Late(one=-3, two=1)), anyio.current_time()
    assert await ctx.first("data", fallback(read_any)) == (None, "two")
    assert anyio.current_time() - began == pytest.approx(3)


async def test_after_an_answer_and_its_proof_it_is_the_answers_source_that_is_blamed_for_what_follows():
    async def judged(reading):
        await read_beside(reading, (ONE, None), (TWO, None))
        raise SourceDown("the answer is of no use", word="empty")

    ctx = context(Late(one=1, two=-2, three=0))
    assert await ctx.first("data", judged, via(THREE)) == "three"
    assert said(ctx) == {"Test.one": "empty: the answer is of no use", "Test.three": "empty: Test.one"}


async def test_the_second_source_is_asked_at_once_if_the_first_has_already_failed():
    desk, began = Late(one=-1, two=0), anyio.current_time()
    assert await context(desk).first("data", *delay_second(via(ONE), via(TWO), 3)) == "two"
    assert anyio.current_time() - began == pytest.approx(1)
