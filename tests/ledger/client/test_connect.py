"""Connecting to a sister's ledger: what has to be set, what is done at the start and at the end."""

import httpx
import pytest

from tests.calls.parts import START
from tests.ledger.ledgers import FOLLOWS
from toolserver.clock import ManualClock
from toolserver.ledger.client.connect import build_ledger_client, open_ledger_client
from toolserver.settings import LedgerSettings as Settings
from toolserver.storage.group_commit import durable

AWAY = httpx.MockTransport(lambda request: httpx.Response(503))


async def test_without_an_address_there_is_no_client(tmp_path):
    with pytest.raises(ValueError, match="set url, key_id and secret"):
        async with open_ledger_client(Settings(), tmp_path / "b.sqlite3"):
            pass


async def test_calls_that_died_with_the_process_before_are_releases_at_the_start(tmp_path, caplog):
    clock = ManualClock(START)
    async with durable(tmp_path / "b.sqlite3") as file:
        dying = build_ledger_client(FOLLOWS, file, clock, transport=AWAY)
        await dying.journal.note("c1", "committed")
        await dying.owner.aclose()
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        assert (await ledger.journal.waiting()).size == 1
    assert [record.count for record in caplog.records if "died" in record.message] == [1]


async def test_at_an_orderly_end_charged_calls_are_delivered(tmp_path):
    clock = ManualClock(START)
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        await ledger.journal.note("c1", "committed")
        ledger.deliveries.begin("c1")
    async with open_ledger_client(FOLLOWS, tmp_path / "b.sqlite3", clock, transport=AWAY) as ledger:
        assert (await ledger.journal.waiting()).size == 0
