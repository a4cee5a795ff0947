"""What is written down for other instances is read as it was, without our keys, and nothing else is believed."""

from datetime import UTC, datetime

import pytest

from tests.calls.parts import START, number_source
from toolserver.upstream.secret_removal import SecretRemover
from toolserver.upstream.shared_body import (
    SHARED_BYTES,
    pack_body,
    read_failure,
    read_time,
    unpack_body,
    write_failure,
    write_time,
)
from toolserver.upstream.source_errors import HostRefused, SourceDown, SourceEmpty
from toolserver.upstream.throttle import RequestWithheld

SECRET = "k1-0123456789abcdef"
REMOVER = SecretRemover({"FRED_API_KEY": SECRET})


@pytest.mark.parametrize("body", [b"", b"{}", b"ab" * 100_000])
async def test_a_body_is_what_it_was(body):
    packed = await pack_body(body, {"etag": "x"}, REMOVER)
    found = await unpack_body(number_source(), write_time(START), *packed)
    assert (found.body, found.fetched_at, found.validators) == (body, START, {"etag": "x"})


async def test_a_body_with_a_key_in_it_or_in_its_validators_is_not_written_down():
    assert await pack_body(b"echo " + SECRET.encode(), {}, REMOVER) is None
    assert await pack_body(b"", {"etag": SECRET}, REMOVER) is None


async def test_a_body_that_stays_too_large_is_not_written_down(monkeypatch):
    monkeypatch.setattr("toolserver.upstream.shared_body.SHARED_BYTES", 100)
    assert await pack_body(b"a" * 1000, {}, REMOVER) is not None
    assert await pack_body(bytes(range(256)), {}, REMOVER) is None


async def test_nothing_that_is_missing_or_damaged_is_a_body():
    named, packed = await pack_body(b"{}", {}, REMOVER)
    at = write_time(START)
    for found in ((None, named, packed), (at, None, packed), (at, named, None), (b"x", named, packed)):
        assert await unpack_body(number_source(), *found) is None
    for found in ((at, b"[", packed), (at, b'{"a":1}', packed), (at, named, b"no"), (at, named, packed[:-1])):
        assert await unpack_body(number_source(), *found) is None


def test_an_error_is_the_same_after_it_was_written_down():

    remover = SecretRemover({"FRED_API_KEY": "k1-0123456789abcdef"})
    for error in (
        SourceEmpty("3 items"),
        RequestWithheld("its turn", word="rate_limited", retry_after_s=7.5),
        SourceDown("with k1-0123456789abcdef in it", word="http_500"),
    ):
        again = read_failure(write_failure(error, remover))
        assert (type(again), again.word, again.retry_after_s) == (type(error), error.word, error.retry_after_s)
        assert "k1-" not in str(again)
    assert read_failure(write_failure(HostRefused("403"), remover)).word == "refused"
    assert isinstance(read_failure(b"\xff"), SourceDown)


def test_times_are_exact():

    at = datetime(2027, 1, 15, 8, 0, 0, 123457, tzinfo=UTC)
    assert read_time(write_time(at)) == at
    assert read_time(None) is read_time(b"x") is read_time(b"9" * 30) is None


def test_a_time_is_written_as_microseconds_since_1970():
    assert write_time(datetime(1970, 1, 2, 0, 0, 0, 1, tzinfo=UTC)) == b"86400000001"
    assert read_time(b"0") == datetime(1970, 1, 1, tzinfo=UTC)


async def test_a_body_that_is_as_large_as_the_source_may_send_is_taken_and_no_larger_one():
    source = number_source(max_bytes=100)
    for size, is_taken in ((100, True), (101, False)):
        named, packed = await pack_body(b"a" * size, {}, REMOVER)
        assert (await unpack_body(source, write_time(START), named, packed) is not None) is is_taken


def test_of_a_long_detail_a_hundred_characters_are_written_down():
    assert str(read_failure(write_failure(SourceDown("x" * 500), REMOVER))) == "x" * 100
    assert SHARED_BYTES == 4_194_304
