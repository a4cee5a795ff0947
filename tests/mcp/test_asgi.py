"""HTTP as the endpoint needs it: bodies with a bound and a deadline, and the headers that every answer has."""

import anyio
import pytest

from toolserver.mcp import asgi
from toolserver.mcp.asgi import ResponseSender, body_of, replay_body
from toolserver.mcp.messages import MessageRefusal
from toolserver.registry.site_facts import SiteFacts

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


async def test_a_body_that_does_not_arrive_in_time_is_refused(monkeypatch):
    assert asgi.BODY_S == 20
    monkeypatch.setattr(asgi, "BODY_S", 0.0)
    with pytest.raises(MessageRefusal) as refused:
        await body_of(part(b"a"), receiving(), 3)
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
