"""Instances that share a database have the same keys, or do not start."""

import shutil

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened_file
from toolserver.clock import ManualClock
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, KeyRing, ensure_keys, rotate_keys, write
from toolserver.money.receipts.sql_keys import KeysDiffer
from toolserver.serving.shared_keys import SharedKeys
from toolserver.webhooks.signing import KEY_FILE, ensure_key


def rings_of(folder):
    names = {"receipts": RECEIPT_KEYS, "log": LOG_KEYS}
    return {purpose: KeyRing(folder / name, ManualClock(START)) for purpose, name in names.items()}


async def test_with_a_file_of_its_own_nothing_is_published_or_refused(tmp_path):
    async with opened_file("sqlite", tmp_path) as file:
        keys = SharedKeys(file, tmp_path)
        await keys.require_mounted()
        rings = rings_of(tmp_path)
        await keys.agree(rings)
        assert [len(ring.keys) for ring in rings.values()] == [1, 1]
        with pytest.raises(KeysDiffer, match=r"scaling\.keys_dir is for instances"):
            await SharedKeys(file, tmp_path, tmp_path / "secret").require_mounted()


@pytest.mark.live
async def test_who_comes_later_needs_the_same_files(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    async with opened_file("postgres", tmp_path) as file:
        first, second = SharedKeys(file, one), SharedKeys(file, other, other / "keys")
        await first.require_mounted()
        rings = rings_of(one)
        ensure_key(one / KEY_FILE)
        await first.agree(rings)

        with pytest.raises(KeysDiffer, match=r"receipts.json and .*log.json are missing: .*keys make"):
            await second.require_mounted()
        assert not (other / "keys").exists()

        shutil.copytree(one / "keys", other / "keys")
        await second.require_mounted()
        write(other / RECEIPT_KEYS, rotate_keys(ensure_keys(other / RECEIPT_KEYS), START.timestamp()))
        await second.agree(rings_of(other))
        await first.agree(rings)
        assert len(rings["receipts"].published()) == 2, "the rotation of the other is shown"

        (other / KEY_FILE).unlink()
        ensure_key(other / KEY_FILE)
        with pytest.raises(KeysDiffer, match="key for webhooks"):
            await second.agree(rings_of(other))
