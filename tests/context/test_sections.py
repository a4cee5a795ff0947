"""Sections read side by side: by name, each alone, and none so slow that it costs the others."""

import anyio
import pytest

from tests.calls.parts import number_source
from tests.tools.desk import NOW, SimDesk
from tests.tools.faulty.skipping import SkippingLoop
from toolserver.context.context import FallbackReader, ToolContext, read_sections
from toolserver.context.fallback import convert_fallback, limit_time
from toolserver.upstream.source import SourceDown, SourceEmpty, SourceError
from toolserver.world.model import World

SOURCE = number_source("Test.slow")


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture
def ctx():
    world = World(1, NOW)
    return ToolContext(SimDesk(world), now=lambda: world.time, sla_s=60, hedge_after_s=0.01)


def gives(value):
    async def fallback(reading: FallbackReader):
        return value

    return fallback


def fails(error):
    async def fallback(reading: FallbackReader):
        reading.asked = SOURCE
        raise error

    return fallback


async def hangs(reading: FallbackReader):
    reading.asked = SOURCE
    await anyio.Event().wait()


async def test_values_are_known_by_name_and_a_failure_is_none_and_warned_of(ctx):
    found = await read_sections(ctx, {"a": (gives(1),), "b": (fails(SourceEmpty("x")),), "c": (gives(0),)})

    assert (found.get("a", str), found.get("b", str), found.get("c", str)) == ("1", None, "0")
    assert found.get("never asked for", str) is None
    assert [(w.section, w.code) for w in ctx.notes.warnings] == [("b", "section_unavailable")]
    found.require_any()


async def test_when_every_section_fails_the_first_ones_error_is_raised(ctx):
    found = await read_sections(ctx, {"a": (fails(SourceEmpty("a")),), "b": (fails(SourceDown("b")),)})

    with pytest.raises(SourceEmpty, match="a"):
        found.require_any()


async def test_a_section_may_be_read_in_another_way(ctx):
    async def lost():
        raise SourceDown("x")

    async def fine():
        return 7

    found = await read_sections(ctx, {"a": (fails(SourceEmpty("x")),)}, {"b": lost, "c": fine})
    assert (found.get("b", int), found.get("c", int)) == (None, 7)
    found.require_any()


async def test_a_chain_that_hangs_gives_up_in_time_and_the_others_are_not_kept_waiting(ctx):
    with anyio.fail_after(5):
        with pytest.raises(SourceError) as caught:
            await ctx.first("a", *limit_time((hangs, hangs, hangs), seconds=0.05))
        assert await ctx.first("b", *limit_time((hangs, gives(2)), seconds=0.05)) == 2
    assert caught.value.word == "timeout"


async def test_what_is_at_hand_is_still_taken_when_the_time_is_up(ctx):
    fallbacks = limit_time((gives(3),), seconds=-1)

    assert (
        await fallbacks[0](FallbackReader(SimDesk(World(1, NOW)), "a", lambda: World(1, NOW).time, 60, kept_only=True))
        == 3
    )


async def test_a_value_may_be_turned_into_another_and_a_failure_of_that_is_one_of_the_source(ctx):
    def short(text):
        if len(text) > 2:
            raise ValueError("too long")
        return text.upper()

    fallbacks = (convert_fallback(gives("abc"), short), convert_fallback(gives("de"), short))
    assert await ctx.first("a", *fallbacks) == "DE"


async def test_sections_stand_in_the_order_asked_for_whichever_fails_first(ctx):
    async def late():
        await anyio.sleep(1)
        raise SourceDown("late")

    found = await read_sections(ctx, {"a": (fails(SourceEmpty("soon")),)}, {"b": late})
    with pytest.raises(SourceEmpty):
        found.require_any()
    found = await read_sections(ctx, {}, {"b": late, "a": lambda: fails(SourceEmpty("soon"))(ctx)})
    with pytest.raises(SourceDown):
        found.require_any()


async def test_sections_are_read_at_once_and_a_slow_one_costs_nine_seconds_and_a_moment(ctx):
    async def slow():
        await anyio.sleep(5)
        return 5

    began = anyio.current_time()
    found = await read_sections(ctx, {"a": (hangs,), "b": (gives(2),)}, {"c": slow})
    assert anyio.current_time() - began == pytest.approx(9.3, abs=0.1)
    assert [found.get(name, int) for name in "abc"] == [None, 2, 5]


async def test_where_nothing_was_asked_for_nothing_is_missing(ctx):
    (await read_sections(ctx, {})).require_any()
