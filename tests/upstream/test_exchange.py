"""Redirects, waiting times and capped bodies."""

import gzip
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime

import httpx
import pytest

from tests.calls.parts import FREELY, START, number_source
from toolserver.upstream import exchange
from toolserver.upstream.exchange import (
    SHORTEST_KEY,
    Raw,
    connect,
    is_same_origin,
    judge_status,
    read_source_body,
    redirect_target,
    retry_after,
)
from toolserver.upstream.large_bodies import LargeBodies
from toolserver.upstream.sending_time import SendingTime
from toolserver.upstream.source import Connect, Get, Post
from toolserver.upstream.source_errors import (
    HostRefused,
    SourceChanged,
    SourceDown,
    SourceLimited,
    SourceRefused,
    SourceTooLarge,
)

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
    async with LargeBodies().reserve(SendingTime(1)) as place:
        return await read_source_body(response, source, place)


def judge(status, headers=None, **declared):
    raw = Raw(status, httpx.Headers(headers or {}), b"", False, "api.test.example", 1)
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
async def test_a_connection_is_told_as_an_answer_with_the_time_it_took(monkeypatch, latency_ms, url, asked, body):
    tried = []

    async def connect_ms(host, port):
        tried.append((host, port))
        return latency_ms

    monkeypatch.setattr(exchange, "connect_ms", connect_ms)
    raw = await connect(Connect(url))
    assert raw == Raw(200, httpx.Headers(), body, False, "host.example", latency_ms or 0)
    assert tried == [asked]
