"""Clients that describe themselves at their id: what is read, from where, and what is refused."""

import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from tests.webhooks import receivers
from tests.webhooks.receivers import certificates, receiving, status
from toolserver.clock import ManualClock
from toolserver.mcp.oauth import client_documents
from toolserver.mcp.oauth.client_documents import (
    MOST_DOCUMENT,
    ClientDocumentRefused,
    ClientDocuments,
    check_client_url,
    clean_name,
    is_client_url,
    read_client_document,
)
from toolserver.mcp.oauth.records import OAuthClient
from toolserver.webhooks.egress import EgressGuard

URL = "https://host.example/client.json"
GOOD = {"client_id": URL, "client_name": "Host", "redirect_uris": ["https://host.example/back"]}
START = datetime(2027, 1, 15, tzinfo=UTC)


@asynccontextmanager
async def reading(clock=None, guard=None, **parts):
    documents = ClientDocuments(guard or EgressGuard(allow_loopback=True), clock or ManualClock(START), **parts)
    try:
        yield documents
    finally:
        await documents.close()


def described(document, *headers):
    """A receiver that answers with a document."""
    return status(200, "Content-Type: application/json", *headers, body=json.dumps(document).encode())


@asynccontextmanager
async def hosted(change=(), *headers):
    """A document on loopback that names its own address; it, and its URL."""
    async with receiving() as receiver:
        url = receiver.url(path="/client.json")
        receiver.answer = described({**GOOD, "client_id": url, **dict(change)}, *headers)
        yield receiver, url


async def refusal(url, **parts):
    async with reading(**parts) as documents:
        with pytest.raises(ClientDocumentRefused) as refused:
            await documents.find(url)
    return str(refused.value)


async def test_a_client_is_read_once_and_kept_for_an_hour():
    clock = ManualClock(START)
    async with hosted() as (receiver, url), reading(clock) as documents:
        found = await documents.find(url)
        assert (found.id, found.name, found.redirect_uris) == (url, "Host", ("https://host.example/back",))
        assert found.document
        clock.advance(3599)
        assert await documents.find(url) == found
        assert len(receiver.requests) == 1
        clock.advance(1)
        await documents.find(url)
    assert len(receiver.requests) == 2
    headers = receiver.requests[0].headers
    assert (headers["accept"], headers["accept-encoding"]) == ("application/json", "identity")
    assert headers["user-agent"] == "toolserver-oauth/1.0"


async def test_over_tls_the_certificate_counts():
    server, client = certificates("localhost")
    async with receiving(tls=server) as receiver:
        url = receiver.url("https", "localhost", "/client.json")
        receiver.answer = described({**GOOD, "client_id": url})
        there = {"lookup": lambda host: ["127.0.0.1"]}
        async with reading(tls=client, **there) as documents:
            assert (await documents.find(url)).id == url
        assert "could not be read" in await refusal(url, **there)


async def test_a_failure_is_kept_for_half_a_minute():
    clock = ManualClock(START)
    async with receiving(status(404)) as receiver, reading(clock) as documents:
        url = receiver.url(path="/client.json")
        for _ in range(3):
            with pytest.raises(ClientDocumentRefused, match="404"):
                await documents.find(url)
        assert len(receiver.requests) == 1
        clock.advance(29)
        with pytest.raises(ClientDocumentRefused, match="404"):
            await documents.find(url)
        assert len(receiver.requests) == 1
        clock.advance(1)
        receiver.answer = described({**GOOD, "client_id": url})
        assert (await documents.find(url)).name == "Host"


def test_the_bounds_of_reading_are_these():
    assert (client_documents.TOTAL_S, client_documents.CONNECT_S) == (5, 3)
    assert (client_documents.KEPT, client_documents.AT_ONCE) == (1000, 8)
    assert (MOST_DOCUMENT, client_documents.MOST_URL, client_documents.MOST_NAME) == (10_240, 1000, 60)


async def test_a_document_at_the_bound_is_read():
    async with receiving() as receiver:
        url = receiver.url(path="/client.json")
        body = json.dumps({**GOOD, "client_id": url}).encode()
        receiver.answer = status(200, body=body + b" " * (MOST_DOCUMENT - len(body)))
        async with reading() as documents:
            assert (await documents.find(url)).id == url


def test_a_client_is_what_its_document_says():
    found = read_client_document(URL, json.dumps(GOOD).encode(), 7)
    assert found == OAuthClient(URL, "Host", ("https://host.example/back",), 7, document=True)
    uris = [f"https://host.example/{n}" for n in range(20)]
    for more in ({"token_endpoint_auth_method": "none"}, {"redirect_uris": uris}):
        read = read_client_document(URL, json.dumps({**GOOD, **more}).encode(), 7)
        assert read.redirect_uris == tuple(more.get("redirect_uris", GOOD["redirect_uris"]))
    with pytest.raises(ClientDocumentRefused, match="1 to 20"):
        read_client_document(URL, json.dumps({**GOOD, "redirect_uris": [*uris, uris[0]]}).encode(), 7)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/c",
        "https://10.0.0.1/c",
        "http://host.example/c",
        "https://metadata.internal/c",
        "https://169.254.169.254/c",
        "https://host.example:22/c",
        "https://[::1]/c",
        "https://2130706433/c",
    ],
)
async def test_only_the_public_internet_is_asked(url):
    assert "public Internet" in await refusal(url, guard=EgressGuard())


async def test_a_name_that_leads_to_a_private_address_is_not_asked():
    async with receiving() as receiver:
        url = f"https://host.example:{receiver.port}/c"
        assert "public Internet" in await refusal(url, guard=EgressGuard(), lookup=lambda host: ["127.0.0.1"])
        there = "https://host.example/c"
        assert "could not be read" in await refusal(there, guard=EgressGuard(), lookup=lambda host: ["127.0.0.1"])
    assert receiver.connections == 0


async def test_what_is_no_document_is_refused_and_nothing_of_it_is_repeated():
    answers = [
        (status(302, "Location: /other"), "302"),
        (status(200, body=b"x" * (MOST_DOCUMENT + 1)), "larger"),
        (receivers.flood_body, "larger"),
        (status(200, "Content-Encoding: gzip", body=b"x"), "compressed"),
        (receivers.close, "could not be read"),
        (receivers.close_in_body, "could not be read"),
        (status(200, body=b"<canary>"), "not JSON"),
    ]
    for answer, said in answers:
        async with receiving(answer) as receiver:
            told = await refusal(receiver.url(path="/c"))
            assert said in told
            assert "canary" not in told


async def test_a_slow_document_is_given_up(monkeypatch):
    monkeypatch.setattr(client_documents, "TOTAL_S", 0.2)
    for answer in (receivers.hang, receivers.drip_body):
        async with receiving(answer) as receiver:
            assert "could not be read" in await refusal(receiver.url(path="/c"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"client_id": "https://other.example/c"}, "repeat its own address"),
        ({"client_id": None}, "repeat its own address"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "public"),
        ({"client_secret": "x"}, "public"),
        ({"redirect_uris": []}, "list of 1"),
        ({"redirect_uris": "https://host.example/"}, "list of 1"),
        ({"redirect_uris": [1]}, "list of 1"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris"),
    ],
)
def test_documents_that_describe_no_client(change, said):
    with pytest.raises(ClientDocumentRefused, match=said):
        read_client_document(URL, json.dumps({**GOOD, **change}).encode(), 0)
    with pytest.raises(ClientDocumentRefused, match="not JSON"):
        read_client_document(URL, b"[" * 100_000, 0)
    with pytest.raises(ClientDocumentRefused, match="repeat"):
        read_client_document(URL, b"[]", 0)


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example",
        "https://host.example/",
        "https://host.example/a#b",
        "https://me@host.example/a",
        "https://host.example/a/../b",
        "https://host.example/./b",
        URL.ljust(1001, "a"),
        "https://[/a",
        "https://host.example/ä",
    ],
)
def test_urls_that_are_no_id(url):
    check_client_url(URL)
    check_client_url(URL.ljust(1000, "a"))
    with pytest.raises(ClientDocumentRefused):
        check_client_url(url)


def test_a_name_is_shown_on_one_line_and_cannot_hide_what_follows():
    assert clean_name(" A \n\t host\u202e\u200b " + "x" * 100) == "A host " + "x" * 53
    assert read_client_document(URL, json.dumps({**GOOD, "client_name": ["x"]}).encode(), 0).name == "host.example"


@pytest.mark.parametrize(
    "hidden",
    [
        *("\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u2066", "\u061c", "\u3164", "\u115f", "\uffa0", "\u2800"),
        *("\u034f", "\xad", "\U000e0041", "\ufe0f", "\x1b", "\ue000", "\ud800", "\u0378"),
    ],
    ids=ascii,
)
def test_a_name_has_no_invisible_letters_and_none_of_them_alone_is_a_name(hidden):
    assert clean_name(f"Cur{hidden}sor").replace(" ", "") == "Cursor"
    assert clean_name(f"{hidden} {hidden}") == ""
    body = json.dumps({**GOOD, "client_name": hidden * 3}).encode()
    assert read_client_document(URL, body, 0).name == "host.example"


def test_a_name_has_a_letter_or_a_number():
    for name in ("Zed", "日本語", "हिन्दी", "4"):
        assert clean_name(name) == name
    for name in ("...", "\u0301\u0301", "—", "\u2003"):
        assert clean_name(name) == ""


def test_an_id_is_a_url_or_a_name():
    assert is_client_url(URL)
    assert is_client_url("http://host.example/client.json")
    assert not is_client_url("0b5c8a3e")
