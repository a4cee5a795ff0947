"""Messages that are refused before they are answered: each with its JSON-RPC code, its HTTP status and its id."""

import json

import pytest

from toolserver.mcp.errors import (
    MessageRefusal,
    check_repeated_headers,
    check_version,
    has_modern_envelope,
    parse_message,
    read_id,
)
from toolserver.mcp.messages import LEGACY, MODERN, VERSION_KEY

MODERN_PING = {"method": "ping", "id": 7, "params": {"_meta": {VERSION_KEY: MODERN}}}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'"\xff"', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"1", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    ],
)
def test_what_is_no_message_is_refused_with_400(body, code):
    with pytest.raises(MessageRefusal) as refused:
        parse_message(body)

    assert (refused.value.status, refused.value.code) == (400, code)
    assert json.loads(refused.value.body)["error"]["code"] == code


def test_requests_notifications_and_responses_are_messages():
    for body in (
        b'{"jsonrpc":"2.0","id":"a","method":"ping"}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
    ):
        assert parse_message(body) == json.loads(body)


def test_the_id_is_read_where_there_is_a_proper_one():
    assert read_id(b'{"jsonrpc":"2.0","id":"a","method":"ping"}') == "a"
    assert read_id(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}') is None
    assert read_id(b"{") is None


@pytest.mark.parametrize(
    ("message", "modern"),
    [
        (MODERN_PING, True),
        ({"method": "ping"}, False),
        ({"method": "ping", "params": None}, False),
        ({"method": "ping", "params": {"_meta": []}}, False),
    ],
)
def test_the_envelope_is_looked_for_in_the_params(message, modern):
    assert has_modern_envelope(message) is modern


def test_a_modern_message_needs_its_version_header():
    for version, strict in ((MODERN, True), (LEGACY[0], False), ("x", True)):
        check_version(MODERN_PING, version.encode(), strict=strict)
    for version, strict in ((None, False), (LEGACY[0].encode(), True)):
        with pytest.raises(MessageRefusal) as refused:
            check_version(MODERN_PING, version, strict=strict)
        assert (refused.value.code, refused.value.value) == (-32020, 7)
    check_version(MODERN_PING | {"method": "initialize"}, None, strict=True)
    check_version({"method": "ping"}, None, strict=True)


@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"mcp-method", b"mcp-name"])
def test_a_header_that_routes_a_message_appears_once(name):
    check_repeated_headers([(name, b"a"), (b"accept", b"x"), (b"accept", b"y")])
    with pytest.raises(MessageRefusal, match=name.decode()):
        check_repeated_headers([(name, b"a"), (name, b"a")])
