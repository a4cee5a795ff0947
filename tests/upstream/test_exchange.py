"""Redirects, waiting times and capped bodies."""

import gzip
from datetime import timedelta
from email.utils import format_datetime

import httpx
import pytest

from tests.calls.parts import START, number_source
from toolserver.upstream.exchange import is_same_origin, read_source_body, redirect_target, retry_after
from toolserver.upstream.large_bodies import LargeBodies
from toolserver.upstream.sending_time import SendingTime
from toolserver.upstream.source import Get, Post
from toolserver.upstream.source_errors import SourceChanged, SourceTooLarge

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
