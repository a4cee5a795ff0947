"""Simulated credits and real ones never share a directory, whatever was started there first or died half way."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.requirements import proves
from toolserver.clock import SystemClock
from toolserver.money.ledger.store import FILE
from toolserver.serving.money import (
    MARKER,
    LedgerLost,
    OpenToOthers,
    claim_directory,
    close_directory,
    open_money,
)
from toolserver.settings import Settings, UpstreamSettings
from toolserver.sql.errors import OtherWorld, RowsRewritten


def settings_of(folder, *, simulated):
    return Settings(data_dir=folder, upstream=UpstreamSettings(via="http://127.0.0.1:9" if simulated else None))


async def opened(settings):
    async with open_money(settings, clock=SystemClock(), base_url="https://data.example", service="data.example"):
        pass


@proves("money.apart")
@pytest.mark.parametrize("simulated", [True, False])
async def test_simulated_and_real_money_never_share_a_directory(tmp_path, simulated):
    own, other = settings_of(tmp_path, simulated=simulated), settings_of(tmp_path, simulated=not simulated)
    await opened(own)
    await opened(own)
    before = (tmp_path / FILE).read_bytes()

    with pytest.raises(OtherWorld, match="its own data directory"):
        await opened(other)

    assert (tmp_path / FILE).read_bytes() == before
    assert (tmp_path / MARKER).exists() is simulated


def test_a_simulation_that_died_before_its_books_were_made_has_claimed_the_directory(tmp_path):
    claim_directory(tmp_path / "new", simulated=True)

    with pytest.raises(OtherWorld, match="holds simulated credits"):
        claim_directory(tmp_path / "new", simulated=False)


def test_a_directory_that_holds_no_books_yet_is_free_to_either(tmp_path):
    claim_directory(tmp_path, simulated=False)
    claim_directory(tmp_path, simulated=True)

    assert (tmp_path / MARKER).stat().st_mode & 0o777 == 0o600


@proves("ledger.sealed")
@pytest.mark.parametrize(
    "damage",
    [
        "INSERT OR REPLACE INTO account VALUES(4, 'token', 10, 0, 0)",
        "DROP TRIGGER purchase_is_never_deleted",
        "UPDATE account SET credits=1, debits=0",
        "INSERT INTO journal VALUES('c1', 'committed', NULL, 0, 0)",
    ],
)
async def test_a_ledger_that_others_wrote_is_not_served(tmp_path, damage):
    settings = settings_of(tmp_path, simulated=False)
    await opened(settings)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db:
        db.execute(damage)

    with pytest.raises(RowsRewritten, match="Nothing is sold or signed"):
        await opened(settings)


@proves("ledger.lost")
async def test_a_ledger_that_was_lost_is_not_begun_anew_beside_the_keys_of_its_receipts(tmp_path):
    settings = settings_of(tmp_path, simulated=False)
    await opened(settings)
    for left in tmp_path.glob(f"{FILE}*"):
        left.unlink()

    with pytest.raises(LedgerLost, match="restore a backup"):
        await opened(settings)
    assert not (tmp_path / FILE).exists()

    (tmp_path / FILE).touch()
    with pytest.raises(LedgerLost, match="missing or empty"):
        await opened(settings)

    (tmp_path / "keys").rename(tmp_path / "old keys")
    await opened(settings)


async def test_a_directory_that_others_can_read_is_closed_at_the_start(tmp_path, caplog):
    settings = settings_of(tmp_path, simulated=False)
    await opened(settings)
    open_to_others = [tmp_path, tmp_path / "keys", tmp_path / FILE, tmp_path / "keys" / "receipts.json"]
    for path in open_to_others:
        path.chmod(0o755)

    await opened(settings)

    assert [path.stat().st_mode & 0o077 for path in open_to_others] == [0] * 4
    assert len([record for record in caplog.records if "removed other users' access" in record.message]) == 4


def test_a_folder_of_other_keys_in_the_data_directory_is_left_as_it_is(tmp_path):
    other = tmp_path / "keys" / "theirs.json"
    other.parent.mkdir()
    other.write_text("{}")
    for path in (other.parent, other):
        path.chmod(0o755)
    close_directory(tmp_path)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path, other.parent, other)] == [0o700, 0o755, 0o755]


def test_one_that_cannot_be_closed_is_refused(tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(1, "not permitted")

    tmp_path.chmod(0o750)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(OpenToOthers, match="chmod go="):
        close_directory(tmp_path)
