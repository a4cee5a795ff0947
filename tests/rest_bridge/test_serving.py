"""Documents over HTTP: made once, validated by the ETag of their own coding, compressed when the client takes it."""

import base64
import gzip
import hashlib

import pytest

from rest_bridge.asgi import parse_request
from rest_bridge.serving import START_SCRIPT, THEME_SCRIPT, brief, brief_under, by_query, fresh, lazy, page_policy
from toolserver.errors import InvalidArguments, NotFound
from toolserver.registry.site_facts import Document

LONG = Document(b"word " * 1000, "text/plain; charset=utf-8")


async def ask(handler, query=b"", **headers):
    scope = {
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "query_string": query,
    }
    return await handler(scope, parse_request(scope))


def header(reply, name):
    return dict(reply.headers).get(name)


async def test_a_client_that_holds_the_bytes_gets_a_304():
    handler = lazy(lambda: LONG)
    first = await ask(handler)
    again = await ask(handler, if_none_match=header(first, b"etag").decode())
    assert (first.status, first.body) == (200, LONG.body)
    assert (again.status, again.body) == (304, b"")


async def test_the_etag_of_another_coding_brings_the_document():
    handler = lazy(lambda: LONG)
    plain = await ask(handler)
    packed = await ask(handler, accept_encoding="gzip")
    assert gzip.decompress(packed.body) == LONG.body
    assert header(packed, b"content-encoding") == b"gzip"
    assert header(packed, b"etag") != header(plain, b"etag")
    for accept, other in (("gzip", plain), ("identity", packed)):
        found = await ask(handler, accept_encoding=accept, if_none_match=header(other, b"etag").decode())
        assert found.status == 200
    assert (await ask(handler, accept_encoding="gzip", if_none_match=header(packed, b"etag").decode())).status == 304


def hashed(text: str) -> bytes:
    return b"'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()) + b"'"


async def test_only_pages_for_people_carry_the_policy_of_pages():
    page = await ask(lazy(lambda: Document(b"<p>", "text/html; charset=utf-8")))
    policy = header(page, b"content-security-policy")
    assert policy.startswith(b"default-src 'none'")
    scripts = hashed(THEME_SCRIPT) + b" " + hashed(START_SCRIPT)
    assert b"; script-src 'self' " + scripts + b"; style-src 'self'; img-src" in policy
    assert b"unsafe" not in policy
    assert header(await ask(lazy(lambda: LONG)), b"content-security-policy") is None


async def test_the_policy_names_the_style_sheet_in_the_head_of_a_page_and_no_other():
    head, body = "p{color:red}", "p{color:blue}"
    text = f"<head><style>{head}</style></head><body><style>{body}</style></body>".encode()
    page = await ask(lazy(lambda: Document(text, "text/html; charset=utf-8")))
    policy = header(page, b"content-security-policy")
    assert policy == page_policy(text)[1]
    assert b"; style-src 'self' " + hashed(head) + b"; img-src" in policy
    assert hashed(body) not in policy


async def test_a_lazy_document_is_made_once_and_not_before_it_is_asked_for():
    made = []
    handler = lazy(lambda: made.append(1) or LONG)
    assert made == []
    assert (await ask(handler)).body == (await ask(handler)).body == LONG.body
    assert made == [1]


async def test_documents_by_query_are_kept_for_a_bounded_number_of_choices():
    made = []

    def make(given):
        made.append(given["n"])
        return Document(given["n"].encode(), "text/plain")

    handler = by_query(make, most=2)
    for n in ("1", "2", "3", "1", "2", "3"):
        assert (await ask(handler, f"n={n}".encode())).body == n.encode()
    assert made == ["1", "2", "3", "3"]


async def test_a_wrong_choice_is_refused_each_time():
    def make(given):
        raise InvalidArguments("no", errors=[])

    handler = by_query(make)
    for _ in range(2):
        with pytest.raises(InvalidArguments):
            await ask(handler, b"n=1")


async def test_a_brief_document_is_made_for_every_request_and_kept_for_seconds():
    made = []
    handler = brief(lambda: made.append(1) or Document(b"%d" % len(made), "application/json"))
    assert [(await ask(handler)).body for _ in range(2)] == [b"1", b"2"]
    assert header(await ask(handler), b"cache-control") == b"public, max-age=5"


async def test_what_is_read_by_name_is_json_or_not_there():
    async def read(name):
        return {"sights": b'{"answer":1}'}.get(name)

    handler = brief_under("/t/", read)

    async def at(path):
        scope = {"headers": [], "query_string": b"", "path": path}
        return await handler(scope, parse_request(scope))

    reply = await at("/t/sights.json")
    assert (reply.body, header(reply, b"content-type")) == (b'{"answer":1}', b"application/json")
    for path in ("/t/other.json", "/t/sights", "/t/sights.csv", "/t/.json", "/t/a/sights.json"):
        with pytest.raises(NotFound):
            await at(path)


async def test_a_fresh_document_is_never_stored():
    async def make():
        return LONG, 503

    reply = await ask(fresh(make))
    assert (reply.status, header(reply, b"cache-control")) == (503, b"no-store")
    assert header(reply, b"etag") is None


async def test_a_document_may_be_kept_for_five_minutes_and_says_what_it_is():
    reply = await ask(lazy(lambda: LONG))
    tag = header(reply, b"etag")
    assert reply.headers == [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"cache-control", b"public, max-age=300"),
        (b"etag", tag),
        (b"vary", b"Accept-Encoding"),
    ]
    assert len(tag) == 34


async def test_each_document_by_query_is_made_once():
    made = []
    queried = by_query(lambda given: made.append(given) or LONG)
    for _ in range(2):
        await ask(queried, b"a=1&b=2")
        await ask(queried, b"b=2&a=1")
    assert made == [{"a": "1", "b": "2"}]


async def test_documents_by_query_are_kept_for_sixty_four_choices():
    made = []

    def make(given):
        made.append(given["n"])
        return Document(b"x", "text/plain")

    handler = by_query(make)
    for n in (*range(65), 0, 63, 64):
        await ask(handler, b"n=%d" % n)
    assert made[65:] == ["64"]


async def test_a_compressed_form_is_made_once():
    handler = lazy(lambda: LONG)
    first, again = [await ask(handler, accept_encoding="br") for _ in range(2)]
    assert first.body is again.body


async def test_what_is_read_by_name_may_be_kept_for_seconds_and_a_brief_one_as_long_as_it_says():
    async def read(name):
        return b"{}"

    handler = brief_under("/t/", read)
    scope = {"headers": [], "query_string": b"", "path": "/t/sights.json"}
    assert header(await handler(scope, parse_request(scope)), b"cache-control") == b"public, max-age=5"
    assert header(await ask(brief(lambda: LONG, max_age_s=9)), b"cache-control") == b"public, max-age=9"
