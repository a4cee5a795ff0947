"""Headers of answers: caching, content coding and limits."""

import base64
import hashlib
from datetime import date

import pytest

from rest_bridge.headers import HeaderBook, choose_encoding, digest, limits
from toolserver.calls.quotas import LimitState, Quota
from toolserver.calls.response import COMPRESS_FROM, RenderedResponse
from toolserver.registry import deprecations
from toolserver.registry.deprecations import Deprecation
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

NOW = 1_800_000_000.0
TOOLS = Registry.load("tools")
WORD, SOLD = TOOLS["forex"], TOOLS["premium_macro"]
BOOK = HeaderBook(SiteFacts("https://data.example", "data.example"))


def answer(**more: object) -> RenderedResponse:
    given = {"generated_at": NOW, "expires_at": NOW + 60, "oldest_at": NOW - 5} | more
    return RenderedResponse(b'{"a":"' + b"x" * COMPRESS_FROM + b'"}', **given)


def free(
    rendered: RenderedResponse, encoding: str | None = None, *, now: float = NOW, hit: bool = True
) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in BOOK.free(WORD, rendered, encoding, now, hit=hit)}


def test_an_answer_may_be_kept_for_as_long_as_it_stays_the_answer():
    headers = free(answer(), now=NOW + 20)

    assert headers["cache-control"].startswith("public, max-age=40,")
    assert headers["age"] == "25"
    assert headers["cache-status"] == "toolserver; hit; ttl=40"


def test_an_answer_without_any_source_is_stored_by_nobody():
    headers = free(answer(nothing=True), hit=False)

    assert headers["cache-control"] == "no-store"
    assert "etag" not in headers


def test_a_stale_answer_says_so():
    assert "fwd=stale" in free(answer(stale=True), hit=False)["cache-status"]
    assert "hit; detail=stale" in free(answer(stale=True))["cache-status"]


def test_each_coding_has_its_own_length_and_validator():
    rendered = answer()
    plain, packed = free(rendered), free(rendered, "gzip")

    assert packed["content-encoding"] == "gzip"
    assert int(packed["content-length"]) == len(rendered.variant("gzip")) < int(plain["content-length"])
    assert packed["etag"] != plain["etag"]
    assert "content-encoding" not in plain


def test_headers_of_one_second_are_made_once_and_those_of_the_next_anew():
    rendered = answer()

    assert BOOK.free(WORD, rendered, None, NOW + 0.9, hit=True) is BOOK.free(WORD, rendered, None, NOW, hit=True)
    assert free(rendered, now=NOW + 1)["age"] == "6"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (b"gzip, br, zstd", "zstd"),
        (b"gzip;q=0.9, br;q=0.5", "gzip"),
        (b"*", "zstd"),
        (b"*, zstd;q=0", "br"),
        (b"gzip;q=0", None),
        (b"zstd;q=0, br;q=0, gzip;q=0", None),
        (b"identity", None),
        (b"gzip;q=nonsense", None),
        (b"", None),
    ],
)
def test_the_best_coding_that_the_client_takes_is_chosen_and_never_one_it_refuses(accept, chosen):
    assert choose_encoding(accept, COMPRESS_FROM) == chosen


def test_a_small_body_is_not_compressed():
    assert choose_encoding(b"gzip", COMPRESS_FROM - 1) is None


def test_the_digest_is_of_the_plain_payload():
    body = b'{"_meta":{}}'
    rendered = RenderedResponse(body, NOW, NOW, None)
    name, value = digest(rendered)

    assert digest(rendered) == (name, value) != digest(RenderedResponse(b"{}", NOW, NOW, None))
    assert name == b"content-digest"
    assert base64.b64decode(value.removeprefix(b"sha-256=:").removesuffix(b":")) == hashlib.sha256(body).digest()


def test_limits_are_told_together_or_not_at_all():
    standing = LimitState(Quota("daily", 100, 86400), 50112.2)

    assert limits(b"policy", []) == []
    assert limits(b"policy", [standing]) == [(b"ratelimit-policy", b"policy"), (b"ratelimit", b'"daily";r=42;t=50113')]


def test_what_is_about_to_go_is_announced_in_the_answers_concerned(monkeypatch):
    going = (
        Deprecation("field", "forex.data.base", date(2027, 1, 1), date(2027, 4, 1), "data.quote"),
        Deprecation("tool", "premium_macro", date(2027, 1, 2), date(2027, 5, 1), "none"),
    )
    monkeypatch.setattr(deprecations, "DEPRECATIONS", going)
    book = HeaderBook(SiteFacts("https://data.example", "data.example"))
    told = {name.decode(): value.decode() for name, value in book.free(WORD, answer(), None, NOW, hit=True)}
    sold = {name.decode(): value.decode() for name, value in book.sold(SOLD)}

    assert told["deprecation"] == "@1798761600"
    assert told["sunset"] == "Thu, 01 Apr 2027 00:00:00 GMT"
    assert told["x-service-deprecation"] == "field=forex.data.base; sunset=2027-04-01; replacement=data.quote"
    assert sold["x-service-deprecation"] == "tool=premium_macro; sunset=2027-05-01; replacement=none"
    assert "deprecation" not in {name.decode() for name, _ in book.sold(TOOLS["premium_briefing"])}
    assert book.sold(SOLD) is book.sold(SOLD)
