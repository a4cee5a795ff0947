"""What an operator sees and does: balances, holds, sweeps, checks, revocations, backups."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import anyio
import pytest

from tests.money.ledger.ledgers import token
from tests.requirements import proves
from toolserver.core.caller import well_formed
from toolserver.errors import PaymentRequired
from toolserver.money.ledger import admin as commands
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.sql.backup import BackupFailed

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
    issued = datetime.fromisoformat(told.pop("issued_at"))
    assert abs((datetime.now(UTC) - issued).total_seconds()) < 300
    assert told == {"fingerprint": fingerprint, "credits": 4, "held": 3, "state": "valid", "reason": None}
    for who in ("nonsense", token(2), "0" * 16):
        with pytest.raises(PaymentRequired):
            await commands.balance(tmp_path / FILE, who)


async def test_holds_are_listed_and_swept(tmp_path, fingerprint):
    first, second = await commands.holds(tmp_path / FILE)
    assert (first["call_id"], second["call_id"]) == ("c3", "c2")
    assert second["expires_at"].endswith("Z")
    named = {"call_id": "c3", "fingerprint": fingerprint, "credits": 1, "endpoint": "/z", "service": ""}
    assert first == {**named, "expires_at": first["expires_at"]}
    assert await commands.holds(tmp_path / FILE, limit=1) == [first]
    assert await commands.sweep(tmp_path / FILE) == {"voided": 1}
    assert await commands.holds(tmp_path / FILE) == [second]


async def test_a_check_is_ok_or_says_what_is_not(tmp_path, fingerprint):
    sums = {"tokens": 1, "issued": 10, "charged": 3, "held": 2, "spendable": 5, "transfers": 5}
    assert await commands.check(tmp_path / FILE) == {"ok": True, "breaches": [], **sums}
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db:
        db.execute("UPDATE account SET credits=credits+5 WHERE kind='token'")
    told = await commands.check(tmp_path / FILE)
    assert not told["ok"]
    assert {"rule": "debits equal credits", "where": "token accounts hold 12, our own say 7"} in told["breaches"]


async def test_rows_that_others_wrote_are_reported_until_a_person_accepts_them(tmp_path, fingerprint, caplog):
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db:
        db.execute("UPDATE account SET credits=credits+5 WHERE kind='token'")
    breaches = (await commands.check(tmp_path / FILE))["breaches"]
    written = [breach["where"] for breach in breaches if breach["rule"] == commands.WRITTEN]
    assert written
    assert await commands.accept_rows(tmp_path / FILE) == {"accepted": written}
    assert [record.found for record in caplog.records if "accepted" in record.message] == [written]
    told = await commands.check(tmp_path / FILE)
    assert not told["ok"]
    assert commands.WRITTEN not in {breach["rule"] for breach in told["breaches"]}


async def test_a_ledger_is_begun_once(tmp_path):
    await commands.begin(tmp_path)
    made = await commands.grant(tmp_path / FILE, "new", 5, "first")
    await commands.begin(tmp_path)
    assert (await commands.balance(tmp_path / FILE, made["token"]))["credits"] == 5


async def test_a_grant_to_a_new_token_shows_it_and_names_its_reason(tmp_path, fingerprint):
    made = await commands.grant(tmp_path / FILE, "new", 5, "for a start")
    token, cause = made.pop("token"), made.pop("cause")
    assert well_formed(token)
    assert re.fullmatch("grant:[0-9a-f]{16}:for a start", cause)
    assert made == {"granted": 5, "remaining": 5, "replayed": False}
    assert (await commands.balance(tmp_path / FILE, token))["credits"] == 5


async def test_a_grant_with_a_name_is_made_once_whatever_reason_the_repetition_gives(tmp_path, fingerprint):
    made = await commands.grant(tmp_path / FILE, fingerprint, 6, "paid", once="0xab")
    assert made == {"granted": 6, "remaining": 10, "cause": "grant:0xab:paid", "replayed": False}
    assert await commands.grant(tmp_path / FILE, fingerprint, 6, "again", once="0xab") == {**made, "replayed": True}
    assert (await commands.grant(tmp_path / FILE, fingerprint, 6, "paid", once="0xa"))["remaining"] == 16


@proves("tokens.revoked")
async def test_a_revoked_token_is_expired_with_its_reason(tmp_path, fingerprint):
    assert await commands.revoke(tmp_path / FILE, fingerprint, "leaked") == {"revoked": True}
    assert await commands.revoke(tmp_path / FILE, fingerprint, "again") == {"revoked": False}
    told = await commands.balance(tmp_path / FILE, fingerprint)
    assert (told["state"], told["reason"]) == ("expired", "leaked")


async def test_a_backup_goes_where_it_is_told_or_beside_the_data_and_comes_back(tmp_path, fingerprint):
    made = commands.backup(tmp_path)
    assert made["backup"].startswith(str(tmp_path / "backups" / "ledger-"))
    assert made == {"backup": made["backup"], "bytes": (await anyio.Path(made["backup"]).stat()).st_size}
    assert commands.backup(tmp_path, tmp_path / "mine")["backup"] == str(tmp_path / "mine")
    await commands.revoke(tmp_path / FILE, fingerprint, "by mistake")
    back = commands.restore_backup(tmp_path, tmp_path / "mine")
    assert back["restored"] == str(tmp_path / FILE)
    assert (await commands.balance(tmp_path / FILE, RICH))["state"] == "valid"
    assert (await commands.check(tmp_path / FILE))["ok"]  # it is not taken for an older copy
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
