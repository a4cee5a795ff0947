"""Headers: those of requests as they are read, and those of answers: caching, content coding, limits and sales."""

import base64
import hashlib
from datetime import date

import pytest

from rest_bridge.headers import (
    HeaderBook,
    choose_encoding,
    digest,
    limits,
    match_etag,
    negotiate,
    paid_headers,
    prefers_reference,
    request_id,
    settlement,
    settlement_version_1,
    text,
    without_entity,
)
from tests.requirements import proves
from toolserver.calls.paid_call import PaidCallResult
from toolserver.calls.pipeline import Outcome
from toolserver.calls.rate_limit import LimitState, Quota
from toolserver.calls.response import COMPRESS_FROM, RenderedResponse
from toolserver.money.x402.wire import unheader
from toolserver.registry.deprecations import Deprecation
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

NOW = 1_800_000_000.0
TOOLS = Registry.load("tools")
WORD, SOLD = TOOLS["forex"], TOOLS["premium_macro"]
BOOK = HeaderBook(SiteFacts("https://data.example", "data.example"), TOOLS)


def answer(**more: object) -> RenderedResponse:
    given = {"generated_at": NOW, "expires_at": NOW + 60, "oldest_at": NOW - 5} | more
    return RenderedResponse(b'{"a":"' + b"x" * COMPRESS_FROM + b'"}', **given)


ANSWER = RenderedResponse(b"x" * 2000, 0, 60, 0)


def sold(rendered: RenderedResponse, remaining: int | None = None, **receipt: str) -> Outcome:
    """The outcome of a sale of two credits."""
    return Outcome.of_sale(PaidCallResult(rendered, 2, remaining, **receipt))


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


@proves("headers.deprecation")
def test_what_is_about_to_go_is_announced_in_the_answers_concerned():
    going = (
        Deprecation("field", "forex.data.base", date(2027, 1, 1), date(2027, 4, 1), "data.quote"),
        Deprecation("tool", "premium_macro", date(2027, 1, 2), date(2027, 5, 1), "none"),
    )
    book = HeaderBook(SiteFacts("https://data.example", "data.example"), TOOLS, going)
    told = {name.decode(): value.decode() for name, value in book.free(WORD, answer(), None, NOW, hit=True)}
    sold = {name.decode(): value.decode() for name, value in book.sold(SOLD)}

    assert told["deprecation"] == "@1798761600"
    assert told["sunset"] == "Thu, 01 Apr 2027 00:00:00 GMT"
    assert told["x-service-deprecation"] == "field=forex.data.base; sunset=2027-04-01; replacement=data.quote"
    assert sold["x-service-deprecation"] == "tool=premium_macro; sunset=2027-05-01; replacement=none"
    assert "deprecation" not in {name.decode() for name, _ in book.sold(TOOLS["premium_briefing"])}
    assert book.sold(SOLD) is book.sold(SOLD)


def test_what_clients_ask_for_is_remembered_only_up_to_a_bound():
    for number in range(510):
        assert choose_encoding(b"gzip, x%d" % number, COMPRESS_FROM) == "gzip"
    assert choose_encoding(b"br, x509", COMPRESS_FROM) == "br"
    assert negotiate.cache_info().currsize == 500


def test_what_is_said_of_every_answer_is_said_once_and_of_tls_only_behind_it():
    always = dict(BOOK.always)
    assert len(always) == len(BOOK.always) == 7
    assert {name: always[name] for name in always if name not in (b"link", b"access-control-expose-headers")} == {
        b"access-control-allow-origin": b"*",
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"no-referrer",
        b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
        b"strict-transport-security": b"max-age=31536000",
    }
    plain = dict(HeaderBook(SiteFacts("http://data.example", "data.example")).always)
    assert always.keys() - plain.keys() == {b"strict-transport-security"}


def test_a_preflight_may_be_kept_for_a_day_and_names_what_may_be_sent():
    assert dict(BOOK.preflight) == {
        b"access-control-allow-origin": b"*",
        b"access-control-allow-headers": (
            b"Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Payment-Signature, Prefer, "
            b"X-Agent-Nonce, X-Payment, X-Request-Id"
        ),
        b"access-control-max-age": b"86400",
    }
    assert BOOK.pricing == (b"x-service-pricing", b"https://data.example/docs/payments")


def test_a_sold_answer_is_for_its_caller_only():
    sold = dict(BOOK.sold(SOLD))
    assert (sold[b"cache-control"], sold[b"vary"]) == (b"private, no-store", b"Accept-Encoding")
    assert sold[b"content-type"] == b"application/json"
    assert sold.keys() >= dict(BOOK.always).keys()


def test_all_that_is_said_of_a_free_answer_by_where_it_comes_from():
    told = free(answer(), now=NOW + 20.9, hit=False)
    assert told["cache-control"] == "public, max-age=39, stale-if-error=86400"
    assert told["cache-status"] == "toolserver; fwd=miss; stored; ttl=39"
    assert told["last-modified"] == "Fri, 15 Jan 2027 07:59:55 GMT"
    assert (told["vary"], told["content-type"]) == ("Accept-Encoding", "application/json")
    assert free(answer(stale=True), hit=False)["cache-status"] == "toolserver; fwd=stale; ttl=60"
    assert free(answer(stale=True))["cache-status"] == "toolserver; hit; detail=stale; ttl=60"
    assert free(answer(oldest_at=None))["last-modified"] == "Fri, 15 Jan 2027 08:00:00 GMT"


def test_an_answer_that_nobody_keeps_says_that_it_was_made_for_this_call():
    told = free(answer(keepable=False), hit=False)
    assert (told["cache-control"], told["cache-status"]) == ("no-store", "toolserver; fwd=bypass")
    assert not {"etag", "age", "last-modified"} & told.keys()
    assert free(answer(nothing=True), hit=False)["cache-status"] == "toolserver; fwd=miss; detail=upstream-down"


def test_a_hit_and_a_miss_of_the_same_second_are_told_apart():
    rendered = answer()
    assert free(rendered, hit=False)["cache-status"] != free(rendered, hit=True)["cache-status"]


def test_how_a_payment_ended_is_told_in_both_versions():
    told = {"success": True, "network": "eip155:8453"}
    (name, value), (name_1, value_1) = settlement(told), settlement_version_1(told)
    assert (name, name_1) == (b"payment-response", b"x-payment-response")
    assert (unheader(value.decode()), unheader(value_1.decode())) == (told, told | {"network": "base"})


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (b"GZIP ; q=0.5", "gzip"),
        (b"br;q=0.5, gzip;q=0.6", "gzip"),
        (b"br;q=1, gzip;q=1", "br"),
        (b"gzip;q=0.001", "gzip"),
        (b"*;q=0.1, br;q=0.2", "br"),
        (b"*;q=0", None),
    ],
)
def test_weights_decide_and_then_the_order_of_preference(accept, chosen):
    assert choose_encoding(accept, COMPRESS_FROM) == chosen


@pytest.mark.parametrize("given", [b"trace-1234567", b"a" * 64])
def test_a_sane_request_id_of_the_caller_is_kept(given):
    assert request_id(given) == given.decode()


@pytest.mark.parametrize("given", [b"", b"<script>", b"a b", b"x" * 1000, b"\xff\xfe"])
def test_any_other_is_replaced(given):
    assert request_id(given).startswith("req_")


def test_header_values_are_text_in_latin_1():
    assert text(b"caf\xe9") == "café"
    assert text(None) is None


def test_a_client_that_does_not_say_what_it_has_is_not_asked_about():
    assert match_etag(None, b"gzip") is None


@pytest.mark.parametrize(("accept", "tag"), [(None, ""), (b"identity", ""), (b"gzip", "-gzip"), (b"br, gzip", "-br")])
def test_a_client_has_an_answer_only_in_the_coding_that_would_be_sent(accept, tag):
    tags = ["", "-gzip", "-br", "-zstd"]
    found = [known for known in tags if match_etag(f'"{ANSWER.etag}{known}"'.encode(), accept)(ANSWER)]
    assert found == [tag]


def test_a_304_says_nothing_of_a_body():
    given = [(b"content-type", b"a"), (b"etag", b"b"), (b"content-length", b"1"), (b"content-encoding", b"gzip")]
    assert without_entity(given) == [(b"etag", b"b")]


def test_a_paid_answer_says_what_is_left_and_carries_its_receipt():
    outcome = sold(ANSWER, 7, receipt_id="rcpt_1", receipt="a.b.c")
    assert paid_headers(outcome) == [
        (b"x-credits-remaining", b"7"),
        (b"x-service-receipt-id", b"rcpt_1"),
        (b"x-service-receipt", b"a.b.c"),
    ]
    assert paid_headers(Outcome(ANSWER)) == []


def test_a_receipt_by_reference_is_named_and_the_preference_confirmed():
    assert paid_headers(sold(ANSWER, 7, receipt_id="rcpt_1")) == [
        (b"x-credits-remaining", b"7"),
        (b"x-service-receipt-id", b"rcpt_1"),
        (b"preference-applied", b"receipt=reference"),
    ]


@pytest.mark.parametrize(
    ("prefer", "asked"),
    [
        (None, False),
        (b"receipt=reference", True),
        (b'respond-async, Receipt = "reference"; foo=bar', True),
        (b"receipt=inline, receipt=reference", False),
        (b"receipts=reference", False),
        (b"receipt", False),
        (b"\xff", False),
    ],
)
def test_a_preference_is_read_as_rfc_7240_writes_it(prefer, asked):
    assert prefers_reference(prefer) is asked


def test_a_payment_that_came_with_the_call_is_told_in_the_version_in_which_it_was_sent():
    told = {"success": True, "network": "eip155:8453", "transaction": "0xab"}
    outcome = Outcome(ANSWER, settlement=told)
    for lines in ((), [(b"payment-signature", b"x")]):
        ((name, value),) = paid_headers(outcome, lines)
        assert (name, unheader(value.decode())) == (b"payment-response", told)
    (_, (name, value)) = paid_headers(outcome, [(b"accept", b"*/*"), (b"x-payment", b"x")])
    assert (name, unheader(value.decode())) == (b"x-payment-response", told | {"network": "base"})


def test_a_token_with_nothing_left_is_told_so():
    assert paid_headers(sold(ANSWER, 0)) == [(b"x-credits-remaining", b"0")]


@pytest.mark.parametrize(
    ("given", "is_kept"), [(b"a" * 7, False), (b"a" * 8, True), (b"a" * 128, True), (b"a" * 129, False)]
)
def test_a_request_id_has_eight_to_a_hundred_and_twenty_eight_characters(given, is_kept):
    assert (request_id(given) == given.decode()) is is_kept
