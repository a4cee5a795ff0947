"""Headers of answers: pages cannot be framed, stored or scripted; documents may be read by every origin."""

import json

import pytest

from toolserver.mcp.oauth.replies import OAuthReplies


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
