"""Confirmations are rows beside the payments: made with the settlement, never deleted, and final once undone."""

import pytest

from tests.money.x402.parts import desk, signed
from toolserver.money.x402.sql_confirmations import SqlConfirmations
from toolserver.sql.errors import DatabaseError


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM x402_confirmation",
        "UPDATE x402_confirmation SET undone_at=NULL, lost=NULL",
    ],
)
async def test_the_database_itself_keeps_what_was_undone(tmp_path, sql):
    async with desk(tmp_path) as d:
        await d.buy(signed())
        store = SqlConfirmations(d.ledger.file)
        (watched,) = await store.list_watched()
        assert await store.undo_payment(watched.payload, 5) == (0, 0)
        assert await store.is_undone(watched.payload)
        assert await store.list_watched() == []
        with pytest.raises(Exception, match=r"never deleted|stays undone") as caught:
            await d.ledger.file.alone(lambda db: db.execute(sql).rowcount)
        assert isinstance(caught.value.__cause__, DatabaseError)
