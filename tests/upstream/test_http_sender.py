"""Every exchange is recorded as it was: redirects, failures, bodies that are cut, and where it went instead."""

import gzip
import logging
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import httpx
import pytest

from tests.calls.parts import FREELY, START, number_source
from tests.tools.premium.store import store
from tests.upstream.test_fetcher import URL, Rig, redirect_to, source_of
from toolserver.clock import ManualClock
from toolserver.core.exchange import UnreadResponse
from toolserver.upstream import http_sender
from toolserver.upstream.http_sender import (
    GAP_S,
    LONGEST_ANNOUNCEMENT,
    SHORTEST_KEY,
    TIMEOUT_S,
    TRIES,
    Announcement,
    Announcements,
    LargeBodies,
    Raw,
    SendingTime,
    connect,
    connect_ms,
    is_same_origin,
    judge_status,
    read_source_body,
    redirect_target,
    retry_after,
)
from toolserver.upstream.source import (
    Connect,
    Get,
    HostRefused,
    Post,
    SourceChanged,
    SourceDown,
    SourceLimited,
    SourceRefused,
    SourceTooLarge,
)


@pytest.fixture
async def recorded():
    """A rig, and the exchanges that it recorded."""
    kept = []
    rig = Rig(record=lambda source, request, exchange: kept.append(exchange))
    yield rig, kept
    await rig.fetcher.aclose()


async def test_the_request_and_the_decoded_answer_are_recorded(recorded):
    rig, kept = recorded
    body = b'{"value": 7}'
    headers = {"content-encoding": "gzip", "x-note": "here"}
    rig.internet.serves(URL, httpx.Response(200, content=gzip.compress(body), headers=headers))
    await rig.fetch(source_of(Post(URL, params={"a": "b c"}, headers={"X-Key": "k"}, json={"ask": 1})))
    (one,) = kept
    assert (one.source, one.method, one.url, one.sent_json) == ("Test.request", "POST", f"{URL}?a=b+c", {"ask": 1})
    assert (one.sent_headers["User-Agent"], one.sent_headers["X-Key"]) == ("toolserver test", "k")
    assert (one.status, one.body, one.is_cut, one.failure) == (200, body, False, "")
    assert ("x-note", "here") in one.headers
    assert one.sent_at == rig.clock.time()


async def test_each_redirect_is_an_exchange_of_its_own(recorded):
    rig, kept = recorded
    rig.internet.serves(URL, redirect_to("https://www.test.example/moved"))
    rig.internet.serves("https://www.test.example/", {"value": 2})
    await rig.fetch(source_of(Get(URL, headers={"X-Key": "k"})))
    assert [(one.url, one.status) for one in kept] == [(URL, 302), ("https://www.test.example/moved", 200)]
    assert kept[0].get_header("location") == "https://www.test.example/moved"
    assert "X-Key" not in kept[1].sent_headers


async def test_a_request_that_gets_no_answer_is_recorded_each_time(recorded):
    rig, kept = recorded
    rig.internet.serves(URL, httpx.ConnectError("refused"))
    with pytest.raises(SourceDown):
        await rig.fetch(source_of(Get(URL)))
    assert [(one.status, one.failure) for one in kept] == [(None, "ConnectError: refused")] * 2


async def test_what_was_too_large_is_recorded_as_that(recorded):
    rig, kept = recorded
    rig.internet.serves(URL, httpx.Response(200, content=b"x" * 50))
    with pytest.raises(SourceTooLarge):
        await rig.fetch(source_of(Get(URL), max_bytes=40))
    assert (kept[0].status, kept[0].body, kept[0].failure) == (200, b"", "SourceTooLarge: over 40 bytes")
    prefix = replace(source_of(Get(URL, decode="text"), max_bytes=40, prefix=True), parse=lambda text, query: 1)
    await rig.fetch(prefix)
    assert (kept[1].body, kept[1].is_cut) == (b"x" * 40, True)


async def test_through_a_world_the_address_is_still_the_upstreams():
    kept = []
    rig = Rig(via="http://world.example", record=lambda source, request, exchange: kept.append(exchange))
    rig.internet.serves("http://world.example/u/api.test.example/v1", {"value": 1})
    rig.internet.serves("http://world.example/probe/api.test.example", {"value": 2})
    await rig.fetch(source_of(Get(URL)))
    await rig.fetch(source_of(Connect("tcp://api.test.example:443")))
    assert [(one.method, one.url) for one in kept] == [("GET", URL), ("CONNECT", "tcp://api.test.example:443")]
    await rig.fetcher.aclose()


async def test_tcp_connections_are_recorded_with_what_the_source_parses(recorded, monkeypatch):
    rig, kept = recorded

    async def connect(request):
        return http_sender.Raw(200, {}, b'{"value": 9}', False, "api.test.example", 9)

    monkeypatch.setattr(http_sender, "connect", connect)
    await rig.fetch(source_of(Connect("tcp://api.test.example:443")))
    assert (kept[0].method, kept[0].status, kept[0].body) == ("CONNECT", 200, b'{"value": 9}')


async def test_redirects_have_an_end(recorded):
    rig, kept = recorded
    rig.internet.serves(URL, redirect_to(URL))
    with pytest.raises(SourceChanged, match="too many redirects"):
        await rig.fetch(source_of(Get(URL)))
    assert len(kept) == http_sender.REDIRECTS + 1


@pytest.mark.parametrize(
    ("validators", "sent"),
    [
        ({}, {}),
        ({"etag": '"a"'}, {"if-none-match": '"a"'}),
        ({"last-modified": "Mon"}, {"if-modified-since": "Mon"}),
        ({"etag": '"a"', "last-modified": "Mon"}, {"if-none-match": '"a"', "if-modified-since": "Mon"}),
    ],
)
async def test_a_conditional_source_sends_the_validators_that_it_was_given(recorded, validators, sent):
    rig, _ = recorded
    rig.internet.serves(URL, {"value": 1})
    await rig.fetch(source_of(Get(URL), conditional=True), validators)
    await rig.fetch(source_of(Get(URL)), validators)
    asked = [
        {name: request.headers[name] for name in ("if-none-match", "if-modified-since") if name in request.headers}
        for request in rig.internet.asked
    ]
    assert asked == [sent, {}]


@pytest.mark.parametrize(
    ("decode", "accepted"),
    [("json", "application/json"), ("text", "text/csv, text/plain, */*;q=0.5"), ("bytes", "*/*")],
)
async def test_a_request_says_what_it_can_read(recorded, decode, accepted):
    rig, kept = recorded
    rig.internet.serves(URL, {"value": 1})
    await rig.fetch(replace(source_of(Get(URL, decode=decode)), parse=lambda body, query: 1))
    assert {name: kept[0].sent_headers[name] for name in ("Accept", "Accept-Encoding")} == {
        "Accept": accepted,
        "Accept-Encoding": "gzip",
    }


KEY = "k3y-0123456789"
FROM = Get("https://api.test.example/v1")


def follow(location, request=FROM, keys=None):
    return str(redirect_target(httpx.URL(request.url), location, request, keys or {"API_KEY": KEY, "SWITCH": "1"}))


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/v2", "https://api.test.example/v2"),
        ("https://www.test.example/1", "https://www.test.example/1"),
        ("https://test.example/", "https://test.example/"),
        (f"/v2?key={KEY}", f"https://api.test.example/v2?key={KEY}"),
    ],
)
def test_a_redirect_within_the_site_is_followed(location, target):
    assert follow(location) == target


@pytest.mark.parametrize(
    "location",
    ["https://evil.example/", "http://api.test.example/v2", "https://eviltest.example/", "//evil.example/v1"],
)
def test_a_redirect_to_another_site_or_without_tls_is_refused(location):
    with pytest.raises(SourceChanged, match="redirected to"):
        follow(location)


@pytest.mark.parametrize(
    "location",
    [
        f"https://www.test.example/v1?key={KEY}",
        f"https://www.test.example/{KEY}/v1",
        "https://www.test.example/v1?key=%6b3y-0123456789",
        f"https://api.test.example:8443/v1?key={KEY}",
    ],
)
def test_a_redirect_that_would_give_an_api_key_to_another_origin_is_refused(location):
    with pytest.raises(SourceChanged, match="redirected to"):
        follow(location)


def test_a_body_is_not_sent_again_to_another_origin():
    request = Post(FROM.url, json={"registrationkey": KEY})
    assert follow("/v2", request) == "https://api.test.example/v2"
    with pytest.raises(SourceChanged, match="redirected to"):
        follow("https://www.test.example/v1", request)


@pytest.mark.parametrize(
    ("url", "is_same"),
    [
        ("https://api.test.example/other", True),
        ("https://api.test.example:443/other", True),
        ("https://api.test.example:8443/v1", False),
        ("http://api.test.example/v1", False),
        ("https://www.test.example/v1", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(url, is_same):
    assert is_same_origin(httpx.URL(url), FROM) is is_same


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "120"}, 120),
        ({"retry-after": format_datetime(START + timedelta(seconds=90), usegmt=True)}, 90),
        ({"x-ratelimit-reset": str(START.timestamp() + 45)}, 45),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_a_waiting_time_is_a_number_a_date_or_the_moment_of_a_reset(headers, seconds):
    assert retry_after(httpx.Headers(headers), START) == seconds


async def test_a_body_over_the_limit_is_cut_for_a_prefix_source_and_refused_for_any_other():
    assert await read(answer(b"12345678"), number_source(max_bytes=8)) == (b"12345678", False)
    assert await read(answer(b"12345678"), number_source(max_bytes=5, prefix=True)) == (b"12345", True)
    with pytest.raises(SourceTooLarge, match="over 5 bytes"):
        await read(answer(b"12345678"), number_source(max_bytes=5))


async def test_the_limit_counts_decoded_bytes_and_damaged_or_unknown_encodings_are_unreadable():
    zipped = gzip.compress(b"12345678")
    assert await read(answer(zipped, "gzip"), number_source(max_bytes=8)) == (b"12345678", False)
    assert await read(answer(zipped, "gzip"), number_source(max_bytes=5, prefix=True)) == (b"12345", True)
    with pytest.raises(SourceTooLarge):
        await read(answer(gzip.compress(bytes(50_000_000)), "gzip"), number_source(max_bytes=100_000))
    for body, encoding in ((zipped[:-9], "gzip"), (b"12345678", "gzip"), (zipped, "br"), (zipped, "gzip, gzip")):
        with pytest.raises(SourceChanged):
            await read(answer(body, encoding), number_source())


def answer(content, encoding="identity"):
    return httpx.Response(200, headers={"content-encoding": encoding}, stream=httpx.ByteStream(content))


async def read(response, source):
    received = UnreadResponse(200, response.headers.multi_items(), response.stream, response.aclose)
    with LargeBodies().reserve(SendingTime(1)) as place:
        return await read_source_body(received, source, place)


def judge(status, headers=None, **declared):
    raw = Raw(status, headers or {}, b"", False, "api.test.example", 1)
    return judge_status(number_source(**declared), raw, START)


@pytest.mark.parametrize(
    ("status", "headers", "kind", "reason", "retry_after_s"),
    [
        (401, {}, SourceRefused, "refused: http 401", None),
        (403, {}, HostRefused, "refused: http 403", None),
        (451, {}, HostRefused, "refused: http 451", None),
        (403, {"x-ratelimit-remaining": "1"}, HostRefused, "refused: http 403", None),
        (403, {"x-ratelimit-remaining": "0"}, SourceLimited, "rate_limited: http 403", None),
        (403, {"retry-after": "7"}, SourceLimited, "rate_limited: http 403", 7),
        (404, {"x-ratelimit-remaining": "0"}, SourceChanged, "http_404", None),
        (418, {}, SourceLimited, "rate_limited: http 418", None),
        (429, {"retry-after": "120"}, SourceLimited, "rate_limited: http 429", 120),
        (204, {}, SourceChanged, "http_204", None),
        (304, {}, SourceChanged, "http_304", None),
        (499, {}, SourceChanged, "http_499", None),
        (500, {}, SourceDown, "http_500", None),
        (598, {}, SourceDown, "http_598", None),
        (599, {}, SourceDown, "connect: name does not resolve", None),
    ],
)
def test_a_status_that_is_no_answer_has_its_own_meaning(status, headers, kind, reason, retry_after_s):
    with pytest.raises(kind) as caught:
        judge(status, headers)
    assert (type(caught.value), caught.value.reason, caught.value.retry_after_s) == (kind, reason, retry_after_s)


def test_200_is_an_answer_and_so_is_a_status_that_the_source_declares():
    judge(200)
    judge(404, also=frozenset({404}))
    with pytest.raises(SourceChanged):
        judge(410, also=frozenset({404}))


def test_a_group_may_declare_another_status_with_which_its_hosts_refuse_us():
    refusing = replace(FREELY, refusing=frozenset({429}))
    with pytest.raises(HostRefused, match="http 429"):
        judge(429, {"retry-after": "7"}, hosts=refusing)
    with pytest.raises(SourceLimited):
        judge(418, hosts=refusing)


@pytest.mark.parametrize(("key", "is_refused"), [("k" * (SHORTEST_KEY - 1), False), ("k" * SHORTEST_KEY, True)])
def test_a_value_of_eight_characters_is_a_key_and_a_shorter_one_a_switch(key, is_refused):
    assert SHORTEST_KEY == 8
    location = f"https://www.test.example/{key}"
    if is_refused:
        with pytest.raises(SourceChanged):
            follow(location, keys={"A": key})
    else:
        assert follow(location, keys={"A": key}) == location


@pytest.mark.parametrize(
    ("latency_ms", "url", "asked", "body"),
    [
        (12, "tcp://host.example:8443", ("host.example", 8443), b'{"latency_ms": 12}'),
        (12, "tcp://host.example", ("host.example", 443), b'{"latency_ms": 12}'),
        (None, "tcp://host.example", ("host.example", 443), b'{"unreachable": true}'),
    ],
)
async def test_a_connection_is_told_as_an_answer_with_the_time_it_took(latency_ms, url, asked, body):
    tried = []

    async def connect_ms(host, port):
        tried.append((host, port))
        return latency_ms

    raw = await connect(Connect(url), measure=connect_ms)
    assert raw == Raw(200, {}, body, False, "host.example", latency_ms or 0)
    assert tried == [asked]


@pytest.fixture
async def port():
    """A port of this machine where somebody listens."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:

        async def close(stream):
            await stream.aclose()

        tasks.start_soon(listener.serve, close)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


def timer_of(*seconds):
    """A timer by which the connections take so many seconds, one after the other."""
    ticks = iter([tick for each in seconds for tick in (100.0, 100.0 + each)])
    return lambda: next(ticks)


async def test_the_median_of_three_tries_is_rounded_up_to_whole_milliseconds(port):
    assert await connect_ms("127.0.0.1", port, gap_s=0, timer=timer_of(0.0101, 0.5, 0.0021)) == 11


async def test_a_connection_takes_at_least_a_millisecond(port):
    assert await connect_ms("127.0.0.1", port, gap_s=0, timer=timer_of(0.0, 0.0, 0.0)) == 1


async def test_a_try_that_fails_does_not_count(port, monkeypatch):
    tries, connect_tcp = [], anyio.connect_tcp

    async def fail_first(address, number):
        tries.append(address)
        if len(tries) == 1:
            raise OSError("reset")
        return await connect_tcp(address, number)

    ticks = iter([1.0, 2.0, 2.004, 3.0, 3.006])
    monkeypatch.setattr(anyio, "connect_tcp", fail_first)
    measured = await connect_ms("127.0.0.1", port, gap_s=0, timer=lambda: next(ticks))
    assert (measured, tries) == (5, ["127.0.0.1"] * 3)


async def test_where_nobody_listens_there_is_no_time():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert await connect_ms("127.0.0.1", bound.getsockname()[1], gap_s=0) is None


async def test_a_name_that_does_not_resolve_has_no_time(monkeypatch):
    async def fail(*args, **more):
        raise socket.gaierror("no such name")

    monkeypatch.setattr(anyio, "getaddrinfo", fail)
    assert await connect_ms("nowhere.invalid", 443) is None


def test_three_tries_lie_a_little_apart_and_have_two_seconds_each():
    assert (TRIES, GAP_S, TIMEOUT_S) == (3, 0.15, 2)


ANNOUNCING_URL = "https://gamma-api.example/markets"
SUNSET = "Fri, 01 May 2026 00:00:00 GMT"


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 15, tzinfo=UTC))


@pytest.mark.parametrize(
    ("status", "headers", "found"),
    [
        (200, {"sunset": SUNSET}, [("sunset", SUNSET)]),
        (200, {"deprecation": "true", "sunset": SUNSET}, [("deprecation", "true"), ("sunset", SUNSET)]),
        (200, {"warning": '299 - "use /markets/keyset"'}, [("warning", '299 - "use /markets/keyset"')]),
        (200, {"warning": '110 - "stale"'}, []),
        (308, {"location": "https://www.other.example/x"}, [("moved", "to www.other.example")]),
        (301, {"location": "/markets/2"}, []),
        (302, {"location": "https://www.other.example/x"}, []),
        (200, {"content-type": "application/json"}, []),
    ],
)
def test_headers_and_permanent_moves_are_kept(clock, status, headers, found):
    announcements = Announcements(clock)
    announcements.record("A.x", URL, status, headers)
    assert [(each.kind, each.text) for each in announcements.list_all()] == found


def test_each_is_logged_when_it_is_news_and_once_a_day(clock, caplog):
    announcements = Announcements(clock)
    with caplog.at_level(logging.WARNING):
        for hours in (0, 1, 22):
            clock.advance(3600 * hours)
            announcements.record("A.x", URL, 200, {"sunset": SUNSET})
        assert len(caplog.records) == 1
        clock.advance(3600)
        announcements.record("A.x", URL, 200, {"sunset": SUNSET})
        assert len(caplog.records) == 2
        announcements.record("A.x", URL, 200, {"sunset": "another"})
    assert [record.said for record in caplog.records] == [SUNSET, SUNSET, "another"]


def test_what_is_kept_is_short_and_printable(clock):
    announcements = Announcements(clock)
    announcements.record("A.x", URL, 200, {"deprecation": "\x1b[31m" + "x" * 1000})
    (kept,) = announcements.list_all()
    assert len(kept.text) == LONGEST_ANNOUNCEMENT
    assert kept.text.isprintable()


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        ({"sunset": SUNSET}, "sunset", SUNSET),
        ({"warning": '299 - "old"'}, "warning", "299 - "),
        ({"moved": "www.stripestatus.com"}, "moved", "to www.stripestatus.com"),
    ],
)
async def test_what_the_world_announces_is_in_the_metrics_and_the_list_within_one_read(tmp_path, rule, kind, said):
    async with store(tmp_path) as shop:
        shop.upstreams.fault("AlternativeMe.fear_greed", "announce", **rule)
        answer = await shop.client.get("/api/fear-greed")
        listed = shop.service.fetcher.announcements.list_all()
        metrics = shop.service.metrics.text().decode()

    assert answer.status_code == 200
    assert (answer.json()["data"] is None) is (kind == "moved")
    assert [(each.source, each.kind) for each in listed] == [("AlternativeMe.fear_greed", kind)]
    assert said in listed[0].text
    assert f'toolserver_source_announcement{{kind="{kind}"' in metrics
    assert 'source="AlternativeMe.fear_greed"} 1.0' in metrics


def test_an_announcement_says_when_it_was_last_seen_and_they_are_listed_by_source(clock):
    announcements = Announcements(clock)
    announcements.record("B.x", URL, 308, {"location": "https://www.other.example/x"})
    for _ in range(2):
        announcements.record("A.x", URL, 200, {"sunset": SUNSET, "warning": ' 299 - "old"'})
        clock.advance(60)
    at = clock.time()
    assert announcements.list_all() == [
        Announcement("A.x", "sunset", SUNSET, at - 60),
        Announcement("A.x", "warning", ' 299 - "old"', at - 60),
        Announcement("B.x", "moved", "to www.other.example", at - 120),
    ]
    assert LONGEST_ANNOUNCEMENT == 200
