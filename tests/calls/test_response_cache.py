"""The cache of rendered answers: its bounds, and what a result or a failure is rendered as."""

import anyio
import httpx
import msgspec
import pytest
from pydantic import BaseModel

from tests.calls.parts import engine
from tests.calls.stored_answers import Disk, Packed
from tests.calls.toy import FIRST, REGISTRY, SECOND, Reading
from tests.requirements import proves
from toolserver.calls import response_cache
from toolserver.calls.arguments import build_cache_key
from toolserver.calls.response_cache import POPULAR, RETRY_S, AnswerTable, SchemaFailure, StoredResponses
from toolserver.context.context import ToolContext
from toolserver.registry.registry import operation_of, tool
from toolserver.upstream.host_lane import RequestWithheld

NUMBER, LIAR, BROKEN = REGISTRY["number"], REGISTRY["liar"], REGISTRY["broken"]


def arguments(**given) -> BaseModel:
    return NUMBER.arguments(**given)


async def test_an_answer_is_found_until_it_expires():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        key = build_cache_key(NUMBER, arguments())
        rendered = await e.answers.get(NUMBER, arguments(), key)

        assert e.answers.find(key, rendered.expires_at - 0.001) is rendered
        assert e.answers.find(key, rendered.expires_at) is None
        assert e.answers.find(("number", 99), rendered.generated_at) is None


async def test_an_answer_is_made_anew_ahead_only_when_it_is_popular_and_about_to_expire():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        key = build_cache_key(NUMBER, arguments())
        rendered = await e.answers.get(NUMBER, arguments(), key)
        late = rendered.ahead_at + 0.001

        assert not e.answers.needs_refresh(rendered, late)
        for _ in range(POPULAR):
            e.answers.find(key, rendered.generated_at)
        assert e.answers.needs_refresh(rendered, late)
        assert not e.answers.needs_refresh(rendered, rendered.ahead_at)
        rendered.next = rendered
        assert not e.answers.needs_refresh(rendered, late)


async def test_the_next_answer_takes_over_when_the_first_expires():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        key = build_cache_key(NUMBER, arguments())
        first = await e.answers.get(NUMBER, arguments(), key)
        e.clock.advance(20)
        e.internet.serves(FIRST, {"value": 4})
        e.answers.refresh(NUMBER)
        await anyio.wait_all_tasks_blocked()

        assert first.next is not None
        assert e.answers.find(key, e.clock.time()) is first
        assert e.answers.find(key, first.expires_at) is first.next


async def test_beyond_the_bound_the_first_made_is_forgotten():
    async with engine(REGISTRY) as e:
        e.answers.table = AnswerTable(entries=3)
        e.internet.serves(FIRST, {"value": 3})
        for add in range(1, 5):
            await e.answers.get(NUMBER, arguments(add=add), ("number", add))
        found = [e.answers.find(("number", add), e.clock.time()) is not None for add in range(1, 5)]

    assert found == [False, True, True, True]


async def test_the_answer_to_default_arguments_is_not_forgotten_for_those_that_callers_choose():
    async with engine(REGISTRY) as e:
        e.answers.table = AnswerTable(entries=3)
        e.internet.serves(FIRST, {"value": 3})
        for add in range(10):
            await e.answers.get(NUMBER, arguments(add=add), ("number", add))
        found = [e.answers.find(("number", add), e.clock.time()) is not None for add in range(10)]

    assert found == [True, *[False] * 7, True, True]


async def test_a_result_that_breaks_the_schema_is_not_an_answer():
    async with engine(REGISTRY) as e:
        with pytest.raises(SchemaFailure):
            await e.answers.compose(LIAR, LIAR.arguments())


async def test_a_fault_in_a_tool_without_sources_is_raised():
    async with engine(REGISTRY) as e:
        with pytest.raises(RuntimeError):
            await e.answers.compose(BROKEN, BROKEN.arguments())


async def test_an_answer_without_anything_in_it_is_tried_again_soon():
    async with engine(REGISTRY) as e:
        rendered = await e.answers.compose(NUMBER, arguments())
        body = msgspec.json.decode(rendered.payload)

        assert (rendered.nothing, rendered.stale) == (True, True)
        assert rendered.expires_at == e.clock.time() + RETRY_S
        assert (body["data"], body["stale"], body["warning"][0]["code"]) == (None, True, "section_unavailable")


@proves("answers.degraded")
async def test_an_answer_of_which_a_part_is_missing_is_composed_again_within_thirty_seconds():
    report = REGISTRY["premium_report"]
    lives = {}
    for missing in ((), (SECOND,)):
        async with engine(REGISTRY) as e:
            for url in {FIRST, SECOND} - set(missing):
                e.internet.serves(url, {"value": 3})
            rendered = await e.answers.compose(report, report.arguments())
            lives[missing] = rendered.expires_at - e.clock.time()

    assert lives == {(): report.longest_ttl, (SECOND,): 30}
    assert report.longest_ttl > 30


async def test_an_answer_of_a_free_and_of_a_premium_tool_have_their_own_members():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 1})
        e.internet.serves(SECOND, {"value": 2})
        free = msgspec.json.decode((await e.answers.compose(NUMBER, arguments())).payload)
        report = REGISTRY["premium_report"]
        sold = msgspec.json.decode((await e.answers.compose(report, report.arguments())).payload)

    assert list(free) == ["source", "endpoint", "updated_at", "data", "stale", "_meta"]
    assert list(sold)[:3] == ["source", "endpoint", "generated_at"]
    assert list(sold)[-3:] == ["captured_at", "stale", "_meta"]
    assert (free["source"], sold["source"]) == ("data.example", "toolserver-pro")


async def test_an_answer_survives_on_disk_and_a_stale_one_is_not_stored():
    disk = Disk()
    async with engine(REGISTRY) as e:
        e.answers._stored = StoredResponses("", disk=disk, pack=Packed)
        await e.answers.get(NUMBER, arguments(), ("number", 0))
        assert disk.kept == {}
        e.internet.serves(FIRST, {"value": 3})
        e.clock.advance(RETRY_S)
        first = await e.answers.get(NUMBER, arguments(), ("number", 0))
        e.internet.serves(FIRST, httpx.Response(500))
        e.clock.advance(600)
        stale = await e.answers.get(NUMBER, arguments(add=1), ("number", 1))
        assert (stale.stale, stale.nothing, len(disk.kept)) == (True, False, 1)
    async with engine(REGISTRY) as e:
        e.answers._stored = StoredResponses("", disk=disk, pack=Packed)
        again = await e.answers.get(NUMBER, arguments(), ("number", 0))

        assert (again.payload, again.etag, again.expires_at) == (first.payload, first.etag, first.expires_at)
        assert e.internet.asked == []


class SlowTool:
    """A tool of which composing takes so long. All times are seconds since the first call."""

    def __init__(self, e, took_s: float) -> None:
        self.engine, self.key, self.took_s = e, build_cache_key(NUMBER, arguments()), took_s
        self._begun = e.clock.monotonic()
        e.internet.serves(FIRST, self._answer)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        self.engine.clock.advance(self.took_s)
        return httpx.Response(200, json={"value": 3})

    def wait(self, until_s: float) -> None:
        self.engine.clock.advance(self._begun + until_s - self.engine.clock.monotonic())

    async def called(self, *at_s: float, **chosen: int) -> None:
        for each in at_s:
            self.wait(each)
            given = arguments(**chosen)
            await self.engine.answers.get(NUMBER, given, build_cache_key(NUMBER, given))

    async def prepared(self, at_s: float) -> int:
        """How often the source is asked when what is expected then is prepared."""
        self.wait(at_s)
        asked = len(self.engine.internet.asked)
        self.engine.answers.prepare_expected()
        await anyio.wait_all_tasks_blocked()
        return len(self.engine.internet.asked) - asked


@pytest.mark.parametrize(("took_s", "times"), [(2, 1), (1, 0)])
async def test_a_slow_answer_that_is_called_for_at_a_steady_pace_is_at_hand_when_it_is_expected(took_s, times):
    async with engine(REGISTRY) as e:
        slow = SlowTool(e, took_s)
        await slow.called(0, 3600)
        assert [await slow.prepared(at) for at in (7180, 7190, 7195)] == [0, times, 0]
        slow.wait(7200)
        assert (e.answers.find(slow.key, e.clock.time()) is not None) is bool(times)


async def test_an_answer_that_is_not_whole_is_prepared_again():
    async with engine(REGISTRY) as e:
        slow = SlowTool(e, 2)
        await slow.called(0, 3600)
        e.internet.serves(FIRST, httpx.Response(404))
        assert await slow.prepared(7186) >= 2  # the second source, which is down, is asked too
        e.internet.serves(FIRST, {"value": 3})
        assert await slow.prepared(7199) == 1
        slow.wait(7200)
        assert not e.answers.find(slow.key, e.clock.time()).stale


async def test_an_answer_that_lives_until_the_expected_call_is_not_prepared():
    async with engine(REGISTRY) as e:
        slow = SlowTool(e, 2)
        await slow.called(0, 3600)
        slow.wait(7184)
        e.answers.refresh(NUMBER)
        await anyio.wait_all_tasks_blocked()
        await slow.prepared(7190)
        found = e.answers.find(slow.key, e.clock.time())
        assert found is not None
        assert found.next is None


async def test_a_slow_answer_to_arguments_that_a_caller_chose_is_not_prepared():
    async with engine(REGISTRY) as e:
        slow = SlowTool(e, 2)
        await slow.called(0, 3600, add=2)
        assert await slow.prepared(7190) == 0


async def test_an_answer_of_which_our_own_pacing_held_a_source_back_is_slow_though_it_came_at_once():
    async with engine(REGISTRY) as e:
        slow = SlowTool(e, 0)
        e.internet.serves(SECOND, {"value": 4})
        withheld = RequestWithheld("its turn is some seconds away")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(e.reader, "fetch", failing_for("Test.one", withheld, e.reader.fetch))
            await slow.called(0, 3600)
        assert await slow.prepared(7190) == 1


def failing_for(name, error, fetch):
    """`Fetcher.fetch`, which fails for one source."""

    async def fetched(source, *given, **how):
        if source.name == name:
            raise error
        return await fetch(source, *given, **how)

    return fetched


async def test_a_look_shows_the_newest_answer_that_holds_expired_or_not():
    async with engine(REGISTRY) as e:
        e.internet.serves(FIRST, {"value": 3})
        key = build_cache_key(NUMBER, arguments())
        assert e.answers.find_newest(key) is None
        first = await e.answers.get(NUMBER, arguments(), key)
        e.clock.advance(29)
        e.answers.refresh(NUMBER)
        await anyio.wait_all_tasks_blocked()
        assert e.answers.find_newest(key) is first
        e.clock.advance(1)
        assert e.answers.find_newest(key) is first.next is not None
        first.next = None
        assert e.answers.find_newest(key) is first
        assert first.hits == 0


RUNS = []


@tool(path="/api/endless", title="Endless", ttl_s=30, deadline_s=4)
async def endless(ctx: ToolContext) -> Reading:
    """Never ends in time and has no source, so that nothing is kept to make it from; for tests only."""
    RUNS.append(ctx)
    raise TimeoutError


async def test_a_tool_without_sources_that_does_not_end_in_time_is_not_run_again():
    RUNS.clear()
    operation = operation_of(endless)
    async with engine(REGISTRY) as e:
        rendered = await e.answers.compose(operation, operation.arguments())
    body = msgspec.json.decode(rendered.payload)

    assert len(RUNS) == 1
    assert (rendered.nothing, body["data"], body["warning"][0]["code"]) == (True, None, "section_unavailable")
    assert "not composed within 4 s" in body["warning"][0]["message"]


def test_the_times_of_the_cache_are_what_callers_were_told():
    names = ("POPULAR", "LAST_S", "PATIENCE", "DEGRADED_S", "RETRY_S", "LARGE")
    assert [getattr(response_cache, name) for name in names] == [2, 8, 0.75, 30, 10, 65_536]
