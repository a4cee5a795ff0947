"""Every exchange is recorded as it was: redirects, failures, bodies that are cut, and where it went instead."""

import gzip
import threading
from dataclasses import replace

import anyio
import httpx
import pytest

from tests.upstream.test_fetcher import URL, Rig, redirect_to, source_of
from toolserver.upstream import http_sender
from toolserver.upstream.source import Connect, Get, Post
from toolserver.upstream.source_errors import SourceChanged, SourceDown, SourceTooLarge


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
        return http_sender.Raw(200, httpx.Headers(), b'{"value": 9}', False, "api.test.example", 9)

    monkeypatch.setattr(http_sender, "connect", connect)
    await rig.fetch(source_of(Connect("tcp://api.test.example:443")))
    assert (kept[0].method, kept[0].status, kept[0].body) == ("CONNECT", 200, b'{"value": 9}')


async def test_redirects_have_an_end(recorded):
    rig, kept = recorded
    rig.internet.serves(URL, redirect_to(URL))
    with pytest.raises(SourceChanged, match="too many redirects"):
        await rig.fetch(source_of(Get(URL)))
    assert len(kept) == http_sender.REDIRECTS + 1


async def test_the_client_is_made_once_and_off_the_event_loop_where_it_has_modules_to_load(monkeypatch):
    made = []

    class Made:
        async def aclose(self):
            pass

    sender = http_sender.HttpSender(
        clock=None, keys={}, user_agent="t", via=None, announcements=None, transport=None, record=None
    )
    monkeypatch.setattr(sender, "_make_client", lambda: made.append(threading.current_thread()) or Made())
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(sender._open)
    assert len(made) == 1
    assert made[0] is not threading.main_thread()
    await sender.aclose()


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


async def test_with_a_transport_that_is_given_the_client_is_made_at_once(monkeypatch):
    made = []
    rig = Rig()
    sender = rig.fetcher._sender
    make = sender._make_client
    monkeypatch.setattr(sender, "_make_client", lambda: made.append(threading.current_thread()) or make())
    rig.internet.serves(URL, {"value": 1})
    for _ in range(2):
        await rig.fetch(source_of(Get(URL)))
    assert made == [threading.main_thread()]
    await rig.fetcher.aclose()
