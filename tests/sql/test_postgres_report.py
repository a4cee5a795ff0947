"""What is told about a database on a server; nothing about a file."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened_file
from toolserver.clock import ManualClock
from toolserver.sql.leases import LeasedTask
from toolserver.sql.ledger_place import report_database
from toolserver.sql.postgres_migrate import server_migrations


async def test_of_a_file_there_is_nothing_to_tell(tmp_path):
    async with opened_file("sqlite", tmp_path) as file:
        assert await file.apart(report_database) is None


@pytest.mark.live
async def test_server_tables_connections_and_leases(tmp_path):
    async with opened_file("postgres", tmp_path) as file:
        for name, lasts in (("watch", 100), ("sweep", 0)):
            await LeasedTask(file, name, ManualClock(START), lease_s=lasts).take()
        found = await file.apart(report_database)
    assert found["server"].startswith("PostgreSQL 1")
    assert found["tables"] == len(server_migrations())
    assert found["connections"] >= 2
    sweep, watch = found["leases"]
    assert sweep == {"name": "sweep", "number": 1, "seconds_left": 0}
    assert 90 <= watch["seconds_left"] <= 100
