"""Clients by id: registered ones, and those that describe themselves: what is read, from where, what is refused."""

import asyncio
import itertools
import json
import resource
import ssl
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.mcp.oauth.records import CLIENT, change
from tests.webhooks import receivers
from tests.webhooks.receivers import certificates, receiving, status
from toolserver.clock import ManualClock
from toolserver.mcp.oauth.clients import (
    CONNECT_S,
    MOST_DOCUMENT,
    READING_LIMITS,
    ClientDirectory,
    ClientDocumentRefused,
    ClientDocuments,
    ClientDocumentsBusy,
    ReadingLimits,
    check_client_url,
    clean_name,
    is_client_url,
    make_reading_limits,
    read_client_document,
)
from toolserver.mcp.oauth.store import MemoryOAuthStore, OAuthClient
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


def limited_reading(**limits):
    return reading(limits=ReadingLimits(**limits))


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
        async with reading(load_tls=lambda: client, **there) as documents:
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
    assert READING_LIMITS == ReadingLimits(at_once=64, queue=192, share=4, crowd_share=16, total_s=5, safe_s=1)
    assert (MOST_DOCUMENT, CONNECT_S) == (10_240, 3)


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


async def until(condition):
    while not condition():  # noqa: ASYNC110 - a receiver has no event of its own
        await asyncio.sleep(0)


@asynccontextmanager
async def never_arriving(documents):
    """Begins readings whose document never arrives: a function of who reads and how many, which waits for them."""
    tasks, begun = [], itertools.count()
    async with receiving(receivers.hang) as receiver:

        async def begin(client, count=1):
            new = [
                asyncio.create_task(documents.find(receiver.url(path=f"/{next(begun)}"), client)) for _ in range(count)
            ]
            tasks.extend(new)
            await until(lambda: receiver.connections >= sum(not task.done() for task in tasks))
            return new

        begin.receiver = receiver
        yield begin
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


NETWORK = [f"2001:db8:0:{n}::/64" for n in range(9)]


async def test_a_client_and_a_network_hold_only_their_share_and_everyone_else_is_read():
    async with hosted() as (_, url), reading() as documents, never_arriving(documents) as begin:
        await begin("203.0.113.1", READING_LIMITS.share)
        with pytest.raises(ClientDocumentsBusy, match="from this address"):
            await documents.find(url, "203.0.113.1")
        for client in NETWORK[:4]:
            await begin(client, READING_LIMITS.share)
        with pytest.raises(ClientDocumentsBusy, match="from this address"):
            await documents.find(url, NETWORK[4])
        assert (await documents.find(url, "203.0.113.2")).name == "Host"
        assert (await documents.find(url, "203.0.113.1")).name == "Host", "it is cached, and that needs no place"


async def test_when_all_places_are_taken_the_oldest_reading_of_the_greediest_ends():
    async with (
        hosted() as (_, url),
        reading(limits=ReadingLimits(safe_s=0, at_once=5)) as documents,
        never_arriving(documents) as begin,
    ):
        (few,) = await begin("203.0.113.1")
        many = [*(await begin(NETWORK[0], 2)), *(await begin(NETWORK[1], 2))]
        assert (await documents.find(url, "203.0.113.2")).name == "Host"
        with pytest.raises(ClientDocumentsBusy):
            await many[0]
        assert not any(task.done() for task in (few, *many[1:]))


async def test_a_young_reading_is_not_ended_for_others_who_wait_for_the_end_of_one():
    async with (
        hosted() as (receiver, url),
        reading(limits=ReadingLimits(at_once=2, safe_s=1000)) as documents,
        never_arriving(documents) as begin,
    ):
        first, second = [(await begin(f"203.0.113.{n}"))[0] for n in range(2)]
        waits = asyncio.create_task(documents.find(url, "203.0.113.9"))
        await until(lambda: documents.count_readings() == 3)
        assert receiver.connections == 0
        second.cancel()
        assert (await waits).name == "Host"
        assert not first.done()


async def test_who_waits_for_a_place_until_the_deadline_is_told_to_come_again_and_nothing_is_remembered():
    async with (
        hosted() as (receiver, url),
        reading(limits=ReadingLimits(at_once=1, safe_s=1000)) as documents,
        never_arriving(documents) as begin,
    ):
        (first,) = await begin("203.0.113.1")
        documents.limits = replace(documents.limits, total_s=0.1)
        with pytest.raises(ClientDocumentsBusy):
            await documents.find(url, "203.0.113.2")
        assert receiver.connections == 0
        first.cancel()
        documents.limits = READING_LIMITS
        assert (await documents.find(url, "203.0.113.2")).name == "Host"


async def test_a_full_queue_drops_the_oldest_of_the_greediest():
    async with (
        reading(limits=ReadingLimits(at_once=1, queue=3, safe_s=1000)) as documents,
        never_arriving(documents) as begin,
    ):
        await begin("203.0.113.1")
        clients = ["203.0.113.2", NETWORK[0], NETWORK[1]]
        waiting = [asyncio.create_task(documents.find(f"http://127.0.0.1:9/{n}", c)) for n, c in enumerate(clients)]
        await until(lambda: documents.count_readings() == 4)
        waiting.append(asyncio.create_task(documents.find("http://127.0.0.1:9/9", "203.0.113.3")))
        with pytest.raises(ClientDocumentsBusy):
            await waiting[1]
        assert [task.done() for task in waiting] == [False, True, False, False]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_nothing_that_a_crowd_prevented_is_remembered_as_a_failure():
    async with (
        hosted() as (receiver, url),
        reading(limits=ReadingLimits(safe_s=0, at_once=1)) as documents,
        never_arriving(documents) as begin,
    ):
        receiver.answer, good = receivers.hang, receiver.answer
        first = asyncio.create_task(documents.find(url, "203.0.113.1"))
        await until(lambda: receiver.connections)
        await begin("203.0.113.2")
        with pytest.raises(ClientDocumentsBusy):
            await first
        receiver.answer = good
        assert (await documents.find(url, "203.0.113.1")).name == "Host"


async def test_a_reading_is_shared_and_ends_with_the_last_who_waits():
    async with reading() as documents, receiving(receivers.hang) as receiver:
        url = receiver.url(path="/c")
        waiting = [asyncio.create_task(documents.find(url, f"203.0.113.{n}")) for n in range(3)]
        await until(lambda: receiver.requests)
        others = asyncio.all_tasks() - {*waiting}
        for leaving in waiting:
            assert documents.count_readings() == 1
            leaving.cancel()
            await asyncio.wait([leaving])
        (reading_task,) = [task for task in others if task.cancelling()]
        await asyncio.wait([reading_task])
        assert reading_task.cancelled()
        assert documents.count_readings() == 0
        assert receiver.connections == 1


async def test_who_shares_a_reading_that_made_room_for_others_begins_it_again():
    async with (
        hosted() as (receiver, url),
        reading(limits=ReadingLimits(safe_s=0, at_once=2)) as documents,
        never_arriving(documents) as begin,
    ):
        receiver.answer, good = receivers.hang, receiver.answer
        greedy = asyncio.create_task(documents.find(url, "203.0.113.1"))
        await until(lambda: receiver.connections)
        shares = asyncio.create_task(documents.find(url, "203.0.113.2"))
        await begin("203.0.113.1")
        receiver.answer = good
        await begin("203.0.113.3")
        with pytest.raises(ClientDocumentsBusy):
            await greedy
        assert (await shares).name == "Host"


@pytest.mark.parametrize("stuck", ["name", "certificates", "document"])
async def test_the_deadline_covers_names_certificates_and_the_document(stuck):
    waits = threading.Event()

    def look_up(host):
        waits.wait(5) if stuck == "name" else None
        return ["127.0.0.1"]

    def load_tls():
        waits.wait(1) if stuck == "certificates" else None
        return ssl.create_default_context()

    limits = ReadingLimits(total_s=0.2)
    async with (
        receiving(receivers.hang) as receiver,
        reading(lookup=look_up, load_tls=load_tls, limits=limits) as documents,
    ):
        with pytest.raises(ClientDocumentRefused, match="could not be read"):
            await documents.find(receiver.url(host="localhost", path="/c"), "203.0.113.1")
        assert documents.count_readings() == 0
        assert receiver.connections == (stuck == "document")
        waits.set()


async def test_a_slow_document_is_given_up():
    for answer in (receivers.hang, receivers.drip_body):
        async with receiving(answer) as receiver:
            assert "could not be read" in await refusal(receiver.url(path="/c"), limits=ReadingLimits(total_s=0.2))


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


class Documents:
    async def find(self, url, caller=None):
        self.caller = caller
        if url != URL:
            raise ClientDocumentRefused("no document")
        return change(CLIENT, id=url, document=True)


async def test_a_url_is_read_and_a_name_is_looked_up():
    store = MemoryOAuthStore()
    await store.add_client(CLIENT)
    clients = ClientDirectory(store, Documents())
    assert await clients.find(CLIENT.id) == CLIENT
    assert await clients.find("other") is None
    assert (await clients.find(URL)).document
    with pytest.raises(ClientDocumentRefused):
        await clients.find(URL + "x")
    assert await clients.find_known(URL + "x") is None
    assert await clients.find_known(CLIENT.id) == CLIENT


@pytest.mark.parametrize(("descriptors", "at_once"), [(64, 4), (256, 16), (1024, 64), (65_536, 64)])
def test_readings_leave_most_descriptors_to_others(monkeypatch, descriptors, at_once):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (descriptors, descriptors))

    assert make_reading_limits().at_once == at_once
