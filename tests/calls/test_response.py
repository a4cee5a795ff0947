"""An answer as bytes: what its headers need, its compressed forms, and its copy with the credits that remain."""

import gzip
import hashlib
import json
from datetime import UTC, datetime

import brotli
import pytest
import zstandard

from tests.requirements import proves
from toolserver.calls.response import (
    AHEAD,
    COMPRESS_FROM,
    ENCODINGS,
    SHORT_META,
    ChargeNote,
    RenderedResponse,
    epoch,
    json_bytes,
    shorten_meta,
    with_note,
    with_note_escaped,
)

BODY = json_bytes({"data": 'ü"\\\n' * 500, "_meta": {"sources": []}})
READ = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": zstandard.decompress}


@pytest.fixture
def rendered():
    return RenderedResponse(BODY, 1000.0, 1060.0, 990.0)


def test_the_etag_is_of_these_bytes(rendered):
    assert rendered.etag == hashlib.sha256(BODY).hexdigest()[:32]
    assert RenderedResponse(BODY[:-2] + b" }}", 0.0, 0.0, None).etag != rendered.etag


def test_age_counts_from_the_oldest_source_and_what_is_left_ends_at_zero(rendered):
    assert (rendered.age(1005.9), rendered.left(1005.9)) == (15, 54)
    assert (rendered.age(900.0), rendered.left(2000.0)) == (0, 0)
    assert RenderedResponse(BODY, 1000.0, 1060.0, None).age(1007.0) == 7


def test_a_popular_answer_is_made_anew_after_most_of_its_life(rendered):
    assert rendered.ahead_at == 1000.0 + AHEAD * 60


@proves("headers.compressed-once")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_encoding_is_compressed_once_and_reads_back_the_same(rendered, encoding):
    assert READ[encoding](rendered.variant(encoding)) == BODY
    kept = rendered.memo[encoding]
    rendered.variant(encoding)
    assert rendered.memo[encoding] is kept


def test_the_payload_as_a_json_string(rendered):
    assert json.loads(rendered.escaped) == BODY.decode()


@pytest.mark.parametrize(
    ("note", "members"),
    [
        (ChargeNote(0, 0), {"credits_remaining": 0, "credits_charged": 0}),
        (
            ChargeNote(2, 98, "rcpt_01"),
            {"credits_remaining": 98, "credits_charged": 2, "receipt_id": "rcpt_01"},
        ),
        (ChargeNote(2, None, "rcpt_01"), {"credits_charged": 2, "receipt_id": "rcpt_01"}),
        (ChargeNote(75, 10**15), {"credits_remaining": 10**15, "credits_charged": 75}),
    ],
)
def test_the_copy_with_a_note_is_hashed_and_measured_as_it_is_sent(rendered, note, members):
    copy = with_note(BODY, note)

    assert json.loads(copy)["_meta"] == {"sources": [], **members}
    assert note.as_json() == members
    assert json.loads(with_note_escaped(rendered.escaped, note)) == copy.decode()
    assert rendered.sha256(note) == hashlib.sha256(copy).digest()
    assert rendered.size(note) == len(copy)
    assert (rendered.sha256(), rendered.size()) == (hashlib.sha256(BODY).digest(), len(BODY))
    assert (rendered.sha256(note), rendered.sha256()) == tuple(hashlib.sha256(x).digest() for x in (copy, BODY))


def test_times_and_values_that_json_does_not_have():
    assert epoch(datetime(1970, 1, 2, tzinfo=UTC)) == 86_400.0
    assert epoch(None) is None
    with pytest.raises(TypeError):
        json_bytes({"x": object()})


def test_the_short_meta_keeps_what_changes_a_decision_and_is_made_once():
    told = {"attribution": ["A"], "untrusted_text": True, "stale": False, "simulated": True}
    text = 'a text that says ,"_meta":{"stale":true}}'
    body = json_bytes({"data": text, "_meta": {"sources": [{"name": "A"}], **told, "sources_digest": "0"}})
    whole = RenderedResponse(body, 1000.0, 1060.0, 990.0, stale=True)
    short = whole.short

    assert json.loads(short.payload) == {"data": text, "_meta": told}
    assert short is whole.short
    assert short.etag == hashlib.sha256(short.payload).hexdigest()[:32] != whole.etag
    assert (short.generated_at, short.expires_at, short.oldest_at, short.stale) == (1000.0, 1060.0, 990.0, True)
    assert json.loads(with_note(short.payload, ChargeNote(2, 7)))["_meta"]["credits_remaining"] == 7


def test_a_payload_without_meta_is_its_own_short_form():
    body = json_bytes({"token": "x", "credits": 3})
    assert shorten_meta(body) == body


def test_what_is_compressed_kept_short_and_made_ahead_is_as_promised():
    assert (COMPRESS_FROM, AHEAD, ENCODINGS) == (1024, 0.85, ("zstd", "br", "gzip"))
    assert SHORT_META == ("attribution", "untrusted_text", "stale", "simulated")


def test_an_answer_is_fresh_whole_and_uncounted_unless_it_is_said_otherwise(rendered):
    assert (rendered.stale, rendered.nothing, rendered.no_charge, rendered.keepable) == (False, False, None, True)
    assert (rendered.hits, rendered.next, rendered.ahead_at) == (0, None, 1051.0)
    assert RenderedResponse(BODY, 0.0, 0.0, None, etag="given").etag == "given"


def test_ages_and_what_is_left_are_whole_seconds_rounded_down(rendered):
    assert [rendered.age(at) for at in (990.0, 990.9, 991.0)] == [0, 0, 1]
    assert [rendered.left(at) for at in (1058.9, 1059.0, 1059.1, 1060.0)] == [1, 1, 0, 0]


def test_a_short_answer_is_another_one_with_nothing_of_what_was_made_from_the_whole():
    whole = RenderedResponse(json_bytes({"data": 1, "_meta": {"sources": [], "stale": True}}), 1000.0, 1060.0, None)
    whole.next = whole
    assert whole.escaped
    assert (whole.short.next, whole.short.escaped) == (None, b'"{\\"data\\":1,\\"_meta\\":{\\"stale\\":true}}"')
