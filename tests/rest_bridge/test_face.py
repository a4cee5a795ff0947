"""The HTTP manners of the REST face."""

import base64
import gzip
import hashlib
from contextlib import asynccontextmanager

import brotli
import httpx
import pytest
import zstandard

from tests.calls.parts import POOR, RICH, engine
from tests.calls.toy import FIRST, ONE, REGISTRY, SECOND, TWO, Reading
from tests.requirements import proves
from toolserver.context.context import ToolContext, via
from toolserver.core.models import TopLevel
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.settings import LimitSettings


class Kept(TopLevel):
    name: str
    size: int


@asynccontextmanager
async def face(*, limits=False, proxies=(), peer=("192.0.2.1", 1), registry=REGISTRY):
    chosen = LimitSettings(enabled=limits, trusted_proxies=list(proxies))
    async with engine(registry, limits=chosen) as e:
        e.internet.serves(FIRST, {"value": 3})
        e.internet.serves(SECOND, {"value": 4})
        transport = httpx.ASGITransport(app=e.service.web_app(), client=peer)
        async with httpx.AsyncClient(transport=transport, base_url="http://any.example") as client:
            client.headers["accept-encoding"] = "identity"
            yield client, e


@proves("headers.caching", "headers.cors")
async def test_a_free_answer_carries_its_freshness():
    async with face() as (client, e):
        miss = await client.get("/api/number")
        e.clock.advance(10)
        hit = await client.get("/api/number")

    assert miss.status_code == hit.status_code == 200
    assert miss.content == hit.content
    assert miss.headers["cache-control"] == "public, max-age=30, stale-if-error=86400"
    assert hit.headers["cache-control"] == "public, max-age=20, stale-if-error=86400"
    assert (miss.headers["age"], hit.headers["age"]) == ("0", "10")
    assert miss.headers["cache-status"].startswith("toolserver; fwd=miss")
    assert hit.headers["cache-status"] == "toolserver; hit; ttl=20"
    assert hit.headers["last-modified"] == "Fri, 15 Jan 2027 08:00:00 GMT"
    assert hit.headers["access-control-allow-origin"] == "*"
    assert hit.headers["vary"] == "Accept-Encoding"
    assert 'rel="service-desc"' in hit.headers["link"]
    assert "https://data.example/openapi.json" in hit.headers["link"]


@proves("headers.304")
async def test_a_client_that_has_the_bytes_gets_304_in_every_encoding():
    async with face() as (client, e):
        plain = await client.get("/api/number")
        again = await client.get("/api/number", headers={"if-none-match": f'W/"x", {plain.headers["etag"]}'})
        e.clock.advance(31)
        after = await client.get("/api/number", headers={"if-none-match": plain.headers["etag"]})

    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == plain.headers["etag"]
    assert after.status_code == 200  # composed anew: generated_at differs


@pytest.mark.parametrize("query", ["", "?add=1"], ids=["from the cache", "the long way"])
async def test_only_the_etag_of_the_encoding_that_would_be_sent_gets_a_304(query, monkeypatch):
    monkeypatch.setattr("rest_bridge.headers.COMPRESS_FROM", 100)
    async with face() as (client, _):
        plain = await client.get(f"/api/number{query}", headers={"accept-encoding": "identity"})
        packed = await client.get(f"/api/number{query}", headers={"accept-encoding": "gzip"})
        found = {
            (accept, tag): (
                await client.get(
                    f"/api/number{query}", headers={"accept-encoding": accept, "if-none-match": answer.headers["etag"]}
                )
            ).status_code
            for accept in ("identity", "gzip")
            for tag, answer in (("plain", plain), ("packed", packed))
        }

    assert found == {
        ("identity", "plain"): 304,
        ("identity", "packed"): 200,
        ("gzip", "plain"): 200,
        ("gzip", "packed"): 304,
    }


@proves("headers.compression")
@pytest.mark.parametrize(
    ("accept", "encoding", "unpack"),
    [
        ("gzip", "gzip", gzip.decompress),
        ("br", "br", brotli.decompress),
        ("zstd, gzip;q=0.5", "zstd", lambda b: zstandard.ZstdDecompressor().decompressobj().decompress(b)),
        ("gzip;q=0, *;q=0", None, bytes),
        ("identity", None, bytes),
    ],
)
async def test_bodies_are_compressed_as_the_client_likes_when_they_are_large_enough(
    accept, encoding, unpack, monkeypatch
):
    monkeypatch.setattr("rest_bridge.headers.COMPRESS_FROM", 100)
    async with face() as (client, _):
        plain = await client.get("/api/number")
        async with client.stream("GET", "/api/number", headers={"accept-encoding": accept}) as packed:
            raw = b"".join([chunk async for chunk in packed.aiter_raw()])

    assert packed.headers.get("content-encoding") == encoding
    assert unpack(raw) == plain.content
    assert (packed.headers["etag"] == plain.headers["etag"]) == (encoding is None)


@proves("headers.head")
async def test_head_answers_like_get_without_a_body():
    async with face() as (client, _):
        get = await client.get("/api/number")
        head = await client.head("/api/number")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == get.headers["content-length"]
    assert head.headers["etag"] == get.headers["etag"]


@proves("errors.not_found", "errors.problem")
async def test_an_unknown_path_is_404_with_suggestions():
    async with face() as (client, _):
        missing = await client.get("/api/numbr")
    body = missing.json()
    assert missing.status_code == 404
    assert missing.headers["content-type"] == "application/problem+json"
    assert body["error"] == "not_found"
    assert body["type"] == "https://data.example/problems/not_found"
    assert body["did_you_mean"][0] == "/api/number"
    assert body["request_id"] == missing.headers["x-request-id"]


@proves("errors.method_not_allowed")
async def test_a_wrong_method_is_405_with_allow():
    async with face() as (client, _):
        wrong = await client.post("/api/number")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "GET, HEAD, OPTIONS"


@proves("free.cors")
async def test_a_preflight_is_answered():
    async with face() as (client, _):
        asked = await client.options(
            "/api/number", headers={"origin": "https://app.example", "access-control-request-method": "GET"}
        )
    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == "*"
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    assert "GET" in asked.headers["access-control-allow-methods"]


@proves("errors.invalid_arguments")
@pytest.mark.parametrize(
    "query",
    [
        "add=-1",
        "add=x",
        "add=1e400",
        "add=" + "9" * 5000,
        "add=1&add=2",
        "add=%00",
        "add=%ff",
        "&".join(f"a{i}=1" for i in range(99)),
    ],
)
async def test_bad_arguments_are_400_and_say_what_is_wrong(query):
    async with face() as (client, _):
        bad = await client.get(f"/api/number?{query}")
    assert bad.status_code == 400
    assert bad.json()["error"] == "invalid_arguments"
    assert "errors" in bad.json()


@proves("headers.request-id")
async def test_a_sane_request_id_is_kept_and_another_one_replaced():
    async with face() as (client, _):
        kept = await client.get("/api/number", headers={"x-request-id": "trace-1234567"})
        made = await client.get("/api/number", headers={"x-request-id": "<script>"})
    assert kept.headers["x-request-id"] == "trace-1234567"
    assert made.headers["x-request-id"].startswith("req_")


@proves("headers.limits", "limits.304", "limits.spacing", "errors.rate_limited")
async def test_the_second_call_within_30_s_is_429_and_a_304_is_not_counted():
    async with face(limits=True) as (client, _):
        first = await client.get("/api/number")
        unchanged = await client.get("/api/number", headers={"if-none-match": first.headers["etag"]})
        second = await client.get("/api/number")

    assert first.headers["ratelimit-policy"] == '"daily";q=100000;w=86400, "spacing";q=1;w=30'
    assert first.headers["ratelimit"] == '"daily";r=99999;t=1, "spacing";r=0;t=30'
    assert unchanged.status_code == 304
    assert second.status_code == 429
    assert second.headers["retry-after"] == "30"
    assert second.json()["retry_after_seconds"] == 30
    assert second.json()["limit"] == "spacing"


@proves("tokens.placeholder")
@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "bearer svc_live_YOUR_TOKEN", "Bearer $TOOLSERVER_TOKEN"])
async def test_a_header_without_a_token_counts_as_no_header(header):
    async with face(limits=True) as (client, _):
        unpaid = await client.get("/api/pro/report", headers={"authorization": header})
        free = [await client.get("/api/number", headers={"authorization": header}) for _ in range(2)]
        other = await client.get("/api/pro/report", headers={"authorization": "Basic abc"})
    assert (unpaid.status_code, unpaid.json()["error"], other.json()["error"]) == (
        402,
        "missing_token",
        "invalid_token",
    )
    assert [each.status_code for each in free] == [200, 429]


@proves("limits.304")
@pytest.mark.parametrize("query", ["", "?add=1", "?meta=short"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("peer", [("192.0.2.1", 1), ("2001:db8::1", 1)], ids=["IPv4", "IPv6"])
async def test_a_304_costs_nothing_of_the_spacing_with_any_query(query, method, peer):
    async with face(limits=True, peer=peer) as (client, e):
        first = await client.get(f"/api/number{query}")
        tag = {"if-none-match": first.headers["etag"]}
        again = [await client.request(method, f"/api/number{query}", headers=tag) for _ in range(3)]
        e.clock.advance(31)  # the answer is made anew, with the same bytes or not; the client's place is free again
        later = await client.get(f"/api/number{query}")
        soon = await client.get(f"/api/number{query}")

    assert [each.status_code for each in (first, *again, later, soon)] == [200, 304, 304, 304, 200, 429]
    assert {each.headers["ratelimit"].partition(";")[0] for each in again} == {'"daily"'}
    assert [call.status for call in e.pipeline.usage.counted().recent if call.status == 304] == [304] * 3


@proves("limits.proxies")
async def test_x_forwarded_for_counts_only_from_a_trusted_proxy():
    async with face(limits=True) as (client, _):
        assert (await client.get("/api/number", headers={"x-forwarded-for": "198.51.100.1"})).status_code == 200
        assert (await client.get("/api/number", headers={"x-forwarded-for": "198.51.100.2"})).status_code == 429
    async with face(limits=True, proxies=["192.0.2.0/24"]) as (client, _):
        for address in ("198.51.100.1", "198.51.100.2"):
            assert (await client.get("/api/number", headers={"x-forwarded-for": address})).status_code == 200
        spoofed = {"x-forwarded-for": "203.0.113.9, 198.51.100.2"}
        assert (await client.get("/api/number", headers=spoofed)).status_code == 429


@proves("headers.premium", "charge.remaining")
async def test_a_premium_answer_is_private_and_says_what_is_left():
    async with face() as (client, _):
        paid = await client.get("/api/pro/report", headers={"authorization": f"bearer {RICH}"})
    assert paid.status_code == 200
    assert paid.headers["cache-control"] == "private, no-store"
    assert paid.headers["x-credits-remaining"] == "8"
    assert "etag" not in paid.headers


@proves("payment-error.body", "payment-error.pricing-header")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_token"),
        ({"authorization": "Basic abc"}, "invalid_token"),
        ({"authorization": "Bearer nonsense"}, "invalid_token"),
        ({"authorization": f"Bearer {POOR}"}, "insufficient_credits"),
    ],
)
async def test_a_refused_payment_has_the_body_of_the_specification(headers, code):
    async with face() as (client, _):
        refused = await client.get("/api/pro/report", headers=headers)
    body = refused.json()
    assert refused.status_code == 402
    assert body["error"] == code
    assert body["signup"] == refused.headers["x-service-pricing"] == "https://data.example/docs/payments"
    assert body["pricing"] == {"1 USD": "50 credits"}


@proves("answers.nothing-ever")
async def test_with_nothing_fetched_the_answer_is_200_null_and_not_to_be_stored():
    async with face() as (client, e):
        e.internet.serves(FIRST, httpx.Response(500))
        e.internet.serves(SECOND, httpx.Response(500))
        empty = await client.get("/api/number")
    assert empty.status_code == 200
    assert empty.json()["data"] is None
    assert empty.headers["cache-control"] == "no-store"
    assert "etag" not in empty.headers


@tool(path="/api/lasting", title="Lasting", ttl_s=600, sources=(ONE, TWO))
async def lasting(ctx: ToolContext) -> Reading:
    """The first number, which lasts ten minutes; it shows for how long a stale answer does, for tests only."""
    found = await ctx.first("data", via(ONE), via(TWO))
    return Reading(value=found.value, twice=2 * found.value)


@proves("answers.degraded")
async def test_a_stale_answer_may_be_kept_for_half_a_minute_and_is_made_anew_once_its_source_is_back():
    async with face(registry=Registry([operation_of(lasting)])) as (client, e):
        whole = await client.get("/api/lasting")
        e.clock.advance(601)
        for url in (FIRST, SECOND):
            e.internet.serves(url, httpx.Response(500))
        stale = await client.get("/api/lasting")
        for url in (FIRST, SECOND):
            e.internet.serves(url, {"value": 8})
        e.clock.advance(31)
        again = await client.get("/api/lasting")

    kept_s = [int(a.headers["cache-control"].partition("max-age=")[2].partition(",")[0]) for a in (whole, stale)]
    assert (kept_s[0], kept_s[1] <= 30) == (600, True)
    assert stale.json()["stale"] is True
    assert (again.json()["stale"], again.json()["data"]["value"]) == (False, 8)


@proves("errors.internal_error")
async def test_our_own_fault_is_a_500_with_nothing_but_an_id():
    async with face() as (client, _):
        broken = await client.get("/api/broken")
    assert broken.status_code == 500
    assert set(broken.json()) == {"type", "title", "status", "error", "detail", "request_id"}
    assert "secret" not in broken.text


async def test_a_fault_outside_of_any_tool_is_a_500_too():
    sent = []

    async def send(message):
        sent.append(message)
        if len(sent) == 1:
            raise RuntimeError("secret")

    headers = [(b"x-request-id", b"trace-1234567")]
    scope = {"type": "http", "method": "GET", "path": "/docs", "query_string": b"", "headers": headers}
    async with engine(REGISTRY) as e:
        await e.service.web_app()({**scope, "client": ("192.0.2.1", 1)}, None, send)
    _, start, body = sent
    assert (start["status"], dict(start["headers"])[b"x-request-id"]) == (500, b"trace-1234567")
    assert b"secret" not in body["body"]


async def test_a_header_that_must_be_single_is_refused_when_repeated():
    async with face() as (client, _):
        twice = [("authorization", f"Bearer {RICH}"), ("authorization", "Bearer x")]
        bad = await client.get("/api/pro/report", headers=twice)
    assert bad.status_code == 400


@proves("answers.meta-short")
async def test_with_meta_short_an_answer_keeps_little_of_its_meta_and_counts_as_the_same_call():
    async with face() as (client, e):
        whole = await client.get("/api/number")
        short = await client.get("/api/number", params={"meta": "short"})
        full = await client.get("/api/number", params={"meta": "full"})
        again = await client.get("/api/number?meta=short", headers={"if-none-match": short.headers["etag"]})
        wrong = await client.get("/api/number", params={"meta": "long"})

    assert short.json()["_meta"].keys() == {"attribution", "untrusted_text", "stale"}
    assert {k: v for k, v in short.json().items() if k != "_meta"} == {
        k: v for k, v in whole.json().items() if k != "_meta"
    }
    assert full.content == whole.content
    assert short.headers["etag"] != whole.headers["etag"]
    assert again.status_code == 304
    assert len(e.internet.asked) == 1
    assert (wrong.status_code, wrong.json()["errors"][0]["loc"]) == (400, "meta")


async def test_a_paid_answer_with_little_meta_is_what_its_digest_covers():
    async with face() as (client, _):
        token = {"authorization": f"Bearer {RICH}"}
        for _ in range(2):  # made, and then sold from the cache
            sold = await client.get("/api/pro/report?meta=short", headers=token)
            digest = base64.b64encode(hashlib.sha256(sold.content).digest()).decode()
            assert sold.json()["_meta"].keys() == {"attribution", "untrusted_text", "stale"}
            assert sold.headers["content-digest"] == f"sha-256=:{digest}:"


async def test_a_cached_paid_answer_is_still_only_for_who_pays():
    token = {"authorization": f"Bearer {RICH}"}
    async with face() as (client, _):
        made = await client.get("/api/pro/report", headers=token)
        cached = await client.get("/api/pro/report", headers=token | {"x-request-id": "trace-1234567"})
        without = await client.get("/api/pro/report")
        poor = await client.get("/api/pro/report", headers={"authorization": f"Bearer {POOR}"})
        left = await client.head("/api/pro/report", headers=token)

    assert (made.headers["x-credits-remaining"], cached.headers["x-credits-remaining"]) == ("8", "6")
    assert cached.content == made.content
    assert cached.headers["x-request-id"] == "trace-1234567"
    same = ("cache-control", "content-digest", "content-length", "content-type", "vary", "link")
    assert [cached.headers[name] for name in same] == [made.headers[name] for name in same]
    assert cached.headers.keys() == made.headers.keys()
    assert [(refused.status_code, refused.json()["error"]) for refused in (without, poor)] == [
        *((402, "missing_token"), (402, "insufficient_credits"))
    ]
    assert (left.status_code, left.headers["x-credits-remaining"]) == (200, "6")


async def test_a_paid_call_is_repeated_with_its_key_for_nothing_also_from_the_cache():
    async with face() as (client, _):
        sent = {"authorization": f"Bearer {RICH}"}
        await client.get("/api/pro/report", headers=sent)
        found = [await client.get("/api/pro/report", headers=sent | {"idempotency-key": "k"}) for _ in range(2)]
    assert [each.headers["x-credits-remaining"] for each in found] == ["6", "6"]
    assert found[0].content == found[1].content


@proves("charge.head")
async def test_whether_a_call_would_be_taken_is_asked_for_without_charge_and_without_a_body():
    async with face() as (client, e):
        asked = [await client.head("/api/pro/report", headers={"authorization": f"Bearer {RICH}"}) for _ in range(2)]
        refused = await client.head("/api/pro/report")
    assert [(each.status_code, each.headers["x-credits-remaining"]) for each in asked] == [(200, "10")] * 2
    assert (refused.status_code, refused.content) == (402, b"")
    assert e.internet.asked == []


@pytest.mark.parametrize(
    ("path", "own", "others"),
    [
        ("/api/numbr", {}, {"ratelimit-policy", "x-service-pricing", "allow"}),
        ("/api/pro/report", {"x-service-pricing": "https://data.example/docs/payments"}, {"ratelimit-policy", "allow"}),
    ],
)
async def test_a_refusal_is_kept_by_nobody_and_has_only_the_headers_of_its_kind(path, own, others):
    async with face() as (client, _):
        refused = await client.get(path)
    assert (refused.headers["cache-control"], refused.headers["vary"]) == ("no-store", "Accept")
    assert int(refused.headers["content-length"]) == len(refused.content)
    assert refused.headers["access-control-allow-origin"] == "*"
    assert own.items() <= dict(refused.headers).items()
    assert not others & refused.headers.keys()
    assert len(refused.headers.multi_items()) == len(refused.headers)


async def test_an_unknown_path_has_no_methods_to_ask_for_and_leads_to_the_list_of_tools():
    async with face() as (client, _):
        missing, asked = await client.get("/api/numbr"), await client.options("/api/numbr")
        known = await client.options("/api/number")
    assert (asked.status_code, missing.json()["catalog"]) == (404, "https://data.example/api/llm-tools")
    assert (known.headers["allow"], known.headers["access-control-allow-methods"]) == ("GET, HEAD, OPTIONS",) * 2
    assert (known.content, known.headers["access-control-max-age"]) == (b"", "86400")


async def test_a_page_has_its_own_policy_once_and_a_head_of_it_no_body():
    async with face() as (client, _):
        page, head = await client.get("/docs"), await client.head("/docs")
        again = await client.get("/docs", headers={"if-none-match": page.headers["etag"]})
        posted = await client.post("/docs")
    assert [page.headers.get_list(name)[0][:30] for name in ("content-security-policy",)] == [
        "default-src 'none'; script-src"
    ]
    assert len(page.headers.multi_items()) == len(page.headers)
    assert int(page.headers["content-length"]) == len(page.content) > 1000
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == page.headers["content-length"]
    assert (again.status_code, again.content) == (304, b"")
    assert not {"content-length", "content-type"} & again.headers.keys()
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_a_304_says_nothing_of_the_body_on_both_ways():
    async with face() as (client, _):
        first = await client.get("/api/number")
        tag = {"if-none-match": first.headers["etag"]}
        short, long = await client.get("/api/number", headers=tag), await client.get("/api/number?add=0", headers=tag)
    assert [each.status_code for each in (short, long)] == [304, 304]
    for unchanged in (short, long):
        assert not {"content-length", "content-type", "content-encoding"} & unchanged.headers.keys()
        assert unchanged.headers["etag"] == first.headers["etag"]


async def test_a_header_that_is_sent_twice_takes_the_long_way_and_is_joined():
    async with face() as (client, _):
        first = await client.get("/api/number")
        again = await client.get(
            "/api/number", headers=[("if-none-match", '"other"'), ("if-none-match", first.headers["etag"])]
        )
    assert again.status_code == 304


async def test_without_limits_no_limit_is_told():
    async with face() as (client, _):
        for path in ("/api/number", "/api/number", "/api/number?add=1"):
            assert not {"ratelimit", "ratelimit-policy"} & (await client.get(path)).headers.keys()


async def test_a_refusal_for_too_many_calls_tells_the_rule():
    async with face(limits=True) as (client, _):
        for path in ("/api/number", "/api/number?add=1"):
            refused = [await client.get(path) for _ in range(2)][1]
            assert refused.status_code == 429
            assert refused.headers["ratelimit-policy"] == '"daily";q=100000;w=86400, "spacing";q=1;w=30'


@tool(path="/api/keep/{name}", title="Keep", tier=Tier.PAYMENT, method="POST")
async def keep(ctx: ToolContext, name: str, size: int = 0) -> Kept:
    """Says what it was given, in the path and in the body; it shows where arguments come from, for tests only."""
    return Kept(name=name, size=size)


@pytest.fixture
async def keeping():
    async with engine(Registry([operation_of(keep)])) as e:
        transport = httpx.ASGITransport(app=e.service.web_app(), client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://any.example") as client:
            yield client


async def test_arguments_come_from_path_and_body_and_none_from_both(keeping):
    found = await keeping.post("/api/keep/a%20b", json={"size": 2})
    assert (found.status_code, found.json()) == (200, {"name": "a b", "size": 2})
    assert (await keeping.post("/api/keep/a")).json() == {"name": "a", "size": 0}
    for twice in (
        await keeping.post("/api/keep/a", json={"name": "a"}),
        await keeping.post("/api/keep/a?name=a", json={}),
    ):
        assert (twice.status_code, twice.json()["detail"]) == (400, "Give name only in the path.")


async def test_a_body_is_bounded_and_json(keeping):
    fits = b'{"size":1' + b" " * (65_536 - 10) + b"}"
    assert (await keeping.post("/api/keep/a", content=fits)).json()["size"] == 1
    large = await keeping.post("/api/keep/a", content=fits + b" ")
    assert (large.status_code, large.json()["limit_bytes"]) == (413, 65_536)
    other = await keeping.post("/api/keep/a", content=b"size=1", headers={"content-type": "text/plain"})
    assert other.status_code == 415


async def test_an_answer_of_a_payment_tool_is_for_its_caller_only(keeping):
    found = await keeping.post("/api/keep/a", headers={"accept-encoding": "identity"})
    assert found.headers["cache-control"] == "private, no-store"
    assert int(found.headers["content-length"]) == len(found.content)
    assert "content-digest" not in found.headers
    meta = await keeping.post("/api/keep/a?meta=short")
    assert meta.status_code == 400  # such an answer has no meta, so the parameter is unknown


@pytest.mark.parametrize("path", ["/docs", "/api/number", "/api/number?add=1", "/api/pro/report", "/api/none"])
async def test_no_byte_of_a_body_is_sent_where_only_the_headers_were_asked_for(path):
    async with face() as (_, e):
        sent = {}
        for method in ("GET", "HEAD"):
            messages = []

            async def send(message, messages=messages):
                messages.append(message)

            async def receive():
                return {"type": "http.request"}

            address, _, query = path.partition("?")
            scope = {"type": "http", "method": method, "path": address, "query_string": query.encode(), "headers": []}
            await e.service.web_app()(scope, receive, send)
            sent[method] = b"".join(message.get("body", b"") for message in messages)
            assert int(dict(messages[0]["headers"])[b"content-length"]) > 0
    assert (len(sent["GET"]) > 0, sent["HEAD"]) == (True, b"")


async def test_a_cached_paid_answer_is_not_sold_to_who_sends_two_payments_with_the_token():
    token = {"authorization": f"Bearer {RICH}"}
    async with face() as (client, _):
        await client.get("/api/pro/report", headers=token)
        refused = await client.get("/api/pro/report", headers=token | {"payment-signature": "a", "x-payment": "b"})
        left = await client.head("/api/pro/report", headers=token)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_arguments")
    assert left.headers["x-credits-remaining"] == "8"


async def test_a_cached_paid_answer_waits_for_nothing_from_its_caller():
    messages, lines = [], [(b"authorization", f"Bearer {RICH}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/api/pro/report", "query_string": b"", "headers": lines}

    async def receive():
        messages.append("asked whether the caller is still there")
        return {"type": "http.disconnect"}

    async def send(message):
        messages.append(message["type"])

    async with face() as (client, e):
        await client.get("/api/pro/report", headers={"authorization": f"Bearer {RICH}"})
        await e.service.web_app()(scope, receive, send)
    assert messages == ["http.response.start", "http.response.body"]
