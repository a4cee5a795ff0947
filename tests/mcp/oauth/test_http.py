"""Parameters are read once and with a limit; pages cannot be framed, stored or scripted, and documents are for all."""

import base64
import json
from datetime import UTC, datetime

import pytest

from toolserver.calls.rate_limit import Quota
from toolserver.clock import ManualClock
from toolserver.core.caller import Addresses
from toolserver.mcp.oauth.http import (
    MOST_FORM,
    BadParameters,
    OAuthParameters,
    OAuthReplies,
    Visitors,
    add_basic_credentials,
    read_form,
    read_parameters,
)

FORM = [(b"content-type", b"application/x-www-form-urlencoded; charset=utf-8")]


async def form(body, headers=FORM):
    async def receive():
        return {"type": "http.request", "body": body}

    return await read_form({"headers": headers}, receive)


def basic(text):
    return {b"authorization": b"Basic " + base64.b64encode(text.encode())}


def test_empty_parameters_count_as_left_out_and_resources_may_repeat():
    found = read_parameters(b"a=1&b=&resource=x&resource=y&c=%C3%A4+b")
    assert found == {"a": "1", "c": "ä b", "resource": "y"}
    assert found.resources == ("x", "y")


@pytest.mark.parametrize("query", [b"a=1&a=1", b"a=%ff", b"\xff=1", b"&".join(b"a%d=1" % n for n in range(60))])
def test_what_cannot_be_read_is_refused_without_its_values(query):
    with pytest.raises(BadParameters) as bad:
        read_parameters(query)
    assert "=1" not in str(bad.value)


def test_forty_parameters_are_read_and_no_more():
    pairs = [b"a%d=1" % n for n in range(41)]
    assert len(read_parameters(b"&".join(pairs[:40]))) == 40
    with pytest.raises(BadParameters, match="too many"):
        read_parameters(b"&".join(pairs))
    assert read_parameters(b"").resources == ()


async def test_a_form_has_its_type_and_a_bound():
    assert await form(b"a=1") == {"a": "1"}
    assert await form(b"a=1", [(b"content-type", b" Application/X-WWW-Form-URLencoded ")]) == {"a": "1"}
    assert await form(b"a=" + b"x" * (MOST_FORM - 2)) == {"a": "x" * (MOST_FORM - 2)}
    assert MOST_FORM == 16_384
    with pytest.raises(BadParameters, match="Content-Type"):
        await form(b"a=1", [])
    with pytest.raises(BadParameters, match="Content-Type"):
        await form(b"a=1", [(b"content-type", b"application/json")])
    with pytest.raises(BadParameters, match="bytes"):
        await form(b"a" * (MOST_FORM + 1))


def test_a_client_in_the_header_becomes_one_in_the_form():
    found = OAuthParameters()
    add_basic_credentials(found, basic("my%20id:s%3Acret"))
    assert found == {"client_id": "my id", "client_secret": "s:cret"}
    public = OAuthParameters(client_id="x")
    add_basic_credentials(public, basic("x:"))
    assert public == {"client_id": "x"}
    for headers in ({}, {b"authorization": b"Bearer x"}):
        add_basic_credentials(public, headers)
    assert public == {"client_id": "x"}
    again = OAuthParameters(client_id="x")
    add_basic_credentials(again, {b"authorization": b"bASIC  " + base64.b64encode(b"x:y:z") + b" "})
    assert again == {"client_id": "x", "client_secret": "y:z"}


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"client_id": "other"}, basic("x:y")),
        ({"client_secret": "z"}, basic("x:y")),
        ({}, basic("no colon")),
        ({}, {b"authorization": b"Basic !!!"}),
        ({}, {b"authorization": b"Basic e!Dp5"}),
        ({}, {b"authorization": b"Basic /w=="}),
    ],
)
def test_a_client_names_itself_once(given, headers):
    with pytest.raises(BadParameters):
        add_basic_credentials(OAuthParameters(given), headers)


async def sent(make, method="GET"):
    events = []

    async def send(event):
        events.append(event)

    await make({"method": method}, send)
    start, body = events
    return start["status"], {n.decode(): v.decode() for n, v in start["headers"]}, body["body"]


@pytest.mark.parametrize("target", ["", "https://claude.ai", "cursor:"])
async def test_a_page_is_framed_by_nobody_and_its_forms_lead_only_here_and_to_the_client(target):
    status, headers, body = await sent(
        lambda scope, send: OAuthReplies(secure=True).page(scope, send, 200, b"x", target)
    )
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert (status, body) == (200, b"x")
    assert headers["x-frame-options"] == "DENY"
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert policy["frame-ancestors"] == policy["default-src"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["form-action"] == f"'self' {target}".strip()
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert "strict-transport-security" in headers
    assert "access-control-allow-origin" not in headers


async def test_a_redirect_carries_no_referrer_and_is_not_stored():
    status, headers, _ = await sent(
        lambda scope, send: OAuthReplies(secure=False).redirect(scope, send, "https://x/?a")
    )
    assert (status, headers["location"]) == (303, "https://x/?a")
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert "strict-transport-security" not in headers


async def test_documents_and_errors_may_be_read_by_every_origin():
    replies = OAuthReplies(secure=False)
    for make in (
        lambda scope, send: replies.document(scope, send, b"{}"),
        lambda scope, send: replies.problem(scope, send, 400, "invalid_request", "why"),
        lambda scope, send: replies.options(scope, send, "GET"),
    ):
        _, headers, _ = await sent(make)
        assert headers["access-control-allow-origin"] == "*"
    assert (await sent(lambda scope, send: replies.document(scope, send, b"{}"), "HEAD"))[2] == b""


async def test_a_document_may_be_kept_for_an_hour_and_an_error_not_at_all():
    replies = OAuthReplies(secure=True)
    status, headers, body = await sent(lambda scope, send: replies.document(scope, send, b"{}"))
    assert (status, body, headers["content-length"], headers["content-type"]) == (200, b"{}", "2", "application/json")
    assert headers["cache-control"] == "public, max-age=3600"
    assert headers["strict-transport-security"] == "max-age=31536000"
    assert headers["access-control-expose-headers"] == "www-authenticate, retry-after"

    status, headers, body = await sent(
        lambda scope, send: replies.problem(scope, send, 405, "invalid_request", "why", (b"allow", b"GET"))
    )
    assert (status, headers["cache-control"], headers["allow"]) == (405, "no-store", "GET")
    assert json.loads(body) == {"error": "invalid_request", "error_description": "why"}
    assert headers["content-length"] == str(len(body))


async def test_a_preflight_names_what_is_allowed_for_a_day_and_has_no_length():
    status, headers, body = await sent(lambda scope, send: OAuthReplies(secure=False).options(scope, send, "GET, HEAD"))
    assert (status, body) == (204, b"")
    assert headers["access-control-allow-methods"] == headers["allow"] == "GET, HEAD"
    assert headers["access-control-allow-headers"] == "authorization, content-type, mcp-protocol-version"
    assert headers["access-control-max-age"] == "86400"
    assert "content-length" not in headers


async def test_any_other_answer_has_its_length_also_an_empty_one():
    replies = OAuthReplies(secure=False)
    for status, body in ((205, b""), (303, b""), (200, b"xyz")):
        for method in ("GET", "HEAD"):
            told, headers, got = await sent(lambda scope, send: replies.send(scope, send, status, body, []), method)  # noqa: B023
            assert (told, headers["content-length"]) == (status, str(len(body)))
            assert got == (b"" if method == "HEAD" else body)


async def test_answers_of_the_sdk_get_the_same_headers():
    async def make(scope, send):
        wrapped = OAuthReplies(secure=True).wrap(send)
        await wrapped({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await wrapped({"type": "http.response.body", "body": b""})

    _, headers, _ = await sent(make)
    assert headers["a"] == "b"
    assert headers["access-control-allow-origin"] == "*"
    assert headers["x-content-type-options"] == "nosniff"


def test_a_request_counts_against_each_quota_and_the_first_that_is_used_up_refuses_it():
    clock = ManualClock(datetime(2027, 1, 15, tzinfo=UTC))
    scope = {"client": ("203.0.113.1", 1), "headers": []}
    visitors = Visitors(Addresses([]), clock)
    minute, day = visitors.open_buckets(Quota("a minute", 3, 60)), visitors.open_buckets(Quota("a day", 2, 86_400))
    assert [visitors.count(scope, minute, day) for _ in range(2)] == [None, None]
    assert visitors.count(scope, minute, day) == ("a day", 43_200)
    assert visitors.count(scope, minute, day) == ("a minute", 20)
    assert visitors.count({"client": ("203.0.113.2", 1), "headers": []}, minute, day) is None
    assert visitors.find_sharer(scope) == "203.0.113.1"
    free = Visitors(Addresses([]), clock, limited=False)
    assert (free.count(scope, minute, day), free.find_sharer(scope)) == (None, None)
