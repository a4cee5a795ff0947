"""The statement of a month: signed apart from receipts, and a link of a chain."""

from dataclasses import replace

import pytest

from toolserver.receipts.keys import b64, make_key
from toolserver.receipts.month_statement import (
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
from toolserver.receipts.sign import encode
from toolserver.receipts.verify import verdict

JANUARY = MonthSpan.named("2027-01")
KEY = make_key()


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
