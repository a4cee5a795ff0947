"""From bytes to what `parse` is given, and what is no good answer."""

import csv
import json
import math
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.parts import FREELY
from tests.extras import find_samples
from tests.requirements import proves
from toolserver.upstream.decode import (
    ALWAYS_ALLOWED,
    LONGEST_REASON,
    MOST_LINES,
    MOST_VALUES,
    USUAL_SHARE,
    ParsedBody,
    RowCount,
    count_rows,
    parse_body,
    read_body,
    read_rows,
    read_times,
)
from toolserver.upstream.source import (
    Get,
    Licence,
    Proof,
    Source,
    SourceChanged,
    SourceEmpty,
    SourceFrozen,
    SourceLimited,
    SourceTooLarge,
)

URL = "https://test.example/"
EMPTY = Proof.harmless("nobody reads what this says")
JSON, TEXT, BYTES = Get(URL), Get(URL, decode="text"), Get(URL, decode="bytes")
HTML = Get(URL, headers={"Accept": "text/html"}, decode="text")


def source_of(parse=lambda body, query: body, **more):
    return Source(
        "Test.decode",
        JSON,
        parse,
        Licence("yes", "Test"),
        hosts=FREELY,
        fresh_s=1,
        keep_s=1,
        timeout_s=1,
        proof=EMPTY,
        **more,
    )


@pytest.mark.parametrize(
    ("request_", "body", "decoded"),
    [
        (JSON, b'{"a": 1}', {"a": 1}),
        (JSON, b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (JSON, '{"a": "é"}'.encode("utf-16"), {"a": "é"}),
        (TEXT, "\ufeffa,b\né".encode(), "a,b\né"),
        (BYTES, b"\x00\xff", b"\x00\xff"),
        (HTML, b"<!DOCTYPE html><p>", "<!DOCTYPE html><p>"),
        (BYTES, b"<rss></rss>", b"<rss></rss>"),
    ],
)
def test_a_body_is_decoded_as_the_request_says(request_, body, decoded):
    assert parse_body(source_of(), request_, None, body) == decoded


@pytest.mark.parametrize("body", [b"", b" \r\n\t"])
def test_an_empty_body_is_none_whatever_was_asked_for(body):
    assert [parse_body(source_of(), each, None, body) for each in (JSON, TEXT, BYTES)] == [None] * 3


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (JSON, b"<!doctype html><title>Just a moment"),
        (TEXT, b"\n<HTML><body>"),
        (BYTES, b"\xef\xbb\xbf <html>"),
        (JSON, b"<error/>"),
        (TEXT, b"  <error/>"),
        (JSON, b'{"a": NaN}'),
        (JSON, b"[Infinity]"),
        (JSON, b'{"a"'),
        (JSON, b"[" * 100_000),
        (TEXT, b"\xff\xfe"),
    ],
)
def test_a_page_or_a_broken_body_means_that_the_source_has_changed(request_, body):
    with pytest.raises(SourceChanged):
        parse_body(source_of(), request_, None, body)


@pytest.mark.parametrize(
    "error", [KeyError("a"), ValueError("b"), TypeError("c"), ZeroDivisionError("d"), csv.Error("e"), zlib.error("f")]
)
def test_what_parse_stumbles_over_means_that_the_source_has_changed(error):
    def parse(body, query):
        raise error

    with pytest.raises(SourceChanged, match=type(error).__name__):
        parse_body(source_of(parse), JSON, None, b"{}")


def test_a_source_error_of_parse_is_kept_and_a_failure_we_did_not_foresee_is_logged(caplog):
    def frozen(body, query):
        raise SourceFrozen("old")

    def broken(body, query):
        raise AssertionError("ours")

    with pytest.raises(SourceFrozen, match="old"):
        parse_body(source_of(frozen), JSON, None, b"{}")
    assert not caplog.records
    with pytest.raises(SourceChanged, match="ours"):
        parse_body(source_of(broken), JSON, None, b"{}")
    assert [record.getMessage() for record in caplog.records] == ["a parser failed in an unusual way"]


def test_a_body_that_needs_too_much_memory_is_too_large_and_no_fault_of_ours():
    def hungry(body, query):
        raise MemoryError

    with pytest.raises(SourceTooLarge):
        parse_body(source_of(hungry), JSON, None, b"{}")


@pytest.mark.parametrize(
    ("request_", "body"),
    [(JSON, b"[" + b"[]," * 800_000 + b"[]]"), (JSON, b"[" + b"1," * 1_600_000 + b"1]"), (TEXT, b"a\n" * 600_000)],
    ids=["empty lists", "numbers", "lines"],
)
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(request_, body):
    with pytest.raises(SourceTooLarge):
        parse_body(source_of(lambda body, query: pytest.fail("parsed")), request_, None, body)


@pytest.mark.parametrize("which", ["newest", "stamp"])
def test_a_time_that_cannot_be_read_means_that_the_source_has_changed(which):
    def fail(value):
        raise OverflowError("year 99999")

    with pytest.raises(SourceChanged, match="year"):
        read_times(source_of(**{which: fail}), 1)


def test_an_answer_is_judged_by_its_stamp_or_else_by_its_newest_item():
    newest, stamp = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)
    assert read_times(source_of(), 1) == ParsedBody(1, None, None)
    assert read_times(source_of(), 1).dropped == 0
    assert read_times(source_of(newest=lambda _: newest), 1) == ParsedBody(1, newest, newest)
    assert read_times(source_of(newest=lambda _: newest, stamp=lambda _: stamp), 1) == ParsedBody(1, newest, stamp)


class Pair(NamedTuple):
    one: int = 1
    two: int = 2


@pytest.mark.parametrize("items", [[], (), {}, [1, 2]])
def test_fewer_items_than_a_source_must_have_is_empty(items):
    body = json.dumps(items).encode()
    parse_body(source_of(least=len(items)), JSON, None, body)
    with pytest.raises(SourceEmpty, match=f"{len(items)} items"):
        parse_body(source_of(least=len(items) + 1), JSON, None, body)


@pytest.mark.parametrize("result", [Pair(), "", b"", 7])
def test_a_record_a_text_and_a_number_have_no_items_to_count(result):
    assert parse_body(source_of(lambda body, query: result, least=9), JSON, None, b"{}") == result


class Listing(NamedTuple):
    rows: tuple[int, ...]
    has_more: bool = False


def test_of_a_record_whose_first_field_is_a_list_its_items_are_counted_where_the_source_says_how_many():
    listing = Listing((1, 2))
    assert parse_body(source_of(lambda body, query: listing, least=2), JSON, None, b"{}") == listing
    assert parse_body(source_of(lambda body, query: Listing(()), least=1), JSON, None, b"{}") == Listing(())
    with pytest.raises(SourceEmpty, match="2 items"):
        parse_body(source_of(lambda body, query: listing, least=3), JSON, None, b"{}")


def test_of_a_body_that_was_cut_only_complete_lines_are_parsed():
    assert parse_body(source_of(), TEXT, None, b"a,1\nb,2\nc", cut=True) == "a,1\nb,2\n"
    assert parse_body(source_of(), TEXT, None, b"a,1\nb,2\nc") == "a,1\nb,2\nc"


def test_parse_is_given_the_query():
    assert parse_body(source_of(lambda body, query: (body, query)), JSON, "q", b"1") == (1, "q")


def test_rows_that_cannot_be_read_are_counted_with_the_value():
    source = source_of(lambda body, query: read_rows(body, lambda row: row["n"]), unreadable_share=0.5)
    body = b'[{"n": 1}, {}, {"n": 2}, {}, {"n": 3}, {}, {"n": 4}, {}]'
    parsed = read_body(source, JSON, None, body)
    assert (parsed.value, parsed.dropped) == ((1, 2, 3, 4), 4)
    with pytest.raises(SourceChanged, match="4 of 8 rows: KeyError: 'n'"):
        read_body(source_of(source.parse), JSON, None, body)


@pytest.mark.parametrize("use", [str, bool, float, int, lambda n: n or 1, lambda n: {n: 1}, lambda n: f"{n}"])
def test_a_row_that_uses_what_is_not_json_cannot_be_read_and_the_others_can(use):
    source = source_of(lambda body, query: read_rows(body, lambda row: row["n"] if row["n"] == 1 else use(row["n"])))
    parsed = read_body(source, JSON, None, b'[{"n": 1, "unused": -Infinity}, {"n": NaN}]')
    assert (parsed.value, parsed.dropped) == ((1,), 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2.5, "é", null, true], "a": 3}',
        "123456789012345678901234567890",
        "1e400",
        '"\\ud800"',
        "-0",
        "[0.1e-400]",
    ],
)
def test_a_text_says_what_the_standard_reader_says(text):
    assert repr(parse_body(source_of(), JSON, None, text.encode())) == repr(json.loads(text))


@pytest.mark.extra("SAMPLES")
def test_recorded_bodies_say_what_the_standard_reader_says():
    bodies = [path.read_bytes() for path in find_samples().rglob("*.json")]
    texts = [body for body in bodies if body.strip() and not any(name in body for name in (b"NaN", b"Infinity"))]
    assert len(texts) > 100
    for body in texts:
        with suppress(ValueError):
            value = json.loads(body)
            assert parse_body(source_of(), JSON, None, body) == value


@pytest.mark.parametrize("text", ["[1,]", "[NaN]", "1 2", '"\t"'])
def test_a_text_that_is_no_json_is_refused_and_its_constants_are_no_numbers(text):
    with pytest.raises(SourceChanged):
        parse_body(source_of(), JSON, None, text.encode())


def test_a_long_reason_is_cut_and_the_bounds_of_a_body_are_as_measured():
    def fail(body, query):
        raise ValueError("x" * 500)

    with pytest.raises(SourceChanged) as changed:
        parse_body(source_of(fail), JSON, None, b"{}")
    assert str(changed.value) == "ValueError: " + "x" * (LONGEST_REASON - len("ValueError: "))
    assert (LONGEST_REASON, MOST_VALUES, MOST_LINES) == (200, 1_500_000, 500_000)


def read(row):
    if isinstance(row, BaseException):
        raise row
    return row


@given(st.lists(st.one_of(st.integers(), st.none(), st.just("bad")), max_size=60), st.floats(0, 1))
def test_what_can_be_read_stays_in_order_and_the_rest_is_counted_up_to_the_share(rows, share):
    made = [ValueError("bad") if row == "bad" else row for row in rows]
    bad = rows.count("bad")
    with count_rows(share) as count:
        if bad and (bad == len(rows) or bad > max(3, share * len(rows))):
            with pytest.raises((SourceChanged, ValueError)):
                read_rows(made, read)
            return
        assert read_rows(made, read) == tuple(row for row in rows if row not in ("bad", None))
    assert count.dropped == bad


def test_the_lists_of_one_body_are_counted_together_and_bodies_apart():
    with count_rows(0.1) as first:
        read_rows([1, ValueError()], read)
        read_rows([2, KeyError("a"), csv.Error()], read)
        with count_rows(0.1) as inner:
            read_rows([1, IndexError()], read)
    with count_rows(0.1) as second:
        read_rows([1], read)
    assert (first.dropped, inner.dropped, second.dropped) == (3, 1, 0)


@proves("answers.rows-share")
def test_the_share_is_told_with_the_first_reason():
    rows = [*range(36), *[ValueError("no number")] * 4]
    with pytest.raises(SourceChanged, match=r"^4 of 40 rows: ValueError: no number$"), count_rows(0.09):
        read_rows(rows, read)
    assert len(read_rows(rows, read)) == 36


def test_when_no_row_can_be_read_the_first_says_why():
    with pytest.raises(KeyError, match="magnitude"):
        read_rows([KeyError("magnitude"), ValueError("x")], read)


@pytest.mark.parametrize("error", [SourceLimited("quota"), SourceEmpty("nothing"), OSError("disk"), MemoryError()])
def test_what_is_not_about_the_row_ends_the_reading(error):
    with pytest.raises(type(error)):
        read_rows([1, error, 2], read)


def test_a_row_is_left_out_whatever_its_reader_stumbles_over():
    rows = [1, {"a": math.nan}["a"], SourceChanged("another kind"), RecursionError(), ZeroDivisionError(), 2]
    assert [row for row in read_rows(rows, read) if row == row] == [1, 2]


def test_the_rows_of_a_body_are_counted_with_those_that_were_left_out():
    with count_rows(0.5) as count:
        read_rows([1, None, ValueError()], read)
        read_rows([2], read)
    assert count == RowCount(0.5, dropped=1, seen=4)
    assert RowCount() == RowCount(0.1, 0, 0)


@proves("answers.rows-share")
@pytest.mark.parametrize(("rows", "bad", "is_read"), [(10, 3, True), (10, 4, False), (50, 5, True), (50, 6, False)])
def test_three_rows_or_a_tenth_may_be_unreadable(rows, bad, is_read):
    given_rows = [*range(rows - bad), *[ValueError("no")] * bad]
    assert (USUAL_SHARE, ALWAYS_ALLOWED) == (0.1, 3)
    if is_read:
        assert len(read_rows(given_rows, read)) == rows - bad
    else:
        with pytest.raises(SourceChanged, match=f"{bad} of {rows} rows"):
            read_rows(given_rows, read)


def test_a_long_reason_is_cut():
    with pytest.raises(SourceChanged) as changed:
        read_rows([1, *[ValueError("x" * 500)] * 4], read)
    assert len(str(changed.value)) == 200
