"""The one bounded reader of bodies."""

import gzip
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.bombs import MIB, zip_repeated
from toolserver.core.http import (
    MOST_MEMBERS,
    STEP,
    BodyTooLarge,
    BodyUnreadable,
    decode_pieces,
    read_body,
    read_prefix,
    request_pieces,
)


class Pieces:
    """A body in pieces, which counts how many of them were taken."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.taken = 0

    async def __aiter__(self):
        for piece in self._pieces:
            self.taken += 1
            yield piece


async def test_a_body_of_exactly_the_limit_is_whole():
    assert await read_body(Pieces(b"abc", b"", b"de"), 5) == b"abcde"
    assert await read_prefix(Pieces(b"abc", b"de"), 5) == (b"abcde", False)
    assert await read_body(Pieces(), 5) == b""


async def test_a_body_over_the_limit_is_refused_before_the_rest_of_it_is_read():
    body = Pieces(b"abc", b"def", b"g" * 1000)
    with pytest.raises(BodyTooLarge, match="over 5 bytes"):
        await read_body(body, 5)
    assert body.taken == 2


async def test_a_prefix_has_as_many_bytes_as_the_limit_and_says_that_there_were_more():
    body = Pieces(b"abc", b"def", b"ghi")
    assert await read_prefix(body, 5) == (b"abcde", True)
    assert body.taken == 2


async def test_the_body_of_an_asgi_request_is_its_pieces_until_the_last():
    messages = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": b"c"},
        {"type": "http.request", "body": b"never read"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    assert await read_body(request_pieces(receive), 3) == b"abc"
    assert len(messages) == 1


async def test_the_body_of_a_request_whose_client_is_gone_ends():
    messages = [{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    assert await read_body(request_pieces(receive), 9) == b"ab"


def cut_up(body, size):
    return Pieces(*(body[at : at + size] for at in range(0, len(body), size)))


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=4), st.integers(1, 5000), st.integers(0, 20))
async def test_any_gzip_members_in_any_pieces_are_decoded_as_gzip_does(members, size, filling):
    raw = b"".join(map(gzip.compress, members)) + bytes(filling)
    assert await read_body(decode_pieces(cut_up(raw, size), "gzip"), 20_000) == b"".join(members)


@pytest.mark.parametrize("encoding", [None, "", "identity", " Identity "])
async def test_a_body_that_is_not_encoded_passes_as_it_is(encoding):
    assert await read_body(decode_pieces(Pieces(b"ab", b"c"), encoding), 5) == b"abc"


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip,br", "x" * 300])
async def test_an_encoding_that_was_not_asked_for_is_refused(encoding):
    with pytest.raises(BodyUnreadable, match="encoded as"):
        decode_pieces(Pieces(b"abc"), encoding)


WHOLE = gzip.compress(b"value " * 100)


@pytest.mark.parametrize(
    "damaged",
    [
        WHOLE[:-1],
        WHOLE[:20],
        b"plain",
        WHOLE + b"junk",
        WHOLE[:-8] + bytes(8),
        bytes([*WHOLE[:15], WHOLE[15] ^ 255, *WHOLE[16:]]),
        zlib.compress(b"zlib is not gzip"),
        gzip.compress(b"") * (MOST_MEMBERS + 1),
    ],
    ids=["no end", "half", "plain", "junk after it", "wrong sum", "a flipped byte", "zlib", "too many members"],
)
async def test_damaged_gzip_is_unreadable(damaged):
    for size in (1000, 7):
        with pytest.raises(BodyUnreadable):
            await read_body(decode_pieces(cut_up(damaged, size), "gzip"), 10_000)


async def test_an_empty_body_may_say_that_it_is_gzip():
    assert await read_body(decode_pieces(Pieces(), "gzip"), 5) == b""


async def test_a_megabyte_that_stands_for_a_gigabyte_takes_no_more_memory_than_the_limit():
    bomb = zip_repeated(bytes(MIB), 1024)
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            await read_body(decode_pieces(Pieces(bomb), "gzip"), 500_000)
        assert tracemalloc.get_traced_memory()[1] < 500_000 + 8 * STEP + 2 * len(bomb)
    finally:
        tracemalloc.stop()
