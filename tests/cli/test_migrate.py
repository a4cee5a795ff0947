"""`toolserver migrate`, and what starts and commands do when only it may change the tables."""

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from tests.calls.parts import START
from toolserver.cli.ledger import ledger
from toolserver.cli.migrate import migrate
from toolserver.clock import ManualClock
from toolserver.money.ledger.store import FILE
from toolserver.serving.money import open_money
from toolserver.settings import Settings
from toolserver.sql.errors import MigrationPending
from toolserver.sql.migrate import migrate as apply
from toolserver.sql.migrate import migrations

BASE = "https://data.example"
KNOWN = len(migrations())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TOOLSERVER_STORAGE__MIGRATE", "manual")
    return tmp_path


def make_older(folder, version=KNOWN - 1):
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
        apply(db, migrations()[:version])


def invoke(command, *words):
    """The exit code of a command, and what it printed."""
    ended = CliRunner().invoke(command, words)
    return ended.exit_code, ended.output


def test_check_says_what_is_missing_and_changes_nothing(folder):
    make_older(folder)
    for _ in range(2):
        code, printed = invoke(migrate, "--check", "--json")
        missing = [migrations()[-1].name]
        facts = {"before": KNOWN - 1, "version": KNOWN - 1, "known": KNOWN, "missing": missing}
        assert (code, json.loads(printed)) == (3, facts)


def test_it_brings_the_file_up_to_date_once(folder):
    make_older(folder, 1)
    code, printed = invoke(migrate, "--json")
    assert (code, json.loads(printed)["applied"]) == (0, [step.name for step in migrations()[1:]])
    assert json.loads(invoke(migrate, "--json")[1])["applied"] == []
    assert invoke(migrate, "--check")[0] == 0
    assert invoke(ledger, "check")[0] == 0


def test_an_error_has_another_exit_code_than_a_missing_migration(folder):
    (folder / FILE).write_bytes(b"not a database, but long enough to be one" * 100)
    assert invoke(migrate, "--check")[0] == 1
    assert invoke(migrate)[0] == 1


def test_no_ledger_is_made_beside_the_keys_of_a_lost_one(folder):
    (folder / "keys").mkdir()
    (folder / "keys" / "receipts.json").write_text("{}")
    code, printed = invoke(migrate)
    assert (code, (folder / FILE).exists()) == (1, False)
    assert "put the ledger back" in printed


async def test_a_start_refuses_to_migrate_by_itself_and_names_the_remedy(folder):
    make_older(folder)
    with pytest.raises(MigrationPending, match="run `toolserver migrate`, or set"):
        async with open_money(Settings(), clock=ManualClock(START), base_url=BASE, service="data.example"):
            raise AssertionError("it has started")
    assert invoke(migrate, "--check")[0] == 3
    assert invoke(migrate)[0] == 0
    async with open_money(Settings(), clock=ManualClock(START), base_url=BASE, service="data.example"):
        pass


def test_a_command_does_not_migrate_either(folder):
    make_older(folder)
    code, printed = invoke(ledger, "check")
    assert (code, "run `toolserver migrate`" in printed) == (1, True)
    assert invoke(migrate, "--check")[0] == 3
