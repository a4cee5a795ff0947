"""One request out, one checked result back: headers, redirects, mirrors, retries and what is reported of them."""

import threading
from datetime import timedelta

import anyio
import httpx
import pytest

from tests.calls.parts import FREELY, START, Number
from tests.internet import Internet
from toolserver.clock import ManualClock
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.http_sender import HttpSender
from toolserver.upstream.rights import Rights
from toolserver.upstream.source import (
    Get,
    HostGroup,
    HostRefused,
    Licence,
    Post,
    Proof,
    Source,
    SourceChanged,
    SourceDown,
    SourceError,
    SourceExcluded,
    SourceFrozen,
    SourceLimited,
    SourceRefused,
    SourceUnproved,
    SourceUnusable,
)

URL = "https://api.test.example/v1"
KEY = "k3y-0123456789"


def source_of(request, **more):
    """A source with the given request (or function that makes it), whose body is {"value": …}."""
    settings = {"fresh_s": 30, "keep_s": 3600, "timeout_s": 2, "hosts": FREELY, "licence": Licence("yes", "Test")}
    return Source("Test.request", request, lambda body, query: Number(float(body["value"])), **(settings | more))


class Rig:
    """A fetcher on an arranged network, and what it reported to the metrics."""

    def __init__(self, **settings):
        self.internet, self.clock, self.observed = Internet(), ManualClock(START), []
        keys = settings.pop("keys", {"API_KEY": KEY})
        self.sender = HttpSender(
            clock=self.clock,
            keys=keys,
            user_agent="toolserver test",
            via=settings.pop("via", None),
            transport=self.internet.transport,
            record=settings.pop("record", None),
        )
        self.fetcher = Fetcher(
            self.sender,
            keys=keys,
            observe=lambda source, outcome, seconds, was_sent: self.observed.append((outcome, was_sent)),
            **settings,
        )

    async def fetch(self, source, validators=None, cached_value=None):
        return await self.fetcher.fetch(source, None, validators or {}, cached_value)


@pytest.fixture
async def rig():
    rig = Rig()
    yield rig
    await rig.fetcher.aclose()


def redirect_to(location):
    return httpx.Response(302, headers={"location": location})


async def test_a_request_says_who_asks_and_carries_the_sources_headers(rig):
    rig.internet.serves(URL, {"value": 1})
    await rig.fetch(source_of(Get(URL, params={"a": "b c"}, headers={"X-Key": KEY})))
    (sent,) = rig.internet.asked
    assert (str(sent.url), sent.headers["user-agent"], sent.headers["x-key"]) == (
        f"{URL}?a=b+c",
        "toolserver test",
        KEY,
    )


async def test_no_api_key_is_sent_to_the_host_that_a_redirect_names(rig):
    rig.internet.serves(URL, redirect_to("https://www.test.example/moved"))
    rig.internet.serves("https://www.test.example/", {"value": 2})
    fetched = await rig.fetch(source_of(Get(URL, params={"key": KEY}, headers={"X-Key": KEY})))
    first, second = rig.internet.asked
    assert (fetched.answer.value.value, first.headers["x-key"]) == (2, KEY)
    assert KEY not in f"{second.url} {second.headers.raw} {second.content!r}"


@pytest.mark.parametrize(
    ("request_", "location"),
    [
        (Post(URL, json={"key": KEY}), "https://www.test.example/moved"),
        (Get(URL, params={"key": KEY}), f"https://www.test.example/moved?key={KEY}"),
        (Get(URL, headers={"X-Key": KEY}), "https://api.test.example:8443/v1?key=" + KEY),
    ],
)
async def test_a_redirect_that_can_only_be_followed_with_a_key_is_not_followed(rig, request_, location):
    rig.internet.serves(URL, redirect_to(location))
    with pytest.raises(SourceChanged, match="redirected to"):
        await rig.fetch(source_of(request_))
    assert len(rig.internet.asked) == 1


async def test_a_redirect_on_the_same_host_keeps_the_headers(rig):
    rig.internet.serves("https://api.test.example/moved", {"value": 3})
    rig.internet.serves(URL, redirect_to("/moved"))
    await rig.fetch(source_of(Get(URL, headers={"X-Key": KEY})))
    assert [sent.headers.get("x-key") for sent in rig.internet.asked] == [KEY, KEY]


async def test_more_than_three_redirects_are_too_many(rig):
    rig.internet.serves(URL, redirect_to("/v1"))
    with pytest.raises(SourceChanged, match="too many redirects"):
        await rig.fetch(source_of(Get(URL)))
    assert len(rig.internet.asked) == 4


@pytest.mark.parametrize(
    ("status", "headers", "error", "word"),
    [
        (401, {}, SourceRefused, "refused"),
        (403, {}, SourceRefused, "refused"),
        (451, {}, SourceRefused, "refused"),
        (403, {"x-ratelimit-remaining": "0"}, SourceLimited, "rate_limited"),
        (403, {"retry-after": "60"}, SourceLimited, "rate_limited"),
        (418, {}, SourceLimited, "rate_limited"),
        (429, {}, SourceLimited, "rate_limited"),
        (404, {}, SourceChanged, "http_404"),
        (500, {}, SourceDown, "http_500"),
        (599, {}, SourceDown, "connect"),
    ],
)
async def test_each_status_has_its_meaning(rig, status, headers, error, word):
    rig.internet.serves(URL, httpx.Response(status, headers=headers))
    with pytest.raises(error) as caught:
        await rig.fetch(source_of(Get(URL)))
    assert (caught.value.word, rig.observed) == (word, [(word, True)])


@pytest.mark.parametrize(("status", "refusing"), [(403, ()), (451, ()), (429, (429,))])
async def test_a_host_that_refuses_us_is_not_asked_again_for_an_hour_and_counts_as_no_failure(rig, status, refusing):
    rig.internet.serves(URL, httpx.Response(status))
    source = source_of(Get(URL), hosts=HostGroup("picky", 1, 0, 60, 60, refusing=frozenset(refusing)))
    for _ in range(5):
        with pytest.raises(HostRefused):
            await rig.fetch(source)
    assert rig.observed == [("refused", True), *[("refused", False)] * 4]
    assert [(each.host, each.status) for each in rig.fetcher.refusals.list_all()] == [("api.test.example", status)]
    rig.clock.advance(3600)
    rig.internet.serves(URL, {"value": 1})
    await rig.fetch(source)
    assert rig.fetcher.refusals.list_all() == []


async def test_a_callers_query_that_is_refused_does_not_close_its_host_to_others(rig):
    rig.internet.serves(URL, httpx.Response(403))
    with pytest.raises(SourceRefused):
        await rig.fetcher.fetch(source_of(Get(URL)), None, is_chosen=True)
    rig.internet.serves(URL, {"value": 1})
    await rig.fetch(source_of(Get(URL)))


async def test_a_wrong_key_is_a_failure_of_that_source_and_no_refusal_of_its_host(rig):
    rig.internet.serves(URL, httpx.Response(401))
    with pytest.raises(SourceRefused):
        await rig.fetch(source_of(Get(URL)))
    assert rig.fetcher.refusals.list_all() == []


async def test_the_next_mirror_answers_for_one_whose_host_refuses(rig):
    mirror = "https://mirror.example/v1"
    rig.internet.serves(URL, httpx.Response(403))
    rig.internet.serves(mirror, {"value": 2})
    for _ in range(2):
        fetched = await rig.fetch(source_of((Get(URL), Get(mirror))))
        assert fetched.answer.value.value == 2
    assert [str(sent.url) for sent in rig.internet.asked] == [URL, mirror, mirror]


@pytest.mark.parametrize(
    ("more", "error"), [({"newest_max_s": 60}, SourceFrozen), ({"proof": Proof.by_newest(60)}, SourceUnproved)]
)
async def test_an_answer_about_old_things_is_none(rig, more, error):
    rig.internet.serves(URL, {"value": 1})
    for age_s, good in ((60, True), (61, False)):
        newest = START - timedelta(seconds=age_s)
        source = source_of(Get(URL), newest=lambda value, newest=newest: newest, **more)
        if good:
            await rig.fetch(source)
        else:
            with pytest.raises(error):
                await rig.fetch(source)


async def test_a_declared_status_is_an_answer(rig):
    rig.internet.serves(URL, httpx.Response(404, json={"value": 0}))
    assert (await rig.fetch(source_of(Get(URL), also=frozenset({404})))).answer.value.value == 0


async def test_a_server_error_is_retried_once_and_a_client_error_is_not(rig):
    for status, requests in ((503, 2), (404, 1), (500, 1)):
        rig.internet.asked.clear()
        rig.internet.serves(URL, httpx.Response(status))
        with pytest.raises(SourceError):
            await rig.fetch(source_of(Get(URL)))
        assert len(rig.internet.asked) == requests
        rig.clock.advance(3600)


async def test_mirrors_are_asked_in_order_until_one_answers(rig):
    rig.internet.serves(URL, httpx.Response(500))
    rig.internet.serves("https://mirror.example/v1", {"value": 4})
    source = source_of((Get(URL), Get("https://mirror.example/v1"), Get("https://third.example/v1")))
    assert (await rig.fetch(source)).answer.value.value == 4
    assert [sent.url.host for sent in rig.internet.asked] == ["api.test.example", "mirror.example"]


async def test_a_mirror_that_hangs_leaves_time_for_the_next_one(rig):
    async def hang(request):
        await anyio.sleep_forever()

    rig.internet.serves(URL, hang)
    rig.internet.serves("https://mirror.example/v1", {"value": 5})
    source = source_of((Get(URL), Get("https://mirror.example/v1")), timeout_s=0.1)
    assert (await rig.fetch(source)).answer.value.value == 5


@pytest.mark.parametrize(("mirrors", "share_s"), [(1, "0.12"), (2, "0.06"), (3, "0.04"), (4, "0.04")])
async def test_mirrors_that_hang_share_the_time_but_none_has_less_than_a_third(rig, mirrors, share_s):
    async def hang(request):
        await anyio.sleep_forever()

    rig.internet.serves("https://", hang)
    with pytest.raises(SourceDown, match=rf"no answer within {share_s} s"):
        await rig.fetch(source_of([Get(f"https://m{n}.example/v1") for n in range(mirrors)], timeout_s=0.12))


async def test_no_answer_within_the_time_of_the_source_is_a_timeout(rig):
    async def hang(request):
        await anyio.sleep_forever()

    rig.internet.serves(URL, hang)
    with pytest.raises(SourceDown) as caught:
        await rig.fetch(source_of(Get(URL), timeout_s=0.05))
    assert caught.value.word == "timeout"


async def test_validators_are_sent_by_conditional_sources_only_and_304_returns_the_kept_value(rig):
    async def upstream(request):
        if request.headers.get("if-none-match") == '"a"' and request.headers.get("if-modified-since") == "Mon":
            return httpx.Response(304)
        return httpx.Response(200, json={"value": 6}, headers={"etag": '"b"'})

    rig.internet.serves(URL, upstream)
    given, kept = {"etag": '"a"', "last-modified": "Mon"}, Number(5)
    unchanged = await rig.fetch(source_of(Get(URL), conditional=True), given, kept)
    assert (unchanged.answer.value, unchanged.body, unchanged.validators) == (kept, None, given)
    changed = await rig.fetch(source_of(Get(URL)), given, kept)
    assert (changed.answer.value, changed.validators) == (Number(6), {"etag": '"b"'})


async def test_a_refusal_of_our_own_is_reported_as_not_asked_and_opens_no_circuit(rig):
    rig.internet.serves(URL, {"value": 1})
    source = source_of(Get(URL), hosts=HostGroup("tight", 1, 0, 1, 60))
    await rig.fetch(source)
    for _ in range(5):
        with pytest.raises(SourceLimited, match="1 per 60 s"):
            await rig.fetch(source)
    assert rig.observed == [("ok", True), *[("budget", False)] * 5]
    rig.clock.advance(60)
    await rig.fetch(source)


async def test_a_mirror_that_failed_is_reported_rather_than_one_that_was_not_asked(rig):
    rig.internet.serves(URL, httpx.Response(500))
    hosts = HostGroup("tight", 1, 0, 1, 60)
    with pytest.raises(SourceDown):
        await rig.fetch(source_of((Get(URL), Get("https://mirror.example/v1")), hosts=hosts))
    assert rig.observed == [("http_500", True)]


async def test_an_open_circuit_sends_nothing_and_reports_nothing(rig):
    rig.internet.serves(URL, httpx.Response(500))
    for _ in range(3):
        with pytest.raises(SourceDown):
            await rig.fetch(source_of(Get(URL)))
    with pytest.raises(SourceDown, match="probe in 30 s") as caught:
        await rig.fetch(source_of(Get(URL)))
    assert (caught.value.was_sent, len(rig.internet.asked), rig.observed) == (False, 3, [("http_500", True)] * 3)


async def test_a_cancelled_probe_lets_another_one_go(rig):
    rig.internet.serves(URL, httpx.Response(500))
    source = source_of(Get(URL), timeout_s=60)
    for _ in range(3):
        with pytest.raises(SourceDown):
            await rig.fetch(source)
    rig.clock.advance(30)
    gate = anyio.Event()

    async def wait(request):
        await gate.wait()

    rig.internet.serves(URL, wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rig.fetch, source)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    rig.internet.serves(URL, {"value": 1})
    assert (await rig.fetch(source)).answer.value.value == 1


async def test_the_licence_policy_bars_a_source_and_a_missing_key_makes_it_unusable():
    rig = Rig(rights=Rights("commercial"), keys={})
    barred = source_of(Get(URL), licence=Licence("non_commercial", "Test"))
    keyed = source_of(lambda query, keys: None)
    both = source_of(lambda query, keys: None, licence=Licence("non_commercial", "Test"))
    for source, error in ((barred, SourceExcluded), (keyed, SourceUnusable), (both, SourceExcluded)):
        assert not rig.fetcher.usable(source, None)
        with pytest.raises(error):
            await rig.fetch(source)
        assert rig.observed == []
    assert (rig.fetcher.usable(source_of(Get(URL)), None), rig.internet.asked) == (True, [])


async def test_with_a_simulated_world_each_request_goes_there(rig):
    simulated = Rig(via="http://127.0.0.1:9/")
    simulated.internet.serves("http://127.0.0.1:9/u/", {"value": 7})
    assert (await simulated.fetch(source_of(Get(URL, params={"q": "1"})))).answer.value.value == 7
    assert simulated.internet.urls() == ["http://127.0.0.1:9/u/api.test.example/v1?q=1"]
    await simulated.fetcher.aclose()


async def test_a_large_body_is_parsed_in_a_worker_thread(rig):
    threads = []

    def parse(body, query):
        threads.append(threading.current_thread() is threading.main_thread())
        return Number(body["value"])

    for padding in ("", "x" * 300_000):
        rig.internet.serves(URL, {"value": 8, "padding": padding})
        source = Source(
            "Test.large", Get(URL), parse, Licence("yes", "Test"), hosts=FREELY, fresh_s=1, keep_s=1, timeout_s=5
        )
        await rig.fetch(source)
    assert threads == [True, False]


async def test_queries_that_callers_choose_have_a_circuit_of_their_own_that_opens_after_ten_failures(rig):
    rig.internet.serves(URL, {"no": "value"})
    source = source_of(Get(URL))
    for _ in range(11):
        with pytest.raises(SourceError):
            await rig.fetcher.fetch(source, None, is_chosen=True)
    assert rig.observed == [("changed", True)] * 10
    assert rig.fetcher.health.state(source.name) == "closed"
    rig.internet.serves(URL, {"value": 1})
    assert (await rig.fetch(source)).answer.value == Number(1)


@pytest.mark.parametrize("is_chosen", [False, True])
async def test_a_host_that_says_when_to_come_again_is_not_asked_before(rig, is_chosen):
    rig.internet.serves(URL, httpx.Response(429, headers={"retry-after": "120"}))
    source = source_of(Get(URL))
    with pytest.raises(SourceLimited):
        await rig.fetcher.fetch(source, None, is_chosen=is_chosen)
    rig.internet.serves(URL, {"value": 1})
    rig.clock.advance(119)
    with pytest.raises(SourceLimited) as refused:
        await rig.fetcher.fetch(source, None, is_chosen=is_chosen)
    assert (refused.value.was_sent, refused.value.retry_after_s) == (False, 1)
    assert len(rig.internet.asked) == 1
    if is_chosen:  # a limit that a caller's query met is none of the others
        assert (await rig.fetch(source)).answer.value == Number(1)
    rig.clock.advance(1)
    assert (await rig.fetcher.fetch(source, None, is_chosen=is_chosen)).answer.value == Number(1)
