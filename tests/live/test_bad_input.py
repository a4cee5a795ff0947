"""What nobody should send, sent to a real server: a clear error or a closed connection, never a fault, never a hang."""

import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.live.processes import UNLIMITED, Program, started
from tests.requirements import proves
from toolserver.registry.error_codes import PROBLEMS

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TOOLS = '["tools", "tests.live.posted"]'
WAIT_S = 60.0  # a guard: who is not answered hangs
HALF_OPEN = 50
MIB = 1024 * 1024


@pytest.fixture(scope="module", params=["hypercorn", "uvicorn"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A demo without limits. When it is stopped, its log must hold no traceback; `started` sees to that."""
    also = {"TOOLSERVER_TOOLS": '["tools", "tests.live.posted_tool"]'}
    folder = tmp_path_factory.mktemp("bad")
    with started("demo", "--server", request.param, folder=folder, **UNLIMITED, **also) as program:
        yield program
        assert httpx.get(f"{program.url}/api/health").status_code == 200


class Answer(NamedTuple):
    """Status 0: the connection was closed without a word."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def exchange(server: Program, sent: bytes, *, hang_up: bool = False) -> Answer:
    """Send bytes, and read until the server closes. Raises TimeoutError when it does not."""
    with socket.create_connection(server.address, timeout=WAIT_S) as door:
        came = b""
        try:
            door.sendall(sent)
            if hang_up:
                door.shutdown(socket.SHUT_WR)
            while part := door.recv(65_536):
                came += part
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise  # everything else means: closed before all was read; what came before counts
    return read(came)


def read(came: bytes) -> Answer:
    if not came:
        return Answer(0, {}, b"")
    head, _, body = came.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


def get(target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close", *headers]
    return b"\r\n".join([*lines, b"", b""])


def post(target: bytes, body: bytes, *headers: bytes, kind: bytes = b"application/json") -> bytes:
    length = b"Content-Length: %d" % len(body)
    return get(target, b"Content-Type: " + kind, length, *headers, method=b"POST") + body


def chunked(target: bytes, chunks: list[bytes]) -> bytes:
    head = get(target, b"Content-Type: application/json", b"Transfer-Encoding: chunked", method=b"POST")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def assert_problem(answer: Answer, status: int, code: str) -> None:
    """An error of the contract."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json
    assert (body["error"], body["status"]) == (code, status)
    assert body["title"] == PROBLEMS[code].title
    assert body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["cache-control"] == "no-store"


POSTED = b"/api/posted"  # of tests/live/posted_tool.py
LONG = [b"x" * 4096] * 64
DEEP = b"[" * 20_000 + b"]" * 20_000
REFUSED = {
    "a word for a number": (get(b"/api/weather?lat=abc&lon=1"), 400, "invalid_arguments"),
    "one of a pair": (get(b"/api/weather?lat=1"), 400, "invalid_arguments"),
    "out of range": (get(b"/api/weather?lat=91&lon=1"), 400, "invalid_arguments"),
    "infinity": (get(b"/api/weather?lat=1e999&lon=1"), 400, "invalid_arguments"),
    "not a number": (get(b"/api/weather?lat=nan&lon=1"), 400, "invalid_arguments"),
    "a huge integer": (get(b"/api/climate/weather-alerts?limit=" + b"9" * 4_000), 400, "invalid_arguments"),
    "a value not of the list": (get(b"/api/climate/earthquakes?period=year"), 400, "invalid_arguments"),
    "a private address": (get(b"/api/exposure-lookup?ip=10.0.0.1"), 400, "invalid_arguments"),
    "a NUL": (get(b"/api/exposure-lookup?ip=1%00"), 400, "invalid_arguments"),
    "no UTF-8 in the query": (get(b"/api/exposure-lookup?ip=%ff%fe"), 400, "invalid_arguments"),
    "an argument twice": (get(b"/api/weather?lat=1&lat=2&lon=1"), 400, "invalid_arguments"),
    "too many arguments": (get(b"/api/forex?" + b"&".join(b"a%d=1" % i for i in range(99))), 400, "invalid_arguments"),
    "an unknown format": (get(b"/api/llm-tools?format=yaml"), 400, "invalid_arguments"),
    "a header twice": (get(b"/api/forex", b"Authorization: a", b"Authorization: b"), 400, "invalid_arguments"),
    "an unknown path": (get(b"/api/nothing"), 404, "not_found"),
    "a path with dots": (get(b"/api/../../etc/passwd"), 404, "not_found"),
    "a path with a NUL": (get(b"/api/forex%00"), 404, "not_found"),
    "a path that is no UTF-8": (get(b"/%ff%fe"), 404, "not_found"),
    "a path that ends otherwise": (get(b"/api/forex/"), 404, "not_found"),
    "a method that does not fit": (get(b"/api/forex", b"Content-Length: 0", method=b"POST"), 405, "method_not_allowed"),
    "GET where POST is meant": (get(POSTED), 405, "method_not_allowed"),
    "no JSON": (post(POSTED, b"{"), 400, "invalid_json"),
    "JSON with NaN": (post(POSTED, b'{"text": NaN}'), 400, "invalid_json"),
    "a list": (post(POSTED, b"[1]"), 400, "invalid_json"),
    "a text": (post(POSTED, b'"x"'), 400, "invalid_json"),
    "a body that is no UTF-8": (post(POSTED, b'{"text": "\xff"}'), 400, "invalid_json"),
    "a deep body": (post(POSTED, b'{"text": ' + DEEP + b"}"), 400, "invalid_json"),
    "a wrong type": (post(POSTED, b'{"text": 1}'), 400, "invalid_arguments"),
    "a NUL in the body": (post(POSTED, b'{"text": "a\\u0000b"}'), 400, "invalid_arguments"),
    "nothing": (post(POSTED, b""), 400, "invalid_arguments"),
    "a form": (post(POSTED, b"receipt=x", kind=b"application/x-www-form-urlencoded"), 415, "unsupported_media_type"),
    "too long a body": (post(POSTED, b'{"text": "' + b"x" * MIB + b'"}'), 413, "payload_too_large"),
    "too long a body in chunks": (chunked(POSTED, [b'{"text": "', *LONG, b'"}']), 413, "payload_too_large"),
}  # fmt: skip


@proves("errors.problem", "errors.codes")
@pytest.mark.parametrize("what", REFUSED)
def test_rest_refuses_with_a_problem(server: Program, what: str) -> None:
    sent, status, code = REFUSED[what]
    assert_problem(exchange(server, sent), status, code)


@proves("errors.codes")
def test_a_body_announced_as_too_long_is_refused_before_it_is_sent(server: Program) -> None:
    head = get(POSTED, b"Content-Type: application/json", b"Content-Length: 999999999", method=b"POST")
    answer = exchange(server, head)  # of the body no byte is ever sent
    assert_problem(answer, 413, "payload_too_large")
    assert answer.json["limit_bytes"] == 65_536


LINES = {
    "noise": b"\x00\x01\x02\xff\xfe" * 100 + b"\r\n\r\n",
    "a TLS greeting": bytes.fromhex("160301020001000 1fc0303".replace(" ", "")) + b"\x00" * 200 + b"\r\n\r\n",
    "a line that is none": b"HELLO\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.0\r\n\r\n",
    "a version nobody knows": b"GET /api/forex HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a header without a colon": b"GET /api/forex HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "a header with a NUL": b"GET /api/forex HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\nConnection: close\r\n\r\n",
    "a space before the colon": b"GET /api/forex HTTP/1.1\r\nHost: localhost\r\nX : a\r\nConnection: close\r\n\r\n",
    "a length below zero": get(POSTED, b"Content-Length: -5", method=b"POST"),
    "a length in words": get(POSTED, b"Content-Length: many", method=b"POST"),
    "two lengths": get(POSTED, b"Content-Length: 2", b"Content-Length: 3", method=b"POST") + b"{}",
    "a chunk size that is none": get(POSTED, b"Transfer-Encoding: chunked", method=b"POST") + b"zz\r\n{}\r\n0\r\n\r\n",
    "raw bytes in the query": get(b"/api/forex?x=\xff"),
    "a method nobody knows": get(b"/api/forex", method=b"BREW"),
    "a very long address": get(b"/" + b"a" * 200_000),
    "a very long query": get(b"/api/forex?x=" + b"a" * 200_000),
    "a very long header": get(b"/api/forex", b"X-Long: " + b"a" * 200_000),
    "very many headers": get(b"/api/forex", *[b"X-%d: %s" % (i, b"a" * 100) for i in range(5_000)]),
}


TOLERATED = {"no version", "a version nobody knows"}  # each by one of the two servers


@proves("errors.garbage")
@pytest.mark.parametrize("what", LINES)
def test_what_is_no_http_gets_an_error_or_a_closed_door(server: Program, what: str) -> None:
    answer = exchange(server, LINES[what], hang_up=True)
    assert answer.status in (0, 400, 404, 405, 413, 414, 431) or what in TOLERATED
    assert b"Traceback" not in answer.body


@proves("errors.garbage")
@pytest.mark.parametrize(
    "sent",
    [
        post(POSTED, b'{"text": "x"}')[:-5],
        get(POSTED, b"Transfer-Encoding: chunked", method=b"POST") + b"ff\r\nabc",
        get(b"/api/forex")[:30],
        b"",
    ],
    ids=["half a body", "half a chunk", "half a head", "nothing"],
)
def test_who_hangs_up_in_the_middle_leaves_no_trace(server: Program, sent: bytes) -> None:
    answer = exchange(server, sent, hang_up=True)
    assert answer.status in (0, 400)


@proves("errors.garbage")
def test_callers_who_never_finish_do_not_keep_others_from_being_answered(server: Program) -> None:
    doors = [socket.create_connection(server.address, timeout=WAIT_S) for _ in range(HALF_OPEN)]
    try:
        for number, door in enumerate(doors):
            whole = post(POSTED, b'{"text": "x"}') if number % 2 else get(b"/api/forex")
            door.sendall(whole[: len(whole) - 3])
        answer = exchange(server, get(b"/api/forex"))
    finally:
        for door in doors:
            door.close()
    assert answer.status == 200


@proves("errors.garbage")
def test_a_websocket_is_declined(server: Program) -> None:
    wanted = (b"Upgrade: websocket", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", b"Sec-WebSocket-Version: 13")
    asked = get(b"/api/forex", *wanted).replace(b"Connection: close", b"Connection: Upgrade")
    assert exchange(server, asked, hang_up=True).status in (0, 200, 400, 403, 426)


@proves("errors.garbage")
def test_old_and_odd_but_proper_requests_are_answered(server: Program) -> None:
    whole = f"http://{server.address[0]}:{server.address[1]}/api/forex".encode()
    assert exchange(server, b"GET /api/forex HTTP/1.0\r\n\r\n").status == 200
    assert exchange(server, get(whole)).status in (200, 404)
    assert exchange(server, post(POSTED, b'{"text": "x"}', b"Expect: 100-continue")).status in (100, 200)


MCP = b"/api/mcp"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
DEEP_CALL = (
    json.dumps(CALL | {"params": {"name": "forex", "arguments": {"x": "DEEP"}}}).encode().replace(b'"DEEP"', DEEP)
)


def call(params: Any, **more: Any) -> bytes:
    return post(MCP, json.dumps({**CALL, "params": params, **more}).encode())


FAULTY = {
    "no JSON": (post(MCP, b"{"), -32700),
    "no UTF-8": (post(MCP, b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}'), -32700),
    "too deep": (post(MCP, DEEP_CALL), -32700),
    "nothing": (post(MCP, b""), -32700),
    "a batch": (post(MCP, b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]'), -32600),
    "a number": (post(MCP, b"1"), -32600),
    "another version": (post(MCP, b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}'), -32600),
    "an id that is a list": (post(MCP, b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}'), -32600),
    "a method that is a number": (post(MCP, b'{"jsonrpc": "2.0", "id": 1, "method": 1}'), -32600),
    "a method nobody knows": (post(MCP, b'{"jsonrpc": "2.0", "id": 1, "method": "brew"}'), -32601),
    "params that are a list": (call([1]), -32602),
    "an unknown tool": (call({"name": "brew", "arguments": {}}), -32602),
    "a tool name that is a number": (call({"name": 1}), -32602),
    "arguments that are a list": (call({"name": "forex", "arguments": [1]}), -32602),
    "an unknown toolset": (post(MCP + b"?toolset=every", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'), -32602),
    "a form": (post(MCP, b"x=1", kind=b"application/x-www-form-urlencoded"), -32600),
    "too long": (post(MCP, b'{"x": "' + b"x" * MIB + b'"}'), -32600),
}  # fmt: skip


@proves("errors.mcp")
@pytest.mark.parametrize("what", FAULTY)
def test_mcp_refuses_with_a_json_rpc_error(server: Program, what: str) -> None:
    sent, code = FAULTY[what]
    answer = exchange(server, sent)
    assert answer.status in (200, 400, 404, 413, 415), answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["jsonrpc"] == "2.0"
    assert answer.json["error"]["code"] == code, answer.json
    assert "Traceback" not in answer.body.decode()


@proves("errors.mcp")
@pytest.mark.parametrize(
    "arguments",
    [
        {"lat": "north", "lon": 1},
        {"lat": 10**400, "lon": 1},
        {"lat": 1},
        {"lat": [[[]]], "lon": {}},
        {"lat": "1\0", "lon": 1},
        {"lat": True, "lon": None},
    ],
    ids=lambda arguments: repr(arguments)[:40],
)
def test_mcp_says_in_words_what_is_wrong_with_arguments(server: Program, arguments: dict[str, Any]) -> None:
    answer = exchange(
        server, call({"name": "weather", "arguments": arguments}).replace(b"/api/mcp", b"/api/mcp?toolset=all")
    )
    result = answer.json["result"]
    assert answer.status == 200
    assert result["isError"] is True
    assert "structuredContent" not in result
    said = json.loads(result["content"][0]["text"])
    assert said["error"] == "invalid_arguments"
    assert said["detail"]
