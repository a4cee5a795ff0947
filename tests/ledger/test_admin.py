"""What an operator sees and does: balances, holds, sweeps, checks, revocations, backups."""

import sqlite3
from contextlib import closing

import pytest

from tests.ledger.ledgers import token
from tests.requirements import proves
from toolserver.errors import PaymentRequired
from toolserver.ledger import admin as commands
from toolserver.ledger.sqlite import FILE, open_ledger
from toolserver.storage.backup import BackupFailed

RICH = token(1)


@pytest.fixture
async def fingerprint(tmp_path):
    """A ledger with a token that has paid 3 of 10 and set 2 aside; its fingerprint."""
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        await ledger.charge("c1", RICH, 3, endpoint="/x")
        await ledger.reserve("c2", RICH, 2, endpoint="/y", ttl_s=60)
        await ledger.reserve("c3", RICH, 1, endpoint="/z", ttl_s=-1)
        return (await ledger.standing(RICH)).fingerprint


async def test_a_balance_by_token_or_fingerprint(tmp_path, fingerprint):
    told = await commands.balance(tmp_path / FILE, RICH)
    assert told == await commands.balance(tmp_path / FILE, f" {fingerprint.upper()}")
    assert (told["fingerprint"], told["credits"], told["held"], told["state"]) == (fingerprint, 4, 3, "valid")
    assert told["reason"] is None
    for who in ("nonsense", token(2), "0" * 16):
        with pytest.raises(PaymentRequired):
            await commands.balance(tmp_path / FILE, who)


async def test_holds_are_listed_and_swept(tmp_path, fingerprint):
    first, second = await commands.holds(tmp_path / FILE)
    assert (first["call_id"], second["call_id"], second["fingerprint"]) == ("c3", "c2", fingerprint)
    assert second["expires_at"].endswith("Z")
    assert await commands.holds(tmp_path / FILE, limit=1) == [first]
    assert await commands.sweep(tmp_path / FILE) == {"voided": 1}
    assert await commands.holds(tmp_path / FILE) == [second]


async def test_a_check_is_ok_or_says_what_is_not(tmp_path, fingerprint):
    told = await commands.check(tmp_path / FILE)
    assert (told["ok"], told["breaches"], told["issued"], told["charged"], told["held"]) == (True, [], 10, 3, 2)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db:
        db.execute("UPDATE account SET credits=credits+5 WHERE kind='token'")
    told = await commands.check(tmp_path / FILE)
    assert not told["ok"]
    assert {"rule": "debits equal credits", "where": "token accounts hold 12, our own say 7"} in told["breaches"]


@proves("tokens.revoked")
async def test_a_revoked_token_is_expired_with_its_reason(tmp_path, fingerprint):
    assert await commands.revoke(tmp_path / FILE, fingerprint, "leaked") == {"revoked": True}
    assert await commands.revoke(tmp_path / FILE, fingerprint, "again") == {"revoked": False}
    told = await commands.balance(tmp_path / FILE, fingerprint)
    assert (told["state"], told["reason"]) == ("expired", "leaked")


async def test_a_backup_goes_where_it_is_told_or_beside_the_data_and_comes_back(tmp_path, fingerprint):
    made = commands.backup(tmp_path)
    assert made["backup"].startswith(str(tmp_path / "backups" / "ledger-"))
    commands.backup(tmp_path, tmp_path / "mine")
    await commands.revoke(tmp_path / FILE, fingerprint, "by mistake")
    back = commands.restore_backup(tmp_path, tmp_path / "mine")
    assert (await commands.balance(tmp_path / FILE, RICH))["state"] == "valid"
    with closing(sqlite3.connect(back["kept"])) as db:
        assert db.execute("SELECT revoke_reason FROM token").fetchone() == ("by mistake",)
    assert commands.restore_backup(tmp_path / "elsewhere", tmp_path / "mine")["kept"] is None


async def test_books_that_do_not_balance_are_neither_backed_up_nor_restored(tmp_path, fingerprint):
    commands.backup(tmp_path, tmp_path / "good")
    for name in (FILE, "good"):
        with closing(sqlite3.connect(tmp_path / name, isolation_level=None)) as db:
            db.execute("UPDATE account SET credits=credits+5 WHERE kind='token'")
    with pytest.raises(BackupFailed, match="debits equal credits"):
        commands.backup(tmp_path)
    with pytest.raises(BackupFailed, match="debits equal credits"):
        commands.restore_backup(tmp_path, tmp_path / "good")
