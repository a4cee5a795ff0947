"""Receipts are opened with the keys that the settings name, and with those of other instances."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from toolserver.clock import ManualClock
from toolserver.money.receipts.keys import LOG_KEYS, RECEIPT_KEYS, LogKeysLost, ReceiptKeysLost, ensure_keys
from toolserver.money.receipts.sql_keys import KeysDiffer
from toolserver.serving.receipts import open_receipts
from toolserver.settings import ScalingSettings, Settings

NAMED = {"base_url": "https://data.example", "service": "data.example"}
CLOCK = ManualClock(START)


async def test_a_service_with_a_file_has_the_keys_of_its_data_directory(tmp_path):
    (key,) = ensure_keys(tmp_path / RECEIPT_KEYS)
    async with opened_file("sqlite", tmp_path) as file:
        receipts, agree = await open_receipts(Settings(data_dir=tmp_path), CLOCK, file, **NAMED)
        await agree()
        assert receipts.key_in_use()["kid"] == key.kid


@pytest.mark.live
async def test_an_instance_has_the_mounted_keys_or_is_refused(tmp_path):
    (key,) = ensure_keys(tmp_path / "secret" / "receipts.json")
    ensure_keys(tmp_path / "secret" / "log.json")
    mounted = ScalingSettings(keys_dir=tmp_path / "secret")
    async with opened_file("postgres", tmp_path) as file:
        given = Settings(data_dir=tmp_path / "a", scaling=mounted)
        receipts, agree = await open_receipts(given, CLOCK, file, **NAMED)
        await agree()
        assert receipts.key_in_use()["kid"] == key.kid
        with pytest.raises(KeysDiffer):
            await open_receipts(Settings(data_dir=tmp_path / "b"), CLOCK, file, **NAMED)


def store_receipt(db):
    db.execute("INSERT INTO receipt(id, owner, core, key, signature, at) VALUES(?,?,?,?,?,?)", RECEIPT)


RECEIPT = ("rcpt_1", "a" * 64, b"{}", "kid", b"s" * 64, 0)


@pytest.mark.parametrize("engine", ["sqlite", POSTGRES])
async def test_receipts_whose_keys_are_lost_get_no_new_key_in_silence(tmp_path, engine):
    async with opened_file(engine, tmp_path) as file:
        opening = Settings(data_dir=tmp_path), CLOCK, file
        await file.alone(store_receipt)
        with pytest.raises(ReceiptKeysLost, match=r"receipts.json is lost.*could no longer be verified.*--after-loss"):
            await open_receipts(*opening, **NAMED)
        assert not (tmp_path / RECEIPT_KEYS).exists()
        ensure_keys(tmp_path / RECEIPT_KEYS)
        await open_receipts(*opening, **NAMED)


async def test_a_log_whose_key_is_lost_gets_no_new_one_in_silence(tmp_path):
    """Instances of one database are refused before: they have published their keys."""
    async with opened_file("sqlite", tmp_path) as file:
        opening = Settings(data_dir=tmp_path), CLOCK, file
        receipts, _ = await open_receipts(*opening, **NAMED)
        (tmp_path / LOG_KEYS).rename(tmp_path / "log.backup")
        await open_receipts(*opening, **NAMED)  # nothing was signed yet
        (tmp_path / LOG_KEYS).unlink()
        (tmp_path / "log.backup").rename(tmp_path / LOG_KEYS)
        await receipts.log.checkpoint()
        (tmp_path / LOG_KEYS).rename(tmp_path / "log.backup")
        with pytest.raises(LogKeysLost, match=r"log.json is lost.*another signer.*--after-loss"):
            await open_receipts(*opening, **NAMED)
        assert not (tmp_path / LOG_KEYS).exists()
        ensure_keys(tmp_path / LOG_KEYS)
        await open_receipts(*opening, **NAMED)
