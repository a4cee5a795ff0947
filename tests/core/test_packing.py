"""What is packed is read back within a bound, and damage is found."""

import zlib

import pytest

from toolserver.core.packing import LARGE, PackingDamaged, pack, unpack


@pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * (LARGE // 100)])
async def test_what_is_packed_is_read_back(body):
    assert await unpack(await pack(body), len(body)) == body


@pytest.mark.parametrize("packed", [b"", b"no", zlib.compress(b"abc")[:-1], zlib.compress(b"abcd")])
async def test_what_is_damaged_cut_off_or_too_large_is_refused(packed):
    with pytest.raises(PackingDamaged):
        await unpack(packed, 3)
