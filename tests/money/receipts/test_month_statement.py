"""The statement of a month: signed apart from receipts, and a link of a chain."""

import hashlib
from dataclasses import replace

import pytest

from toolserver.money.receipts.keys import b64, make_key
from toolserver.money.receipts.month_statement import (
    CLOSING,
    OPENING,
    LogRoot,
    MonthSpan,
    MonthStatement,
    RowDigest,
    StatementUnreadable,
    find_gap,
    parse_month,
    sign_month,
)
from toolserver.money.receipts.sign import encode
from toolserver.money.receipts.verify import verdict

JANUARY = MonthSpan.named("2027-01")
KEY = make_key()
CLOSED_AT = JANUARY.until // 1000 + 60


def statement(**changes):
    tables = {name: RowDigest(1, "a" * 64) for name in (OPENING, CLOSING)}
    named = {
        "v": 1, "service": "data.example", "month": "2027-01", "since": JANUARY.since, "until": JANUARY.until,
        "closed_at": JANUARY.until + 1, "previous": None, "tables": tables, "credits": {"used": 3},
        "log": LogRoot(0, "b" * 64),
    }  # fmt: skip
    return MonthStatement(**(named | changes))


def test_a_month_ends_where_the_next_one_begins():
    assert MonthSpan.named("2027-12").until == MonthSpan.named("2028-01").since
    assert MonthSpan.at(JANUARY.until - 1) == JANUARY
    assert MonthSpan.at(JANUARY.until).name == "2027-02"
    with pytest.raises(ValueError, match="does not match"):
        MonthSpan.named("2027-00")


def test_what_is_signed_is_read_again():
    signed = parse_month(sign_month(statement(), KEY))
    assert signed.statement == statement()
    signed.require_signed(KEY)


def test_a_key_that_is_unknown_another_or_out_of_its_time_does_not_count():
    signed = parse_month(sign_month(statement(), KEY))
    late, over = JANUARY.until // 1000 + 60, JANUARY.until // 1000
    times = ({"nbf": late}, {"exp": over}, {"revoked_at": over})
    for key in (None, make_key(), *(replace(KEY, **changes) for changes in times)):
        with pytest.raises(StatementUnreadable):
            signed.require_signed(key)


def test_a_month_is_no_receipt_and_a_receipt_no_month():
    text = sign_month(statement(), KEY)
    assert verdict(text, {KEY.kid: KEY}.get)["checks"]["format"] is False
    header = b64(encode({"alg": "EdDSA", "kid": KEY.kid, "typ": "receipt+jws"}))
    for wrong in (f"{header}.{text.partition('.')[2]}", "a.b.c", "", "a.b", text[1:]):
        with pytest.raises(StatementUnreadable):
            parse_month(wrong)


def test_a_month_names_the_one_before_and_opens_as_it_closed():
    january = parse_month(sign_month(statement(), KEY))
    follows = parse_month(sign_month(statement(month="2027-02", previous=january.sha256), KEY))
    opened = {OPENING: RowDigest(2, "c" * 64), CLOSING: RowDigest(1, "a" * 64)}
    other = parse_month(sign_month(statement(month="2027-02", previous=january.sha256, tables=opened), KEY))

    assert list(find_gap(None, january)) == list(find_gap(january, follows)) == []
    assert list(find_gap(None, follows)) == ["2027-02: it does not name the month before"]
    assert list(find_gap(january, january)) == ["2027-01: it does not name the month before"]
    assert list(find_gap(january, other)) == ["2027-02: it does not open with the balances that 2027-01 closed with"]


@pytest.mark.parametrize(
    ("times", "good"),
    [
        ({"nbf": CLOSED_AT}, True),
        ({"nbf": CLOSED_AT + 1}, False),
        ({"exp": CLOSED_AT + 1}, True),
        ({"exp": CLOSED_AT}, False),
        ({"revoked_at": CLOSED_AT + 1}, True),
        ({"revoked_at": CLOSED_AT}, False),
    ],
)
def test_a_key_counts_if_it_was_in_use_when_the_month_was_closed(times, good):
    signed, key = parse_month(sign_month(statement(closed_at=CLOSED_AT * 1000), KEY)), replace(KEY, **times)
    if good:
        signed.require_signed(key)
        return
    with pytest.raises(StatementUnreadable, match="was not in use when the month was closed"):
        signed.require_signed(key)


def test_a_month_is_named_and_spans_from_its_first_moment_to_the_next_ones():
    assert MonthSpan.named("1970-01") == ("1970-01", 0, 31 * 86_400_000)
    assert MonthSpan.named("2028-02").until - MonthSpan.named("2028-02").since == 29 * 86_400_000
    assert MonthSpan.at(MonthSpan.named("2027-12").until) == MonthSpan.named("2028-01")
    assert (OPENING, CLOSING) == ("opening", "closing")


@pytest.mark.parametrize(
    ("head", "good"),
    [
        ({"alg": "EdDSA", "kid": "k", "typ": "month+jws"}, True),
        ({"alg": "Ed25519", "kid": "k", "typ": "month+jws"}, True),
        ({"alg": "none", "kid": "k", "typ": "month+jws"}, False),
        ({"alg": "EdDSA", "kid": "k", "typ": "JWT"}, False),
        ({"alg": "EdDSA", "kid": "k", "typ": "month+jws", "jku": "x"}, False),
        ({"alg": "EdDSA", "typ": "month+jws"}, False),
    ],
)
def test_the_header_of_a_month_says_nothing_else(head, good):
    _, payload, signature = sign_month(statement(), KEY).split(".")
    text = f"{b64(encode(head))}.{payload}.{signature}"
    if good:
        assert parse_month(text).kid == "k"
        return
    with pytest.raises(StatementUnreadable, match="its header is not that of a month statement"):
        parse_month(text)


def test_a_statement_is_named_by_the_hash_of_its_whole_text():
    text = sign_month(statement(), KEY)
    assert parse_month(text).sha256 == hashlib.sha256(text.encode()).hexdigest()
