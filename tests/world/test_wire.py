"""HTTP/1.1 as the simulated world speaks it: requests within bounds, answers by the rules of conditional requests."""

from email.utils import formatdate

import anyio
import pytest

from tests.world.toy import T, plain_get
from toolserver.world.answers import RenderedReply
from toolserver.world.model import Reply
from toolserver.world.wire import BODY_MOST, Received, RequestTooLarge, Wire, respond

PAGE = RenderedReply.of(Reply(b"0123456789" * 60, 200, "text/plain", last_modified=T))


def answered(*, method="GET", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return respond(PAGE, Received(method, "/a", named), T)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [("/a/b?c=1&d", "/a/b", "c=1&d"), ("/a", "/a", ""), ("http://host/a?b", "/a", "b")],
)
def test_a_target_is_a_path_and_a_query(target, path, query):
    received = Received("GET", target, {})
    assert (received.path, received.query) == (path, query)


@pytest.mark.parametrize(
    ("accepts", "packed"),
    [("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False), ("", False)],
)
def test_what_a_client_can_unpack_is_packed(accepts, packed):
    response = answered(accept_encoding=accepts)
    assert response.body == (PAGE.packed if packed else PAGE.reply.body)
    assert (response.headers.get("Content-Encoding") == "gzip") == packed


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_none_match": PAGE.etag}, 304),
        ({"if_none_match": f'"x", W/{PAGE.etag}'}, 304),
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": '"x"'}, 200),
        ({"if_none_match": '"x"', "if_modified_since": formatdate(T, usegmt=True)}, 200),
        ({"if_modified_since": formatdate(T, usegmt=True)}, 304),
        ({"if_modified_since": formatdate(T - 1, usegmt=True)}, 200),
        ({"if_modified_since": "yesterday"}, 200),
        ({}, 200),
    ],
)
def test_a_client_that_has_the_page_is_not_sent_it_again(headers, status):
    response = answered(**headers)
    assert response.status == status
    assert (response.body == b"") == (status == 304)


async def test_two_requests_on_one_connection_are_answered_in_turn(world):
    came = await world.raw(plain_get() + plain_get("/u/nowhere.example/", "Connection: close"))
    assert came.count(b"HTTP/1.1 ") == 2
    assert came.index(b"HTTP/1.1 200 ") == 0


async def test_a_request_body_is_read_up_to_its_bound(world):
    head = b"POST /u/api.toy.example/keyed HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (BODY_MOST + 1)
    try:
        came = await world.raw(head + b"x" * (BODY_MOST + 1))
    except anyio.BrokenResourceError as error:
        came = error.args[0]
    assert came.startswith(b"HTTP/1.1 413 ")
    assert str(RequestTooLarge()).encode() in came


async def test_what_is_not_http_is_answered_with_400(world):
    assert (await world.raw(b"\x16\x03\x01 hello\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_a_connection_that_is_closed_already_is_closed_once_more_without_a_word():
    class Closed:
        def extra(self, name, default=None):
            return default

        async def send_eof(self):
            raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    await Wire(Closed()).close()
