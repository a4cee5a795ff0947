"""A ledger is reached alike in a file and in a database: read on a snapshot, within an event loop too, and written."""

import pytest

from tests.money.ledger.ledgers import token
from tests.postgres import POSTGRES, terms_of
from toolserver.money.ledger import admin
from toolserver.money.ledger.store import FILE
from toolserver.sql.errors import StorageFailed
from toolserver.sql.ledger_place import open_place, read_place
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.sqlite import durable


@pytest.fixture(params=["file", POSTGRES])
async def place(request, tmp_path):
    if request.param == "postgres":
        yield terms_of(tmp_path)
        return
    async with durable(tmp_path / FILE):
        pass
    yield tmp_path / FILE


async def test_what_commands_write_is_read_by_the_next(place):
    granted = await admin.grant(place, "new", 7, "test", once="a")
    assert granted["remaining"] == 7
    assert (await admin.balance(place, granted["token"]))["credits"] == 7
    assert (await admin.check(place))["ok"]
    assert read_place(place, lambda db: db.execute("SELECT sum(amount) FROM transfer").fetchone()[0]) == 7


async def test_what_is_written_is_kept(place):
    async with open_place(place) as file:
        await file.alone(lambda db: db.execute("DELETE FROM lease").rowcount)
    assert (await admin.holds(place)) == []


async def test_a_server_that_is_not_there_is_an_error_of_ours():
    away = PostgresTerms("postgresql://nobody@127.0.0.1:1/none", connect_s=0.2, work_s=0.2)
    with pytest.raises(StorageFailed):
        read_place(away, lambda db: db.execute("SELECT 1"))
    with pytest.raises(StorageFailed):
        await admin.balance(away, token(1))
