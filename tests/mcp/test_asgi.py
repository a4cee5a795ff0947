"""HTTP as the endpoint needs it: bodies with a bound and a deadline, and the headers that every answer has.

Requests are read by host, origin and media types, and with a choice of tools.
"""

import anyio
import pytest

from tests.mcp.service import registry
from toolserver.mcp import asgi
from toolserver.mcp.asgi import RequestGuard, ResponseSender, body_of, replay_body
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.messages import MessageRefusal
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import McpSettings

FACTS = SiteFacts("https://data.example", "data.example")


def receiving(*events):
    left = iter(events)

    async def receive():
        try:
            return next(left)
        except StopIteration:
            await anyio.sleep_forever()

    return receive


def part(body, more=True):
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_parts_is_put_together():
    assert await body_of(part(b"a"), receiving(part(b"b"), part(b"c", more=False)), 3) == b"abc"


async def test_a_body_beyond_the_limit_is_refused_before_it_is_whole():
    with pytest.raises(MessageRefusal) as refused:
        await body_of(part(b"ab"), receiving(part(b"cd")), 3)
    assert (refused.value.status, refused.value.code, refused.value.data) == (413, -32600, {"limit_bytes": 3})
    with pytest.raises(MessageRefusal):
        await body_of(part(b"abcd", more=False), receiving(), 3)


FIRST = b'{"jsonrpc": "2.0", "id": "a\\"b", "params": {"id": 1, "x": "' + b"y" * 50
LAST = b'yy"}, "method": "tools/call", "id": 12 }\n'


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        ([FIRST, b"yyyy"], 'a"b'),
        ([b'{"params": {"id": 1, "x": ["', b"y" * 50, LAST], 12),
        ([b'{"params": {"id": 1, "x": "', b"y" * 50, b'"}}'], None),
        ([b'{"params": "', b"y" * 50, b'\\"id\\": 5}"}'], None),
        ([b'[{"id": 1}, "' + b"y" * 50, b'"]'], None),
        ([b'{"id": null, "params": "' + b"y" * 50, b'"}'], None),
        ([b'{"id": 1.5, "params": "' + b"y" * 50, b'"}'], None),
        ([b'{"params": "', *[b"y" * 50] * 15, LAST], None),
    ],
    ids=["first", "last", "only within", "in a text", "a list", "null", "no integer", "longer than is read"],
)
async def test_the_id_of_a_message_that_is_too_long_is_told_if_it_is_first_or_last(parts, value):
    first, *more = [part(each) for each in parts]
    more[-1]["more_body"] = False
    with pytest.raises(MessageRefusal) as refused:
        await body_of(first, receiving(*more), 40)
    assert refused.value.value == value


async def test_a_body_that_does_not_arrive_in_time_is_refused():
    assert asgi.BODY_S == 20
    with pytest.raises(MessageRefusal) as refused:
        await body_of(part(b"a"), receiving(), 3, within_s=0.0)
    assert (refused.value.status, refused.value.code) == (408, -32600)


async def test_a_sender_who_goes_away_is_refused():
    with pytest.raises(MessageRefusal) as refused:
        await body_of(part(b"a"), receiving({"type": "http.disconnect"}), 3)
    assert refused.value.status == 408


async def test_a_body_is_given_once_more_and_then_the_connection_itself():
    again = replay_body(b"body", receiving({"type": "http.disconnect"}))

    assert await again() == part(b"body", more=False)
    assert await again() == {"type": "http.disconnect"}


async def sent(what, *given, facts=FACTS, **named):
    events = []

    async def send(event):
        events.append(event)

    await getattr(ResponseSender(facts), what)(send, *given, **named)
    return events[0]["status"], dict(events[0]["headers"]), events[1]["body"]


async def test_a_json_answer_has_its_length_and_may_be_headers_only():
    status, headers, body = await sent("json", "req_1", b'{"a":1}', 200, (b"x-more", b"1"))

    assert (status, body) == (200, b'{"a":1}')
    assert headers[b"content-length"] == b"7"
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"cache-control"] == b"no-store"
    assert (headers[b"x-request-id"], headers[b"x-more"]) == (b"req_1", b"1")
    assert headers[b"strict-transport-security"] == b"max-age=31536000"
    assert (await sent("json", "req_1", b'{"a":1}', head=True))[2] == b""


async def test_a_preflight_names_methods_and_headers_and_has_no_body():
    status, headers, body = await sent("preflight", "req_1", facts=SiteFacts("http://localhost", "localhost"))

    assert (status, body) == (204, b"")
    assert set(headers[b"access-control-allow-headers"].decode().split(", ")) == {
        *("content-type", "accept", "authorization", "mcp-protocol-version", "mcp-method", "mcp-name"),
        *("mcp-session-id", "last-event-id", "x-mcp-tools", "x-mcp-toolset", "x-request-id", "x-agent-nonce"),
    }
    assert headers[b"access-control-allow-methods"] == b"GET, POST, DELETE, OPTIONS"
    assert headers[b"access-control-max-age"] == b"86400"
    assert headers[b"allow"] == b"GET, HEAD, POST, OPTIONS"
    assert headers[b"x-request-id"] == b"req_1"
    assert b"content-length" not in headers
    assert b"strict-transport-security" not in headers


@pytest.mark.parametrize(("what", "given"), [("json", (b"{}",)), ("empty", (202,)), ("preflight", ())])
async def test_every_answer_may_be_read_by_any_page_and_carries_the_headers_of_all(what, given):
    status, headers, _ = await sent(what, "req_1", *given)

    assert status == {"json": 200, "empty": 202, "preflight": 204}[what]
    assert headers[b"access-control-allow-origin"] == b"*"
    assert headers[b"access-control-expose-headers"] == b"mcp-session-id, x-credits-remaining, x-request-id, link"
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"referrer-policy"] == b"no-referrer"
    assert headers[b"strict-transport-security"] == b"max-age=31536000"
    assert headers[b"link"].startswith(b"<https://data.example/openapi.json>")


async def test_an_answer_without_a_body_says_so_by_its_length_unless_its_status_already_does():
    status, headers, body = await sent("empty", "req_1", 202, (b"x-more", b"1"))

    assert (status, body) == (202, b"")
    assert (headers[b"content-length"], headers[b"x-more"], headers[b"x-request-id"]) == (b"0", b"1", b"req_1")
    assert b"content-length" not in (await sent("empty", "req_1", 204))[1]


async def test_an_answer_of_the_sdk_gets_the_same_headers():
    events = []

    async def send(event):
        events.append(event)

    wrapped = ResponseSender(FACTS).sdk(send, "req_1")
    await wrapped({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"x")]})
    await wrapped({"type": "http.response.body", "body": b"y"})

    assert dict(events[0]["headers"])[b"x-request-id"] == b"req_1"
    assert dict(events[0]["headers"])[b"access-control-allow-origin"] == b"*"
    assert events[1] == {"type": "http.response.body", "body": b"y"}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"error":{"code":-32601,"data":"%s"}}', False),
        (b'{"result":{"text":"%s"}}', True),
        (b'{"result":{"error":{"code":1},"text":"%s"}}', True),
    ],
)
async def test_an_error_of_the_sdk_repeats_no_secret_and_a_result_is_sent_as_it_is(body, kept):
    events, secret = [], b"svc_live_" + b"ab" * 32

    async def send(event):
        events.append(event)

    await ResponseSender(FACTS).sdk(send, "req_1")({"type": "http.response.body", "body": body % secret})

    assert (secret in events[0]["body"]) is kept
    assert len(events[0]["body"]) == len(body % secret)


JSON = {b"content-type": b"application/json", b"host": b"127.0.0.1:8080"}


def guard(base_url="http://127.0.0.1:8080", most_verdicts=asgi.VERDICTS, **named):
    return RequestGuard(ToolChoices(registry()), base_url, McpSettings(**named), most_verdicts=most_verdicts)


def admit(made, query=b"", **headers):
    given = JSON | {name.replace("_", "-").encode(): value for name, value in headers.items()}
    lines = {name: value for name, value in given.items() if value is not None}
    return made.admit({"query_string": query}, lines, has_token=b"authorization" in lines)


def status_of(made, query=b"", **headers):
    with pytest.raises(MessageRefusal) as refused:
        admit(made, query, **headers)
    return refused.value.status


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:9", b"[::1]:8080", b"data.example"])
def test_a_server_on_this_machine_answers_to_its_own_names(host):
    assert admit(guard(allowed_hosts=["Data.example"]), host=host)


@pytest.mark.parametrize("host", [b"evil.example", b"", None, b"localhost.evil.example", b"[broken"])
def test_a_server_on_this_machine_answers_to_no_other_name(host):
    assert status_of(guard(), host=host) == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [(b"https://evil.example", 403), (b"null", 403), (b"http://localhost:3000", None), (b"https://app.example", None)],
)
def test_pages_of_other_origins_may_not_call_a_server_on_this_machine(origin, status):
    made = guard(allowed_origins=["https://App.example/"])
    if status is None:
        assert admit(made, origin=origin)
    else:
        assert status_of(made, origin=origin) == status


def test_a_public_server_answers_everyone():
    assert admit(guard("https://data.example"), host=b"any.example", origin=b"https://any.example")


@pytest.mark.parametrize("kind", [None, b"text/plain", b"", b"application/jsonx"])
def test_a_body_that_is_not_json_is_refused(kind):
    assert status_of(guard(), content_type=kind) == 415


@pytest.mark.parametrize(
    ("accept", "admitted"),
    [
        (None, True),
        (b"application/json, text/event-stream", True),
        (b"*/*", True),
        (b"application/*;q=0.1", True),
        (b"text/event-stream", False),
        (b"", False),
    ],
)
def test_the_answer_has_to_be_acceptable(accept, admitted):
    assert admit(guard(), accept=accept) if admitted else status_of(guard(), accept=accept) == 406


def test_the_tools_are_chosen_by_query_and_headers_and_an_unknown_one_is_named():
    made = guard()
    assert list(admit(made, b"tools=word").routes) == ["word"]
    assert list(admit(made, x_mcp_tools=b"coin").routes) == ["coin"]
    with pytest.raises(MessageRefusal) as refused:
        admit(made, b"tools=wurst")
    assert refused.value.status == 400
    assert "word" in refused.value.data["tools"]


def test_a_refused_request_is_refused_again_and_an_admitted_one_is_remembered():
    made = guard()
    assert [status_of(made, host=b"evil.example") for _ in range(2)] == [421, 421]
    assert admit(made) is admit(made)
    assert len(made.verdicts) == 1


def test_what_is_remembered_is_bounded_in_number_and_size():
    made = guard(most_verdicts=3)
    counts = []
    for number in range(5):
        admit(made, accept=b"*/*;q=0.%d" % number)
        counts.append(len(made.verdicts))
    assert counts == [1, 2, 3, 1, 2]
    shared = sum(map(len, JSON.values()))
    for size, kept in ((1025, 2), (1024, 3)):
        admit(made, accept=b"*/*,".ljust(size - shared, b"x"))
        assert len(made.verdicts) == kept


def test_so_many_verdicts_of_such_a_size_are_remembered():
    assert (asgi.VERDICTS, asgi.VERDICT_BYTES) == (512, 1024)


def test_whoever_sends_a_token_has_a_choice_of_its_own_whatever_the_token_is():
    made = guard()
    bare, one, other = admit(made), admit(made, authorization=b"Bearer a"), admit(made, authorization=b"Bearer b")
    assert one is other
    assert bare is not one
    assert len(made.verdicts) == 2


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        (b"", {"host": b"evil.example"}, 421, -32600),
        (b"", {"origin": b"https://evil.example"}, 403, -32600),
        (b"", {"content_type": b"text/plain"}, 415, -32600),
        (b"", {"accept": b"text/html"}, 406, -32600),
        (b"toolset=most", {}, 400, -32602),
    ],
)
def test_a_refusal_has_its_status_and_its_code(query, headers, status, code):
    with pytest.raises(MessageRefusal) as refused:
        admit(guard(), query, **headers)
    assert (refused.value.status, refused.value.code) == (status, code)
