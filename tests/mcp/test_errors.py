"""Messages that are refused before they are answered: each with its JSON-RPC code, its HTTP status and its id."""

import json

import pytest

from toolserver.mcp.messages import (
    LEGACY,
    MODERN,
    VERSION_KEY,
    MessageRefusal,
    check_repeated_headers,
    check_version,
    has_modern_envelope,
    parse_message,
    read_id,
)

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


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1),
        (b'{"jsonrpc":"2.0","id":"a"}', "a"),
        (b'{"jsonrpc":"2.0","result":{}}', None),
        (b'{"jsonrpc":"2.0","id":"a","error":{"code":"1","message":"x"}}', "a"),
        (b'{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":2}}', "a"),
        (b'{"jsonrpc":"2.0","id":"a","error":"x"}', "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 1),
    ],
)
def test_a_refusal_answers_the_id_that_it_could_read(body, value):
    with pytest.raises(MessageRefusal) as refused:
        parse_message(body)
    assert (refused.value.value, json.loads(refused.value.body)["id"]) == (value, value)


def test_a_refusal_as_bytes_has_its_code_its_words_and_its_data():
    refusal = MessageRefusal(418, -32000, "no", data={"a": 1}, value=7, headers=((b"x", b"y"),))
    assert (refusal.status, refusal.headers) == (418, ((b"x", b"y"),))
    error = {"code": -32000, "message": "no", "data": {"a": 1}}
    assert json.loads(refusal.body) == {"jsonrpc": "2.0", "id": 7, "error": error}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "`params.name`"),
        ({"name": 5}, "`params.name`"),
        ({"name": None, "arguments": {}}, "`params.name`"),
        ({"name": "word", "arguments": [1]}, "`params.arguments`"),
        ({"name": "word", "arguments": "x"}, "`params.arguments`"),
    ],
)
@pytest.mark.parametrize("modern", [False, True])
def test_a_malformed_call_is_told_which_member_it_lacks_with_the_status_of_its_era(params, words, modern):
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    if modern:
        call["params"] = params | {"_meta": {VERSION_KEY: MODERN}}
    with pytest.raises(MessageRefusal, match=words) as refused:
        parse_message(json.dumps(call).encode())
    assert (refused.value.status, refused.value.code, refused.value.value) == (400 if modern else 200, -32602, 7)


def test_a_call_needs_a_name_and_no_arguments_and_only_a_request_is_judged():
    for call in (
        {"id": 1, "method": "tools/call", "params": {"name": "word"}},
        {"id": 1, "method": "tools/call", "params": {"name": "word", "arguments": None}},
        {"id": 1, "method": "tools/call", "params": {"name": "word", "arguments": {"a": 1}}},
        {"method": "tools/call", "params": {}},
        {"id": 1, "method": "prompts/get", "params": {}},
    ):
        message = {"jsonrpc": "2.0", **call}
        assert parse_message(json.dumps(message).encode()) == message
    with pytest.raises(MessageRefusal, match=r"`params\.name`"):
        parse_message(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}')


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
        ({"method": "ping", "params": {"_meta": {}}}, False),
        ({"method": "ping", "params": []}, False),
    ],
)
def test_the_envelope_is_looked_for_in_the_params(message, modern):
    assert has_modern_envelope(message) is modern


def test_a_modern_message_needs_its_version_header():
    for version, strict in ((MODERN, True), (LEGACY[0], False), ("x", True)):
        check_version(MODERN_PING, version.encode(), strict=strict)
    for version, strict, said in ((None, False, "is missing"), (LEGACY[0].encode(), True, "names another version")):
        with pytest.raises(MessageRefusal, match=said) as refused:
            check_version(MODERN_PING, version, strict=strict)
        assert (refused.value.status, refused.value.code, refused.value.value) == (400, -32020, 7)
    check_version(MODERN_PING | {"method": "initialize"}, None, strict=True)
    check_version({"method": "ping"}, None, strict=True)


@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"mcp-method", b"mcp-name"])
def test_a_header_that_routes_a_message_appears_once(name):
    check_repeated_headers([(name, b"a"), (b"accept", b"x"), (b"accept", b"y")])
    with pytest.raises(MessageRefusal, match=name.decode()) as refused:
        check_repeated_headers([(name, b"a"), (name, b"a")])
    assert (refused.value.status, refused.value.code) == (400, -32020)
