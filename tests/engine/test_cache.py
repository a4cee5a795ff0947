"""Reading sources: fresh, shared, refreshed ahead, stale and kept on disk."""

import anyio
import httpx
import pytest

from tests.engine.parts import engine, number_source
from tests.requirements import proves
from toolserver.errors import SourceChanged, SourceDown, SourceError, SourceFrozen, SourceLimited, SourceRefused
from toolserver.upstream.cache import NoStore, StoredBody

SOURCE = number_source()
URL = "https://test.example/Test.number"


class DictStore(NoStore):
    """A disk in a dict."""

    def __init__(self):
        self.kept: dict[tuple[str, str], StoredBody] = {}

    async def load(self, source, key):
        return self.kept.get((source, key))

    def save(self, source, key, stored, *, keep_s):
        self.kept[source, key] = stored


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
    async with engine(store=disk) as e:
        e.internet.serves(URL, {"value": 5})
        await e.cache.fresh(SOURCE, None, sla_s=30)
        later = e.clock
    later.advance(600)
    async with engine(store=disk, clock=later) as e:
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


async def test_an_answer_of_days_to_come_is_no_answer():
    source = number_source(newest=lambda n: n.at)
    async with engine() as e:
        e.internet.serves(URL, {"value": 1, "at": e.clock.time() + 2 * 86400})
        with pytest.raises(SourceChanged, match="which is to come"):
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
