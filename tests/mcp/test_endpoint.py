"""The endpoint over raw HTTP: what clients, browsers and attackers send that is not quite a common call."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from tests.mcp.service import BASE_URL, POOR, TOKEN, Service, asked, headers_for, running
from tests.requirements import proves
from toolserver.mcp import messages
from toolserver.mcp.sdk import Sdk

JSON = {"content-type": "application/json"}
CALL = asked("tools/call", {"name": "word", "arguments": {}})
MODERN_CALL = asked("tools/call", {"name": "word", "arguments": {}}, modern=True)
MODERN_HEADERS = headers_for(MODERN_CALL, messages.MODERN)
HUGE_INTEGER, HUGE_FLOAT = b"9" * 5000, b"1e999"
ECHO = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x","times":%s}}}'
DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with running() as made:
        yield made


@pytest.fixture
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with service.client() as client:
        yield client


async def post(http: httpx.AsyncClient, message: Any, headers: Any = JSON, query: str = "") -> httpx.Response:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return await http.post(f"/api/mcp{query}", content=body, headers=headers)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The JSON-RPC error of an answer, which must hold nothing of our inside."""
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["access-control-allow-origin"] == "*"
    told = answer.json()
    assert told["jsonrpc"] == "2.0"
    assert "Traceback" not in answer.text
    assert "pydantic" not in answer.text
    return told["error"] | {"id": told["id"]}


# --- what works without ceremony ---


@proves("mcp.json-rpc", "mcp.structured-equals-text")
async def test_a_plain_post_without_accept_and_handshake_calls_a_tool(service: Service) -> None:
    async with service.client(headers={"accept": ""}) as http:
        del http.headers["accept"]
        answer = await post(http, CALL)

    result = answer.json()["result"]
    assert answer.status_code == 200
    assert result["structuredContent"]["data"]["word"] == 'gl"ück\\'
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


async def test_the_sdk_is_prepared_once_with_the_first_message_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = anyio.Event()
    times = 0

    async def prepare(sdk: Sdk) -> None:
        nonlocal times
        times += 1
        prepared.set()

    monkeypatch.setattr(Sdk, "prepare", prepare)
    async with running() as service, service.client() as http:
        await http.get("/api/mcp")
        await anyio.wait_all_tasks_blocked()
        assert times == 0
        await post(http, CALL)
        with anyio.fail_after(5):
            await prepared.wait()
        await post(http, CALL)
        await anyio.wait_all_tasks_blocked()
        assert times == 1


async def test_the_sdk_also_takes_a_post_without_accept(service: Service) -> None:
    async with service.client() as http:
        del http.headers["accept"]
        answer = await post(http, asked("prompts/list"))

    assert error_of(answer)["code"] == -32601


async def test_the_same_bytes_are_sent_until_they_expire(http: httpx.AsyncClient, service: Service) -> None:
    first = await post(http, CALL)
    service.clock.advance(50)
    second = await post(http, CALL)
    service.clock.advance(11)
    third = await post(http, CALL)

    assert first.content == second.content != third.content
    assert service.desk.asked == ["today", "today"]


async def test_every_answer_names_its_request(http: httpx.AsyncClient) -> None:
    made = await post(http, CALL)
    given = await post(http, CALL, JSON | {"x-request-id": "my-request-1"})
    insane = await post(http, CALL, JSON | {"x-request-id": 'a"b'})

    assert made.headers["x-request-id"].startswith("req_")
    assert given.headers["x-request-id"] == "my-request-1"
    assert insane.headers["x-request-id"].startswith("req_")


async def test_a_modern_body_under_a_legacy_header_is_legacy(http: httpx.AsyncClient) -> None:
    answer = await post(http, MODERN_CALL, JSON | {"mcp-protocol-version": "2025-11-25"})

    assert answer.status_code == 200
    assert "resultType" not in answer.json()["result"]


async def test_strict_versions_refuse_a_modern_body_under_a_legacy_header() -> None:
    async with running(strict_versions=True) as service, service.client() as http:
        answer = await post(http, MODERN_CALL, JSON | {"mcp-protocol-version": "2025-11-25"})

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32020
    assert error_of(answer)["id"] == 1


async def test_a_name_in_base64_is_read(http: httpx.AsyncClient) -> None:
    name = f"=?base64?{base64.b64encode(b'word').decode()}?="
    answer = await post(http, MODERN_CALL, MODERN_HEADERS | {"mcp-name": name})

    assert answer.status_code == 200
    assert answer.json()["result"]["isError"] is False


async def test_a_notification_is_accepted_without_an_answer(http: httpx.AsyncClient) -> None:
    answer = await post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"})

    assert (answer.status_code, answer.content) == (202, b"")
    assert answer.headers["access-control-allow-origin"] == "*"


# --- headers and body must agree ---


@pytest.mark.parametrize(
    "headers",
    [
        {name: value for name, value in MODERN_HEADERS.items() if name != "mcp-protocol-version"},
        {name: value for name, value in MODERN_HEADERS.items() if name != "mcp-method"},
        {name: value for name, value in MODERN_HEADERS.items() if name != "mcp-name"},
        MODERN_HEADERS | {"mcp-method": "tools/list"},
        MODERN_HEADERS | {"mcp-method": "Tools/Call"},
        MODERN_HEADERS | {"mcp-name": "echo"},
        JSON,
    ],
)
async def test_headers_that_do_not_fit_a_modern_message_are_refused(http: httpx.AsyncClient, headers: Any) -> None:
    answer = await post(http, MODERN_CALL, headers)

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32020


@pytest.mark.parametrize("twin", ["mcp-protocol-version", "mcp-method", "mcp-name"])
@pytest.mark.parametrize("version", ["2025-11-25", messages.MODERN])
async def test_a_routing_header_given_twice_is_refused(http: httpx.AsyncClient, twin: str, version: str) -> None:
    headers = MODERN_HEADERS | {"mcp-protocol-version": version}
    answer = await post(http, MODERN_CALL, [*headers.items(), (twin, headers[twin])])

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32020
    assert error_of(answer)["id"] == 1


async def test_other_headers_may_come_twice(http: httpx.AsyncClient) -> None:
    answer = await post(http, CALL, [*JSON.items(), ("via", "1.1 a"), ("via", "1.1 b")])

    assert answer.status_code == 200


async def test_an_unknown_version_is_told_the_known_ones(http: httpx.AsyncClient) -> None:
    message = asked("tools/list", {"_meta": {messages.VERSION_KEY: "2099-01-01"}}, modern=True)
    headers = JSON | {"mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list"}
    answer = await post(http, message, headers)

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32022
    assert error_of(answer)["data"] == {"supported": [messages.MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("missing", [messages.VERSION_KEY, messages.CAPABILITIES_KEY])
async def test_an_incomplete_envelope_is_refused(http: httpx.AsyncClient, missing: str) -> None:
    message = asked("tools/call", {"name": "word"}, modern=True)
    del message["params"]["_meta"][missing]
    answer = await post(http, message, MODERN_HEADERS)

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32602


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "foo/bar"])
async def test_methods_that_the_modern_era_does_not_have_are_not_found(http: httpx.AsyncClient, method: str) -> None:
    message = asked(method, modern=True)
    answer = await post(http, message, headers_for(message, messages.MODERN))

    assert answer.status_code == 404
    assert error_of(answer)["code"] == -32601


# --- what is not a message ---


@proves("errors.mcp-protocol")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"not json", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xff"}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","\xff":1}', -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\xff"}}}',
            -32700,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\x00"}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (ECHO % HUGE_FLOAT, -32700),
        (ECHO % HUGE_INTEGER, -32700),
        (ECHO.replace(b"tools/call", b"prompts/list") % HUGE_INTEGER, -32700),
        (DEEP, -32700),
        (b"[" * 50_000 + b"]" * 50_000, -32600),
        (b"null", -32600),
        (b'"ping"', -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":""}', -32602),
    ],
)
@pytest.mark.parametrize("headers", [JSON, JSON | {"mcp-protocol-version": messages.MODERN, "mcp-method": "ping"}])
async def test_what_is_no_message_gets_a_clean_error(headers: Any, body: bytes, code: int) -> None:
    async with running(body_limit=1_000_000) as service, service.client() as http:
        answer = await post(http, body, headers)

    assert answer.status_code == 400
    assert error_of(answer)["code"] in (code, -32700 if body.startswith(b"[[") else code)


async def test_an_id_of_any_size_comes_back(http: httpx.AsyncClient) -> None:
    answer = await post(http, b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}')

    assert answer.json()["id"] == 123456789012345678901234567890


@proves("errors.mcp-protocol")
@pytest.mark.parametrize(
    "params",
    [
        {"name": "nope"},
        {"name": "nope", "arguments": {}},
        {"name": ""},
        {},
        {"name": 5},
        {"name": "word", "arguments": [1]},
        {"name": "word", "arguments": "x"},
    ],
)
@pytest.mark.parametrize("modern", [False, True])
async def test_an_unknown_tool_or_a_malformed_call_is_a_protocol_error(
    http: httpx.AsyncClient, params: Any, modern: bool
) -> None:
    message = asked("tools/call", params, modern=modern)
    headers = JSON | {"mcp-protocol-version": messages.MODERN, "mcp-method": "tools/call"} if modern else JSON
    if modern and isinstance(params.get("name"), str):
        headers = headers | {"mcp-name": params["name"]}
    answer = await post(http, message, headers)

    assert error_of(answer)["code"] in (-32602, -32020)
    assert answer.status_code == (400 if modern else 200)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "wrd"}, "Did you mean word?"),
        ({"name": "word", "arguments": [1]}, "`params.arguments` must be a JSON object"),
        ({"arguments": {}}, "`params.name` must be the name of a tool"),
    ],
)
async def test_a_malformed_call_is_told_what_it_needs(http: httpx.AsyncClient, params: Any, words: str) -> None:
    assert words in error_of(await post(http, asked("tools/call", params)))["message"]


@proves("operations.by-name", "operations.refusal")
async def test_without_a_choice_every_tool_can_be_called_and_with_one_the_refusal_names_the_toolset(
    http: httpx.AsyncClient,
) -> None:
    called = await post(http, asked("tools/call", {"name": "coin"}))
    assert "error" not in called.json()
    refused = await http.post("/api/mcp?toolset=core", json=asked("tools/call", {"name": "coin"}), headers=JSON)
    assert "?toolset=all" in error_of(refused)["message"]
    assert error_of(refused)["data"] == {"did_you_mean": ["coin"]}


async def test_only_a_call_is_one_also_where_another_request_has_the_name_of_a_tool(http: httpx.AsyncClient) -> None:
    await post(http, CALL)
    for method in ("prompts/get", "no/such"):
        assert error_of(await post(http, asked(method, {"name": "word"})))["code"] == -32601


async def test_a_call_of_an_unknown_tool_takes_no_sdk_and_a_malformed_one_does(
    http: httpx.AsyncClient, service: Service
) -> None:
    counts = service.pipeline.metrics.mcp_messages
    for params in ({"name": "nope"}, {"name": "nope", "arguments": {}}, {"name": "nope", "arguments": None}):
        assert error_of(await post(http, asked("tools/call", params)))["id"] == 1
    assert (counts.taken, counts.by_sdk) == (3, 0)
    for params in ({"name": ""}, {"name": "nope", "requestState": "x"}):
        assert error_of(await post(http, asked("tools/call", params)))["code"] == -32602
    assert (counts.taken, counts.by_sdk) == (5, 2)


async def test_a_message_that_could_only_be_read_in_part_gets_its_id_back(http: httpx.AsyncClient) -> None:
    assert error_of(await post(http, b'{"jsonrpc":"2.0","id":1,"method":5}'))["id"] == 1
    assert error_of(await post(http, b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}'))["id"] == "a"


async def test_a_cursor_nobody_gave_out_is_refused(http: httpx.AsyncClient) -> None:
    answer = await post(http, asked("tools/list", {"cursor": "abc"}))

    assert error_of(answer)["code"] == -32602


# --- bounds ---


async def test_a_body_over_the_limit_is_refused_before_it_is_read_to_the_end(service: Service) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10_000_000:
            sent += 10_000
            yield b"x" * 10_000

    async with service.client() as http:
        answer = await http.post("/api/mcp", content=endless(), headers=JSON)

    assert answer.status_code == 413
    assert error_of(answer)["data"] == {"limit_bytes": 65536}
    assert sent <= 17 * 65536 + 10_000  # what is read on to learn its id is bounded, and not kept


async def test_a_refusal_of_a_long_message_has_its_id_wherever_a_client_writes_it(http: httpx.AsyncClient) -> None:
    long = asked("tools/call", {"name": "echo", "arguments": {"text": "x" * 200_000}}, value="first")
    last = {"method": long["method"], "params": long["params"], "jsonrpc": "2.0", "id": "last"}
    for message in (long, last):
        answer = await http.post("/api/mcp", json=message, headers=JSON)
        assert (answer.status_code, answer.json()["id"]) == (413, message["id"])


@pytest.mark.parametrize("params", [{"notifications": {"toolsListChanged": True}}, {}])
async def test_listening_is_refused_with_a_body_to_clients_that_accept_no_stream(
    http: httpx.AsyncClient, params: dict[str, Any]
) -> None:
    message = asked("subscriptions/listen", params, modern=True)
    headers = headers_for(message, messages.MODERN)
    both, plain = [
        await http.post("/api/mcp", json=message, headers=headers | {"accept": accept})
        for accept in ("application/json, text/event-stream", "application/json")
    ]

    assert (plain.status_code, plain.json()) == (both.status_code, both.json())
    assert error_of(plain)["code"] == (-32601 if params else -32602)


async def test_a_body_at_the_limit_is_read(http: httpx.AsyncClient) -> None:
    body = json.dumps(CALL).encode()
    answer = await post(http, body + b" " * (65_536 - len(body)))

    assert answer.status_code == 200


async def test_a_body_in_pieces_is_put_together(http: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in json.dumps(CALL).encode():
            yield bytes([byte])

    answer = await http.post("/api/mcp", content=pieces(), headers=JSON)

    assert answer.json()["result"]["isError"] is False


@pytest.mark.slow("it waits for twenty seconds")
async def test_a_body_that_never_ends_is_given_up(service: Service) -> None:
    events = iter([{"type": "http.request", "body": b"{", "more_body": True}])
    sent: list[Any] = []

    async def receive() -> Any:
        for event in events:
            return event
        await anyio.sleep_forever()

    async def send(event: Any) -> None:
        sent.append(event)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/api/mcp", "query_string": b"", "headers": headers}
    await service.endpoint(scope, receive, send)

    assert sent[0]["status"] == 408


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_another_media_type_is_refused(http: httpx.AsyncClient, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await post(http, CALL, headers)

    assert answer.status_code == 415
    assert error_of(answer)["code"] == -32600


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_may_be_spelled_in_other_ways(http: httpx.AsyncClient, content_type: str) -> None:
    assert (await post(http, CALL, {"content-type": content_type})).status_code == 200


@pytest.mark.parametrize(
    ("accept", "status"),
    [("*/*", 200), ("application/*;q=0.5", 200), ("text/event-stream, application/json", 200), ("text/html", 406)],
)
async def test_the_accept_header_is_heeded(http: httpx.AsyncClient, accept: str, status: int) -> None:
    assert (await post(http, CALL, JSON | {"accept": accept})).status_code == status


# --- other methods ---


async def test_a_stream_cannot_be_opened(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/mcp", headers={"accept": "text/event-stream"})

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@proves("mcp.get")
async def test_a_person_who_opens_the_address_reads_what_it_is(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/mcp", headers={"accept": "text/html"})
    head = await http.head("/api/mcp", headers={"accept": "text/html"})

    assert answer.json()["url"] == f"{BASE_URL}/api/mcp"
    assert answer.json()["tools"] == {"core": 3, "all": 5}
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(answer.content))


@pytest.mark.parametrize(("method", "allow"), [("DELETE", "POST"), ("PUT", "GET, HEAD, POST, OPTIONS")])
async def test_other_methods_are_not_allowed(http: httpx.AsyncClient, method: str, allow: str) -> None:
    answer = await http.request(method, "/api/mcp")

    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert error_of(answer)["code"] == -32600


async def test_a_browser_may_call_from_any_page(http: httpx.AsyncClient) -> None:
    asks = {"origin": "https://app.example", "access-control-request-method": "POST"}
    preflight = await http.options("/api/mcp", headers=asks)
    answer = await post(http, CALL, JSON | {"origin": "https://app.example"})

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert {"mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "authorization"} <= set(
        preflight.headers["access-control-allow-headers"].split(", ")
    )
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "x-credits-remaining" in answer.headers["access-control-expose-headers"]


# --- host and origin ---


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8080", None, 200),
        ("localhost:1234", None, 200),
        ("[::1]:8080", None, 200),
        ("LOCALHOST", "http://localhost:3000", 200),
        ("127.0.0.1", "http://127.0.0.1", 200),
        ("named.test:80", "https://page.test", 200),
        ("evil.com", None, 421),
        ("localhost.evil.com", None, 421),
        ("evil.com:127.0.0.1", None, 421),
        ("", None, 421),
        ("[", None, 421),
        ("127.0.0.1", "http://evil.com", 403),
        ("127.0.0.1", "null", 403),
        ("127.0.0.1", "https://localhost.evil.com", 403),
        ("127.0.0.1", "file://localhost", 403),
    ],
)
async def test_a_server_on_this_machine_answers_only_to_this_machine(
    host: str, origin: str | None, status: int
) -> None:
    headers = JSON | {"host": host} | ({"origin": origin} if origin else {})
    allowed = {"allowed_hosts": ["named.test"], "allowed_origins": ["https://page.test"]}
    async with running(base_url="http://127.0.0.1:8080", **allowed) as service, service.client() as http:
        for message in (CALL, asked("prompts/list")):
            answer = await post(http, message, headers)
            assert answer.status_code == status
        page = await http.get("/api/mcp", headers=headers)
        preflight = await http.options("/api/mcp", headers=headers)

    assert page.status_code == status
    assert preflight.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_public_server_answers_to_any_name(http: httpx.AsyncClient) -> None:
    answer = await post(http, CALL, JSON | {"host": "whatever.example", "origin": "https://evil.com"})

    assert answer.status_code == 200


# --- the choice of tools ---


async def listed(http: httpx.AsyncClient, query: str = "", **headers: str) -> list[str]:
    answer = await post(http, asked("tools/list"), JSON | headers, query)
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


@proves("operations.choice")
async def test_a_client_chooses_its_tools_by_query_or_header(http: httpx.AsyncClient) -> None:
    core, everything = ["echo", "word", "oracle"], ["echo", "word", "broken", "coin", "oracle"]

    assert await listed(http) == core
    assert await listed(http, "?toolset=core") == core
    assert await listed(http, "?toolset=all&utm_source=x") == everything
    assert await listed(http, **{"x-mcp-toolset": "all"}) == everything
    assert await listed(http, "?tools=word,%20coin") == ["word", "coin"]
    assert await listed(http, **{"x-mcp-tools": "coin"}) == ["coin"]
    assert await listed(http, "?toolset=core", **{"x-mcp-toolset": "all"}) == core


@proves("operations.alias")
async def test_an_alias_chooses_its_tool_and_is_not_listed(http: httpx.AsyncClient) -> None:
    assert await listed(http, "?tools=parrot") == ["echo"]


@proves("operations.outside")
@pytest.mark.parametrize("query", ["?tools=word", "?toolset=core"])
async def test_a_tool_outside_the_choice_cannot_be_called(http: httpx.AsyncClient, query: str) -> None:
    answer = await post(http, asked("tools/call", {"name": "coin"}), JSON, query)

    assert error_of(answer)["code"] == -32602
    assert "Unknown tool" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("query", "named"),
    [("?toolset=everything", "toolsets"), ("?tools=word,nope", "tools"), ("?output_schema=maybe", "output_schema")],
)
async def test_an_unknown_choice_names_the_valid_ones(http: httpx.AsyncClient, query: str, named: str) -> None:
    answer = await post(http, asked("tools/list", value="mine"), JSON, query)

    assert answer.status_code == 400
    assert error_of(answer)["code"] == -32602
    assert error_of(answer)["data"][named]
    assert error_of(answer)["id"] == "mine"
    assert (await http.get(f"/api/mcp{query}")).status_code == 400


@proves("arguments.address")
async def test_what_registries_append_to_the_address_is_ignored(http: httpx.AsyncClient) -> None:
    plain = await post(http, CALL)
    appended = await post(http, CALL, query="?utm_source=registry&api_key=x&session=1")

    assert (plain.status_code, appended.status_code) == (200, 200)
    assert appended.content == plain.content


async def test_output_schemas_can_be_left_out(http: httpx.AsyncClient) -> None:
    with_them = await post(http, asked("tools/list"))
    without = await post(http, asked("tools/list"), JSON, "?output_schema=off")

    assert all("outputSchema" in tool for tool in with_them.json()["result"]["tools"])
    assert not any("outputSchema" in tool for tool in without.json()["result"]["tools"])


async def test_many_different_choices_are_not_all_kept(service: Service, http: httpx.AsyncClient) -> None:
    for number in range(600):
        await listed(http, f"?toolset=core&n={number}")

    assert len(service.endpoint.admission.verdicts) <= 512


# --- failures are results ---


def told(answer: httpx.Response) -> dict[str, Any]:
    """The body inside a failed result."""
    assert answer.status_code == 200
    result = answer.json()["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    return json.loads(result["content"][0]["text"])


@proves("errors.mcp", "mcp.bearer")
@pytest.mark.parametrize(
    ("token", "code"),
    [
        (None, "missing_token"),
        ("nonsense", "invalid_token"),
        ("svc_live_" + "0" * 64, "invalid_token"),
        (POOR, "insufficient_credits"),
    ],
)
async def test_a_premium_tool_without_credits_says_what_to_do(
    http: httpx.AsyncClient, token: str | None, code: str
) -> None:
    headers = JSON | ({"authorization": f"bearer {token}"} if token else {})
    body = told(await post(http, asked("tools/call", {"name": "oracle"}), headers))

    assert body["error"] == code
    assert body["signup"] == f"{BASE_URL}/docs/payments"
    assert body["pricing"] == {"1 USD": "50 credits"}
    assert body["detail"]
    assert body["request_id"].startswith("req_")
    assert code != "insufficient_credits" or (body["required"], body["credits_remaining"]) == (2, 1)


@proves("mcp.credits", "mcp.receipt", "mcp.bearer", "mcp.charges", "mcp.structured-equals-text")
async def test_a_paid_result_says_what_is_left_in_all_three_places(http: httpx.AsyncClient, service: Service) -> None:
    headers = JSON | {"authorization": f"Bearer {TOKEN}"}
    answer = await post(http, asked("tools/call", {"name": "oracle"}), headers)

    result = answer.json()["result"]
    note = {"credits_remaining": 98, "credits_charged": 2, "receipt_id": "rcpt_0123"}
    assert result["_meta"] == {"receipt": "head.body.signature", **note}
    assert result["structuredContent"]["_meta"].items() >= note.items()
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert answer.headers["x-credits-remaining"] == "98"


@proves("mcp.rest-payload")
async def test_a_paid_result_but_for_the_credits_is_the_rest_payload(http: httpx.AsyncClient, service: Service) -> None:
    headers = JSON | {"authorization": f"Bearer {TOKEN}"}
    structured = (await post(http, asked("tools/call", {"name": "oracle"}), headers)).json()["result"][
        "structuredContent"
    ]
    operation = service.registry["oracle"]
    outcome = await service.pipeline.call(operation, {}, service.caller(token=TOKEN))

    for name in outcome.note.as_json():
        del structured["_meta"][name]
    assert structured == json.loads(outcome.rendered.payload)


@proves("mcp.credits", "mcp.charged")
@pytest.mark.parametrize("limits", [False, True])
async def test_a_free_result_says_what_a_token_has_left_and_that_nothing_was_charged(limits: bool) -> None:
    """Fresh, from the cache, and after the token has spent in between."""
    headers = JSON | {"authorization": f"Bearer {TOKEN}"}
    seen = []
    async with running(limited=limits) as service, service.client() as http:
        for name in ("word", "word", "oracle", "word", "word"):
            answer = await post(http, asked("tools/call", {"name": name}), headers)
            service.clock.advance(31)
            result = answer.json()["result"]
            note = result["structuredContent"]["_meta"]
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            assert result["_meta"]["credits_remaining"] == note["credits_remaining"]
            assert answer.headers["x-credits-remaining"] == str(note["credits_remaining"])
            seen.append((name, note["credits_charged"], note["credits_remaining"], "receipt_id" in note))
    free, after = ("word", 0, 100, False), ("word", 0, 98, False)
    assert seen == [free, free, ("oracle", 2, 98, True), after, after]


@proves("mcp.charged")
@pytest.mark.parametrize("token", [None, "svc_live_" + "00" * 32, "svc_live_short"])
async def test_a_free_result_says_nothing_of_credits_without_a_valid_token(http: httpx.AsyncClient, token: str) -> None:
    headers = JSON | ({"authorization": f"Bearer {token}"} if token else {})
    for _ in range(2):
        result = (await post(http, asked("tools/call", {"name": "word"}), headers)).json()["result"]
        assert "_meta" not in result
        assert not {"credits_charged", "credits_remaining"} & result["structuredContent"]["_meta"].keys()


async def test_a_free_result_within_the_same_second_is_from_memory_and_knows_what_was_spent(service: Service) -> None:
    headers = JSON | {"authorization": f"Bearer {TOKEN}"}
    left = []
    async with service.client() as http:
        for name in ("word", "word", "oracle", "word"):
            result = (await post(http, asked("tools/call", {"name": name}), headers)).json()["result"]
            left.append(result["_meta"]["credits_remaining"])
    assert left == [100, 100, 98, 98]


@proves("mcp.charges", "charge.idempotent", "idempotency.mcp")
async def test_an_idempotency_key_in_meta_is_charged_once(http: httpx.AsyncClient, service: Service) -> None:
    headers = JSON | {"authorization": f"Bearer {TOKEN}"}
    message = asked("tools/call", {"name": "oracle", "_meta": {"idempotency_key": "k1"}})
    first, second = await post(http, message, headers), await post(http, message, headers)
    other = asked("tools/call", {"name": "oracle", "arguments": {"question": "x"}, "_meta": {"idempotency_key": "k1"}})

    assert first.content == second.content
    assert await service.ledger.balance(TOKEN) == 98
    assert told(await post(http, other, headers))["error"] == "idempotency_conflict"


@proves("errors.mcp")
async def test_bad_arguments_are_a_result_that_names_them(http: httpx.AsyncClient) -> None:
    body = told(await post(http, asked("tools/call", {"name": "echo", "arguments": {"text": "x", "times": 99}})))

    assert body["error"] == "invalid_arguments"
    assert body["status"] == 400
    assert body["type"] == f"{BASE_URL}/problems/invalid_arguments"
    assert body["errors"][0]["loc"] == "times"


async def test_an_unforeseen_failure_tells_nothing_of_the_inside(http: httpx.AsyncClient) -> None:
    answer = await post(http, asked("tools/call", {"name": "broken"}), JSON, "?toolset=all")
    body = told(answer)

    assert body["error"] == "internal_error"
    assert body["request_id"] == answer.headers["x-request-id"]
    assert "inside" not in answer.text


async def test_an_unforeseen_failure_of_the_endpoint_is_a_clean_error(
    http: httpx.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.endpoint, "answer_at_once", None)
    answer = await post(http, CALL)

    assert answer.status_code == 500
    assert error_of(answer)["code"] == -32603
    assert error_of(answer)["id"] == 1
    assert error_of(answer)["data"] == {"request_id": answer.headers["x-request-id"]}


async def test_a_key_that_is_no_text_is_refused(http: httpx.AsyncClient) -> None:
    message = asked("tools/call", {"name": "oracle", "_meta": {"idempotency_key": 5}})

    assert error_of(await post(http, message))["code"] == -32602


async def test_spellings_of_arguments_are_forgotten_when_there_are_many(
    http: httpx.AsyncClient, service: Service
) -> None:
    for number in range(300):
        await post(http, asked("tools/call", {"name": "echo", "arguments": {"text": f"number {number}"}}))
    await post(http, asked("tools/call", {"name": "echo", "arguments": {"text": "x", "padding": "y" * 600}}))

    assert 0 < len(service.endpoint.admission.choose(b"", None, None).routes["echo"].keys) <= 256


async def test_a_free_tool_whose_source_is_down_says_so_and_is_no_error(
    http: httpx.AsyncClient, service: Service
) -> None:
    service.desk.down = True
    structured = (await post(http, CALL)).json()["result"]["structuredContent"]

    assert structured["data"] is None
    assert structured["stale"] is True
    assert structured["warning"]


@proves("errors.mcp")
async def test_a_client_that_calls_too_often_is_told_to_wait_and_gets_status_200() -> None:
    async with running(limited=True) as service, service.client() as http:
        first, second = await post(http, CALL), await post(http, CALL)
        service.clock.advance(30)
        third = await post(http, CALL)

    assert first.json()["result"]["isError"] is False
    assert told(second)["error"] == "rate_limited"
    assert told(second)["retry_after_seconds"] == 30
    assert third.json()["result"]["isError"] is False


@proves("limits.proxies")
async def test_clients_behind_a_trusted_proxy_are_told_apart() -> None:
    async with running(limited=True) as service:
        transport = httpx.ASGITransport(service.endpoint, client=("10.1.2.3", 5))
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL) as http:
            answers = [await post(http, CALL, JSON | {"x-forwarded-for": f"198.51.100.{n}"}) for n in (1, 2, 1)]

    assert [answer.json()["result"]["isError"] for answer in answers] == [False, False, True]


@proves("limits.bearer")
async def test_a_token_is_its_own_client_on_free_tools() -> None:
    async with running(limited=True) as service, service.client() as http:
        await post(http, CALL)
        with_token = await post(http, CALL, JSON | {"authorization": f"Bearer {TOKEN}"})
        with_nonsense = await post(http, CALL, JSON | {"authorization": "Bearer nonsense"})

    assert with_token.json()["result"]["isError"] is False
    assert told(with_nonsense)["error"] == "rate_limited"


@proves("charge.hang-up")
async def test_a_caller_who_hangs_up_is_not_charged(service: Service) -> None:
    service.desk.hold = anyio.Event()
    gone = anyio.Event()
    body = json.dumps(asked("tools/call", {"name": "oracle"})).encode()
    events = iter([{"type": "http.request", "body": body, "more_body": False}])
    sent: list[Any] = []

    async def receive() -> Any:
        for event in events:
            return event
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/api/mcp", "query_string": b"", "headers": headers}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.endpoint, scope, receive, send)
        await anyio.wait_all_tasks_blocked()
        assert await service.ledger.balance(TOKEN) == 98
        gone.set()

    assert sent == []
    assert await service.ledger.balance(TOKEN) == 100
    service.desk.hold.set()


async def test_arguments_seen_before_are_answered_from_what_is_at_hand(
    http: httpx.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = asked("tools/call", {"name": "echo", "arguments": {"text": "again"}})
    first = await post(http, message)
    monkeypatch.setattr(service.pipeline, "call", None)
    second = await post(http, message)

    assert first.json() == second.json()


async def test_popular_answers_are_refreshed_ahead(http: httpx.AsyncClient, service: Service) -> None:
    for _ in range(4):
        await post(http, CALL)
    service.clock.advance(55)
    await post(http, CALL)
    await anyio.wait_all_tasks_blocked()

    assert len(service.desk.asked) == 2


async def test_legacy_clients_with_a_stale_session_are_served(http: httpx.AsyncClient) -> None:
    answer = await post(http, CALL, JSON | {"mcp-session-id": "zzz", "mcp-protocol-version": "2025-11-25"})

    assert answer.status_code == 200


async def test_many_clients_at_once_start_the_sdk_once(service: Service, http: httpx.AsyncClient) -> None:
    answers: list[httpx.Response] = []

    async def ask() -> None:
        answers.append(await post(http, asked("prompts/list")))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)

    assert {error_of(answer)["code"] for answer in answers} == {-32601}


@proves("answers.meta-short")
async def test_with_meta_short_on_the_address_answers_keep_little_of_their_meta(http: httpx.AsyncClient) -> None:
    made = (await post(http, CALL, query="?meta=short")).json()["result"]
    cached = (await post(http, CALL, query="?meta=short")).json()["result"]
    uncommon = json.loads(json.dumps(CALL)) | {"extra": 1}
    whole = (await post(http, CALL)).json()["result"]
    by_sdk = (await post(http, uncommon, query="?meta=short")).json()["result"]
    wrong = await post(http, CALL, query="?meta=long")

    for result in (made, cached, by_sdk):
        assert result["structuredContent"]["_meta"].keys() == {"attribution", "untrusted_text", "stale"}
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert "sources" in whole["structuredContent"]["_meta"]
    assert error_of(wrong)["data"] == {"meta": ["full", "short"]}


async def test_wrong_tool_names_are_refused_without_the_sdk_and_not_without_end() -> None:
    async with running(limited=True) as service, service.client() as http:
        answers = [await post(http, asked("tools/call", {"name": "wrd", "arguments": {}})) for _ in range(260)]

    assert error_of(answers[0])["data"] == {"did_you_mean": ["word"]}
    assert {answer.status_code for answer in answers} == {200}
    assert [error_of(answer)["code"] for answer in answers] == [-32602] * 240 + [-32600] * 20
    refused = answers[240]
    assert refused.json()["id"] == 1
    assert error_of(refused)["data"] == {"retry_after_seconds": 1}
    assert error_of(refused)["message"] == "Too many uncommon messages from this address. Try again in 1 s."
    assert (error_of(refused)["code"], refused.headers["retry-after"]) == (-32600, "1")


async def test_a_secret_given_as_the_name_of_a_tool_is_not_repeated(http: httpx.AsyncClient) -> None:
    secret = "svc_live_" + "0123456789abcdef" * 4

    assert secret not in (await post(http, asked("tools/call", {"name": secret}))).text
