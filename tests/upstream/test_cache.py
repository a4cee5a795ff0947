"""Reading sources: fresh, shared, refreshed ahead, stale and kept on disk."""

import itertools
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

import anyio
import httpx
import pytest

from tests.calls import parts
from tests.calls.parts import START, Number, number_source
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.settings import ScalingSettings, SourceSettings
from toolserver.upstream.cache import (
    ENTRIES,
    ENTRIES_FROM_USERS,
    ROOM_FROM_USERS,
    CachedAnswer,
    NotShared,
    SourceCache,
    measure_room,
)
from toolserver.upstream.fan_out import FanOut
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.member_watch import MemberWatch
from toolserver.upstream.outlier_guard import EVERY_S, LEAST
from toolserver.upstream.source import (
    Gauge,
    Get,
    HostGroup,
    NoStore,
    SourceAnswer,
    SourceChanged,
    SourceDown,
    SourceError,
    SourceFrozen,
    SourceImplausible,
    SourceLimited,
    SourceRefused,
    SourceUnproved,
    StoredBody,
)

SOURCE = number_source()
URL = "https://test.example/Test.number"


PREFIXES = (f"cache{number}:" for number in itertools.count())
PLACE = {}


@pytest.fixture(autouse=True, params=["memory", pytest.param("redis")])
def place(request):
    """Every test runs twice: each instance for itself, and with what instances share in Redis."""
    PLACE.clear()
    if request.param == "redis":
        scaling = ScalingSettings(redis_prefix=next(PREFIXES), redis_deadline_s=5)
        PLACE.update(redis_url=request.getfixturevalue("redis_server").url, scaling=scaling)


own_time = pytest.mark.parametrize("place", ["memory"], indirect=True)
"""For a test that counts on what takes no time: test_shared_fetch and test_shared_lanes show the same over Redis."""


def engine(**given):
    """An engine, in the place where this run of a test has it."""
    return parts.engine(**(PLACE | given))


class DictStore(NoStore):
    """A disk in a dict."""

    def __init__(self):
        self.kept: dict[tuple[str, str], StoredBody] = {}

    async def load(self, source, key):
        return self.kept.get((source, key))

    def save(self, source, key, stored, *, keep_s):
        self.kept[source, key] = stored


@asynccontextmanager
async def engine_on(disk, *, keys=None, **given):
    """An engine whose cache of sources stores its bodies on this disk."""
    async with engine(sources=SourceSettings(keys=keys or {}), **given) as e:
        shared = e.cache._shared
        yield replace(e, cache=SourceCache(e.reader, clock=e.clock, tasks=e.tasks, store=disk, shared=shared))


async def test_an_answer_is_asked_for_once_while_it_is_fresh():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        first = await e.cache.fresh(SOURCE, None, sla_s=30)
        e.clock.advance(20)
        again = await e.cache.fresh(SOURCE, None, sla_s=30)

        assert (first.value.value, again.value.value) == (1, 1)
        assert (first.latency_ms is not None, again.latency_ms) == (True, None)
        assert len(e.internet.asked) == 1


@proves("answers.single-flight")
async def test_a_thousand_cold_reads_make_one_request():
    async with engine() as e:
        gate = anyio.Event()

        async def slow(request):
            await gate.wait()
            return httpx.Response(200, json={"value": 7})

        e.internet.serves(URL, slow)
        seen = []

        async def read():
            seen.append((await e.cache.fresh(SOURCE, None, sla_s=30)).value.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            gate.set()

        assert seen == [7] * 1000
        assert len(e.internet.asked) == 1


async def test_a_reader_who_hangs_up_does_not_stop_the_fetch_for_the_others():
    async with engine() as e:
        gate = anyio.Event()

        async def slow(request):
            await gate.wait()
            return httpx.Response(200, json={"value": 7})

        e.internet.serves(URL, slow)
        with anyio.move_on_after(0.01):
            await e.cache.fresh(SOURCE, None, sla_s=30)
        gate.set()
        assert (await e.cache.fresh(SOURCE, None, sla_s=30)).value.value == 7
        assert len(e.internet.asked) == 1


@own_time
async def test_an_old_answer_is_refreshed_ahead_and_given_at_once():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        await e.cache.fresh(SOURCE, None, sla_s=30)
        e.internet.serves(URL, {"value": 2})
        e.clock.advance(25)

        at_once = await e.cache.fresh(SOURCE, None, sla_s=30)
        await anyio.wait_all_tasks_blocked()
        after = await e.cache.fresh(SOURCE, None, sla_s=30)

        assert (at_once.value.value, after.value.value) == (1, 2)


@own_time
async def test_a_host_that_allows_no_more_than_each_answer_needs_gets_no_request_ahead():
    """One request each half a minute: with requests ahead of time, the budget of an hour would be used up early."""
    source = replace(SOURCE, hosts=HostGroup("scarce", 1, 0, 120, 3600))
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        for _ in range(700):
            answer = await e.cache.fresh(source, None, sla_s=30)
            assert answer.failure is None
            await anyio.wait_all_tasks_blocked()
            e.clock.advance(5)
        assert len(e.internet.asked) == 100


@own_time
async def test_who_joins_a_refresh_ahead_that_fails_is_told_of_its_failure():
    entered, leave = anyio.Event(), anyio.Event()

    async def fails_later(request):
        entered.set()
        await leave.wait()
        return httpx.Response(500)

    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        await e.cache.fresh(SOURCE, None, sla_s=30)
        e.internet.serves(URL, fails_later)
        e.clock.advance(25)
        assert (await e.cache.fresh(SOURCE, None, sla_s=30)).value.value == 1
        await entered.wait()
        e.clock.advance(60)  # the answer grows too old while it is refreshed
        told = []

        async def ask(sla_s):
            try:
                told.append((await e.cache.fresh(SOURCE, None, sla_s=sla_s)).failure)
            except SourceError as error:
                told.append(type(error))

        async with anyio.create_task_group() as tasks:
            for sla_s in (30, 300):
                tasks.start_soon(ask, sla_s)
            await anyio.wait_all_tasks_blocked()
            leave.set()
        assert set(told) == {SourceDown, "http_500"}


async def test_a_failed_refresh_within_the_sla_gives_the_older_answer_and_says_why():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        await e.cache.fresh(SOURCE, None, sla_s=120)
        e.internet.serves(URL, httpx.Response(500))
        e.clock.advance(60)

        found = await e.cache.fresh(SOURCE, None, sla_s=120)
        assert (found.value.value, found.failure) == (1, "http_500")
        with pytest.raises(SourceDown):
            await e.cache.fresh(SOURCE, None, sla_s=30)


@proves("answers.keep-limit")
async def test_what_is_kept_outlives_its_freshness_but_not_the_keep_limit():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        await e.cache.fresh(SOURCE, None, sla_s=30)

        e.clock.advance(3600)
        assert (await e.cache.kept(SOURCE, None)).value.value == 1
        e.clock.advance(60)
        assert await e.cache.kept(SOURCE, None) is None


@proves("answers.stale-survives-restart")
async def test_a_good_body_survives_a_restart_and_is_parsed_anew():
    disk = DictStore()
    async with engine_on(disk) as e:
        e.internet.serves(URL, {"value": 5})
        await e.cache.fresh(SOURCE, None, sla_s=30)
        later = e.clock
    later.advance(600)
    async with engine_on(disk, clock=later) as e:
        with pytest.raises(SourceDown):
            await e.cache.fresh(SOURCE, None, sla_s=30)
        assert (await e.cache.kept(SOURCE, None)).value.value == 5


async def test_not_modified_renews_the_answer_without_a_body():
    source = number_source(conditional=True)
    async with engine() as e:

        async def upstream(request):
            if request.headers.get("if-none-match") == '"a"':
                return httpx.Response(304)
            return httpx.Response(200, json={"value": 1}, headers={"etag": '"a"'})

        e.internet.serves(URL, upstream)
        first = await e.cache.fresh(source, None, sla_s=30)
        e.clock.advance(31)
        second = await e.cache.fresh(source, None, sla_s=30)

        assert second.value == first.value
        assert second.fetched_at > first.fetched_at
        assert len(e.internet.asked) == 2


class Priced(NamedTuple):
    price: float | None


def priced(**more):
    """A source of rows with a price, which a body may lack."""
    source = number_source(**more)
    return replace(source, parse=lambda body, query: tuple(Priced(row.get("price")) for row in body["rows"]))


def rows_of(count, **row):
    return {"rows": [row] * count}


@proves("answers.member-missing")
async def test_an_answer_names_what_its_source_no_longer_gives_and_also_one_that_is_not_modified():
    source, chosen = priced(conditional=True), priced(user_input=True)
    async with engine() as e:

        async def upstream(request):
            if request.headers.get("if-none-match") == '"a"':
                return httpx.Response(304)
            return httpx.Response(200, json=rows_of(3), headers={"etag": '"a"'})

        e.internet.serves(URL, rows_of(30, price=1))
        assert (await e.cache.fresh(source, None, sla_s=30)).missing == ()
        e.internet.serves(URL, upstream)
        for _ in range(2):
            e.clock.advance(31)
            assert (await e.cache.fresh(source, None, sla_s=30)).missing == ("price",)
        assert (await e.cache.kept(source, None)).missing == ("price",)
        e.internet.serves(f"{URL}/1", rows_of(3))
        assert (await e.cache.fresh(chosen, 1, sla_s=30, is_chosen=True)).missing == ("price",)


async def test_what_callers_ask_for_says_nothing_about_what_is_usual():
    source = priced(user_input=True)
    async with engine() as e:
        e.internet.serves(f"{URL}/1", rows_of(30, price=1))
        await e.cache.fresh(source, 1, sla_s=30, is_chosen=True)
        e.clock.advance(31)
        e.internet.serves(f"{URL}/1", rows_of(30))
        assert (await e.cache.fresh(source, 1, sla_s=30, is_chosen=True)).missing == ()


@own_time
async def test_a_stored_answer_names_what_its_source_no_longer_gave():
    source, disk, saved = priced(), DictStore(), {}
    watch = MemberWatch(lambda source, key, at, members: saved.update({key: (source, key, at, members)}))
    async with engine_on(disk) as e:
        e.cache.member_watch = watch
        for count, row in ((30, {"price": 1}), (3, {})):
            e.internet.serves(URL, rows_of(count, **row))
            await e.cache.fresh(source, None, sla_s=30)
            e.clock.advance(31)
    async with engine_on(disk) as e:
        e.clock.advance(62)
        e.cache.member_watch.restore(saved.values())
        assert (await e.cache.kept(source, None)).missing == ("price",)


@proves("answers.never-invented")
@pytest.mark.parametrize(
    ("response", "error"),
    [
        (httpx.Response(200, text="<!doctype html><title>Just a moment"), SourceChanged),
        (httpx.Response(200, content=b'{"value": 1'), SourceChanged),
        (httpx.Response(200, content=b""), SourceChanged),
        (httpx.Response(200, content=b'{"value": NaN}'), SourceChanged),
        (httpx.Response(200, content=b"[" * 100_000), SourceChanged),
        (httpx.Response(200, content=b"\xff\xfe\x00"), SourceChanged),
        (httpx.Response(200, json={"other": 1}), SourceChanged),
        (httpx.Response(404), SourceChanged),
        (httpx.Response(403), SourceRefused),
        (httpx.Response(429, headers={"retry-after": "120"}), SourceLimited),
        (httpx.Response(500), SourceDown),
        (httpx.Response(302, headers={"location": "https://evil.example/x"}), SourceChanged),
        (httpx.Response(302, headers={"location": "http://test.example/x"}), SourceChanged),
        (httpx.ConnectError("no"), SourceDown),
    ],
)
async def test_nothing_but_a_good_answer_is_a_success(response, error):
    async with engine() as e:
        e.internet.serves(URL, response)
        with pytest.raises(error):
            await e.cache.fresh(SOURCE, None, sla_s=30)
        assert await e.cache.kept(SOURCE, None) is None


async def test_an_answer_whose_newest_item_is_too_old_is_frozen():
    source = number_source(newest=lambda n: n.at, newest_max_s=600)
    async with engine() as e:
        e.internet.serves(URL, {"value": 1, "at": e.clock.time() - 700})
        with pytest.raises(SourceFrozen):
            await e.cache.fresh(source, None, sla_s=30)


async def test_a_value_that_jumps_is_no_answer():
    source = number_source(gauge=Gauge(lambda found: {"value": found.value}, 0.5))
    async with engine() as e:
        for value in (1, 10):
            e.internet.serves(URL, {"value": value})
            if value == 1:
                await e.cache.fresh(source, None, sla_s=0)
                e.clock.advance(31)
                continue
            with pytest.raises(SourceImplausible):
                await e.cache.fresh(source, None, sla_s=0)


async def test_an_answer_of_days_to_come_is_no_answer():
    source = number_source(newest=lambda n: n.at)
    async with engine() as e:
        e.internet.serves(URL, {"value": 1, "at": e.clock.time() + 2 * 86400})
        with pytest.raises(SourceChanged, match="which is in the future"):
            await e.cache.fresh(source, None, sla_s=30)
        e.internet.serves(URL, {"value": 1, "at": e.clock.time() + 3600})
        assert (await e.cache.fresh(source, None, sla_s=30)).value.value == 1


async def test_a_body_over_the_limit_is_refused_and_a_prefix_source_reads_only_its_share():
    small = number_source(max_bytes=64)
    async with engine() as e:
        e.internet.serves(URL, httpx.Response(200, content=b'{"value": 1}' + b" " * 100))
        with pytest.raises(SourceError) as caught:
            await e.cache.fresh(small, None, sla_s=30)
        assert caught.value.word == "too_large"


async def test_three_failures_open_the_circuit_and_one_probe_closes_it():
    async with engine() as e:
        e.internet.serves(URL, httpx.Response(500))
        for _ in range(3):
            with pytest.raises(SourceDown):
                await e.cache.fresh(SOURCE, None, sla_s=30)
        asked = len(e.internet.asked)
        with pytest.raises(SourceDown) as caught:
            await e.cache.fresh(SOURCE, None, sla_s=30)
        assert caught.value.word == "breaker_open"
        assert len(e.internet.asked) == asked

        e.internet.serves(URL, {"value": 3})
        e.clock.advance(31)
        assert (await e.cache.fresh(SOURCE, None, sla_s=30)).value.value == 3


async def test_a_host_that_says_later_is_left_alone_until_then():
    async with engine() as e:
        e.internet.serves(URL, httpx.Response(429, headers={"retry-after": "120"}))
        with pytest.raises(SourceLimited):
            await e.cache.fresh(SOURCE, None, sla_s=30)
        e.internet.serves(URL, {"value": 1})
        e.clock.advance(60)
        with pytest.raises(SourceLimited):
            await e.cache.fresh(SOURCE, None, sla_s=30)
        assert len(e.internet.asked) == 1
        e.clock.advance(61)
        assert (await e.cache.fresh(SOURCE, None, sla_s=30)).value.value == 1


async def test_a_request_over_budget_is_not_sent():
    from toolserver.upstream.source import HostGroup

    source = number_source(hosts=HostGroup("tight", 1, 0, 2, 60), fresh_s=0)
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        for _ in range(2):
            e.clock.advance(1)
            await e.cache.fresh(source, None, sla_s=0)
        e.clock.advance(1)
        with pytest.raises(SourceLimited) as caught:
            await e.cache.fresh(source, None, sla_s=0)
        assert caught.value.word == "budget"
        e.clock.advance(60)
        await e.cache.fresh(source, None, sla_s=0)


async def test_a_quick_server_error_is_retried_once():
    async with engine() as e:
        replies = iter([httpx.Response(503), httpx.Response(200, json={"value": 9})])

        async def flaky(request):
            return next(replies)

        e.internet.serves(URL, flaky)
        assert (await e.cache.fresh(SOURCE, None, sla_s=30)).value.value == 9
        assert len(e.internet.asked) == 2


def keyed(request):
    """A source whose request depends on an API key."""
    return replace(SOURCE, request=request)


def in_path(query, keys):
    return Get(f"https://test.example/{keys['FRED_API_KEY']}/x", decode="text") if "FRED_API_KEY" in keys else None


def another_format(query, keys):
    return Get(URL, headers={"Auth-Key": keys["FRED_API_KEY"]}) if "FRED_API_KEY" in keys else Get(URL, decode="text")


@pytest.mark.parametrize("request_", [in_path, another_format], ids=lambda function: function.__name__)
async def test_a_keyed_source_finds_its_last_good_body_after_a_restart_without_the_key_being_stored(request_):
    def parse(body, query):
        return Number(float((json.loads(body) if request_ is in_path else body)["value"]))

    disk, source, keys = DictStore(), replace(keyed(request_), parse=parse), {"FRED_API_KEY": "k3y-0123456789"}
    async with engine_on(disk, keys=keys) as e:
        e.internet.serves("https://test.example/", {"value": 5})
        await e.cache.fresh(source, None, sla_s=30)
        later = e.clock
    assert len(disk.kept) == 1
    assert "k3y" not in repr(disk.kept)
    later.advance(600)
    async with engine_on(disk, clock=later, keys=keys) as e:
        assert (await e.cache.kept(source, None)).value.value == 5
        assert e.internet.asked == []
    async with engine_on(disk, clock=later) as e:
        assert await e.cache.kept(source, None) is None


async def test_what_a_caller_asks_about_is_never_stored():
    disk = DictStore()
    async with engine_on(disk) as e:
        source = number_source(user_input=True)
        e.internet.serves(URL, {"value": 5})
        await e.cache.fresh(source, "a secret", sla_s=30)
        assert (await e.cache.kept(source, "a secret")).value.value == 5
    assert disk.kept == {}


async def test_sources_of_one_name_share_answers_only_if_they_send_the_same_request():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        e.internet.serves("https://test.example/other", {"value": 2})
        other = replace(SOURCE, request=Get("https://test.example/other"))
        found = [(await e.cache.fresh(each, None, sla_s=30)).value.value for each in (SOURCE, other, number_source())]
        assert (found, len(e.internet.asked)) == ([1, 2, 1], 2)


PLACES = number_source("Test.place", user_input=True, hosts=HostGroup("places", 2, 0, 40, 60))


async def ask(e, query, **how):
    return (await e.cache.fresh(PLACES, query, sla_s=30, **how)).value.value


@proves("limits.chosen-share")
async def test_a_hundred_failing_queries_of_callers_leave_the_circuit_and_the_budget_of_the_default_one():
    async with engine() as e:
        e.internet.serves("https://test.example/Test.place/bad", httpx.Response(500))
        e.internet.serves("https://test.example/Test.place", {"value": 7})
        for number in range(100):
            with pytest.raises(SourceError):
                await ask(e, f"bad{number}", is_chosen=True)
        assert await ask(e, "default") == 7
        assert e.reader.list_budgets()[0].left > 20


async def test_a_query_that_default_arguments_lead_to_is_never_in_the_lane_of_callers():
    async with engine() as e:
        e.internet.serves("https://test.example/Test.place", {"value": 7})
        await ask(e, "home")
        refused = 0
        for number in range(40):
            try:
                await ask(e, f"away {number}", is_chosen=True)
            except SourceLimited:
                refused += 1
        assert refused >= 30
        e.clock.advance(31)
        for _ in range(10):
            await ask(e, "home", is_chosen=True)


class Paced:
    """A source that may be asked every 20 s, of which something is kept."""

    source = number_source("Test.paced", hosts=HostGroup("paced", 1, 20, 40, 60), timeout_s=60, fresh_s=5)

    def __init__(self, e):
        self._e = e

    async def read(self, query=None, sla_s=5, **how):
        return await self._e.cache.fresh(self.source, query, sla_s=sla_s, **how)


@proves("answers.paced")
async def test_a_read_that_may_not_wait_is_given_what_is_kept_and_the_fetch_goes_on():
    async with engine(clock=PatientClock(START)) as e:
        paced = Paced(e)
        e.internet.serves("https://test.example/Test.paced", {"value": 1})
        await paced.read()
        e.clock.advance(6)
        e.internet.serves("https://test.example/Test.paced", {"value": 2})
        with pytest.raises(RequestWithheld):
            await paced.read(is_patient=False)
        assert (await e.cache.kept(paced.source, None)).value.value == 1
        assert (await paced.read(sla_s=60)).failure.startswith("budget")  # young enough for that SLA: no wait either
        e.clock.go.set()
        assert (await paced.read()).value.value == 2


async def test_a_read_that_may_not_wait_waits_when_nothing_is_kept():
    async with engine(clock=PatientClock(START)) as e:
        paced = Paced(e)
        e.internet.serves("https://test.example/Test.paced", {"value": 1})
        await paced.read()
        e.clock.go.set()
        assert (await paced.read("other", is_patient=False)).value.value == 1


@own_time
async def test_a_request_whose_turn_is_too_far_away_waits_for_it_without_a_caller():
    async with engine(clock=PatientClock(START)) as e:
        hurried = replace(Paced.source, timeout_s=10)
        e.internet.serves("https://test.example/Test.paced", {"value": 1})
        await e.cache.fresh(hurried, None, sla_s=5)
        with pytest.raises(RequestWithheld):
            await e.cache.fresh(hurried, "other", sla_s=5)
        assert await e.cache.kept(hurried, "other") is None
        e.clock.go.set()
        await anyio.wait_all_tasks_blocked()
        assert (await e.cache.kept(hurried, "other")).value.value == 1
        assert len(e.internet.asked) == 2


async def test_nobody_waits_for_the_turn_of_a_callers_query_that_was_refused():
    async with engine(clock=PatientClock(START)) as e:
        hurried = replace(Paced.source, timeout_s=10, user_input=True)
        e.internet.serves("https://test.example/Test.paced", {"value": 1})
        await e.cache.fresh(hurried, "home", sla_s=5)
        with pytest.raises(RequestWithheld):
            await e.cache.fresh(hurried, "away", sla_s=5, is_chosen=True)
        e.clock.go.set()
        await anyio.wait_all_tasks_blocked()
        assert len(e.internet.asked) == 1


class PatientClock(ManualClock):
    """A clock on which nobody sleeps to the end before `go` is set."""

    def __init__(self, start):
        super().__init__(start)
        self.go = anyio.Event()

    async def sleep(self, seconds):
        await self.go.wait()
        await super().sleep(seconds)


def read_list(body, query):
    return list(body["items"])


@proves("answers.proved-empty")
async def test_a_list_of_three_of_usually_fifty_is_unproved_and_the_good_one_is_kept():
    listing = replace(SOURCE, parse=read_list)
    async with engine() as e:
        e.internet.serves(URL, {"items": [1] * 50})
        for _ in range(LEAST):
            await e.cache.fresh(listing, None, sla_s=30)
            e.clock.advance(EVERY_S)
        await e.cache.fresh(listing, None, sla_s=30)
        e.internet.serves(URL, {"items": [1] * 3})
        e.clock.advance(60)
        with pytest.raises(SourceUnproved, match="3 items of usually 50"):
            await e.cache.fresh(listing, None, sla_s=30)

        kept = await e.cache.kept(listing, None)
        assert kept is not None
        assert len(kept.value) == 50


async def test_how_long_the_lists_are_that_callers_choose_is_not_remembered():
    chosen = replace(SOURCE, parse=read_list, few_choices=True)
    own = replace(SOURCE, parse=read_list, user_input=True)
    async with engine() as e:
        e.internet.serves(URL, {"items": [1] * 50})
        for source, is_chosen in ((chosen, True), (own, False)):
            for number in range(LEAST + 1):
                items = [1] * (50 if number < LEAST else 3)
                e.internet.serves(URL, {"items": items})
                assert (await e.cache.fresh(source, None, sla_s=30, is_chosen=is_chosen)).value == items
                e.clock.advance(EVERY_S)


async def test_an_answer_of_yesterday_after_one_of_today_is_not_kept():
    """A copy that a cache of the upstream brings up again: nothing in it says that it is old."""
    advancing = number_source(advances=True, newest=lambda number: number.at)
    async with engine() as e:
        today = START.timestamp() - 3600
        for at, value in ((today, 1), (today - 86400, 2)):
            e.internet.serves(URL, {"value": value, "at": at})
            if value == 2:
                with pytest.raises(SourceFrozen, match="went back"):
                    await e.cache.fresh(advancing, None, sla_s=30)
            else:
                await e.cache.fresh(advancing, None, sla_s=30)
            e.clock.advance(60)
        kept = await e.cache.kept(advancing, None)
        assert kept is not None
        assert kept.value.value == 1


class Theirs(NotShared):
    """The memory of another instance that has just fetched this body."""

    def __init__(self, stored: StoredBody) -> None:
        self._stored, self.taken = stored, None

    async def fetch(self, source, key, after, held, ask, take):
        self.taken = await take(self._stored)
        return self.taken or await ask(True)


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        ({"value": 4, "at": START.timestamp() - 600}, True),
        ({"value": 4, "at": START.timestamp() - 601}, False),
        ({"no": "value"}, False),
    ],
)
async def test_what_another_instance_fetched_is_taken_unless_it_is_unreadable_or_too_old(body, is_taken):
    dated = replace(SOURCE, newest=lambda number: number.at, newest_max_s=600)
    theirs = Theirs(StoredBody(json.dumps(body).encode(), START, {"etag": '"x"'}))
    async with engine() as e:
        e.internet.serves(URL, {"value": 9, "at": START.timestamp()})
        cache = SourceCache(e.reader, clock=e.clock, tasks=e.tasks, shared=theirs)
        answers = [await cache.fresh(dated, None, sla_s=0), await cache.kept(dated, None)]

    assert [(answer.value.value, answer.fetched_at, answer.failure) for answer in answers] == [
        (4 if is_taken else 9, START, None)
    ] * 2
    assert len(e.internet.asked) == (0 if is_taken else 1)
    if is_taken:
        assert (theirs.taken.validators, theirs.taken.body) == ({"etag": '"x"'}, json.dumps(body).encode())
        assert answers[0].latency_ms is None


@own_time
@pytest.mark.parametrize(("age_s", "is_kept"), [(3629, True), (3630, True), (3631, False)])
async def test_an_answer_is_kept_for_its_freshness_and_its_grace_after_that(age_s, is_kept):
    source = number_source(fresh_s=30, keep_s=3600)
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        await e.cache.fresh(source, None, sla_s=30)
        e.clock.advance(age_s)
        answer = await e.cache.kept(source, None)

    assert (answer is not None) is is_kept


def test_a_body_takes_the_room_of_an_average_one_at_least_and_of_all_at_most():
    answer = SourceAnswer(1, START, None, None)
    sizes = {size: measure_room(CachedAnswer(answer, size=size)) for size in (0, 9000, 10**9)}
    assert sizes == {0: ROOM_FROM_USERS, 9000: 9000, 10**9: ROOM_FROM_USERS * ENTRIES_FROM_USERS}


def test_the_room_is_for_512_answers_of_eight_kibibytes():
    assert (ENTRIES, ENTRIES_FROM_USERS, ROOM_FROM_USERS) == (4096, 512, 8192)


async def test_requests_of_one_fan_out_are_sent_together_or_not_at_all():
    hosts = HostGroup("together", 5, 0, 3, 60)
    one, two, three, four = (number_source(f"Test.{name}", hosts=hosts) for name in ("one", "two", "three", "four"))
    words = []
    async with engine() as e:
        for each in (one, two, three, four):
            e.internet.serves(f"https://test.example/{each.name}", {"value": 1})
        await e.cache.fresh(one, None, sla_s=30)

        async def read(source, fan_out):
            try:
                words.append((await e.cache.fresh(source, None, sla_s=30, fan_out=fan_out)).value.value)
            except RequestWithheld as refusal:
                words.append(refusal.word)

        async def read_together(*sources):
            fan_out = FanOut()
            async with anyio.create_task_group() as tasks:
                for each in sources:
                    tasks.start_soon(read, each, fan_out)

        await read_together(one, two, three, four)  # three requests, and two are left
        assert sorted(map(str, words)) == ["1.0", "budget", "budget", "budget"]


@own_time
async def test_a_read_that_sends_no_request_delays_no_fan_out():
    async with engine() as e:
        e.internet.serves(URL, {"value": 1})
        gate, fan_out = anyio.Event(), FanOut()
        await e.cache.fresh(SOURCE, None, sla_s=30, fan_out=fan_out)
        assert fan_out.is_settled
        await e.cache.fresh(SOURCE, None, sla_s=30, fan_out=fan_out)
        assert fan_out.is_settled

        async def slow(request):
            await gate.wait()
            return httpx.Response(200, json={"value": 2})

        e.clock.advance(31)
        e.internet.serves(URL, slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: e.cache.fresh(SOURCE, None, sla_s=0))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(lambda: e.cache.fresh(SOURCE, None, sla_s=0, fan_out=fan_out))
            await anyio.wait_all_tasks_blocked()
            assert (len(e.internet.asked), fan_out.is_settled) == (2, True)
            gate.set()
