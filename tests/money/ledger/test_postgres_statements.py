"""A group takes as many statements of a server as a single call: one for each table that it reads or writes."""

import re
from collections import Counter
from itertools import count

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import faults, token
from tests.postgres import terms_of
from tests.sql.test_group_commit import all_at_once
from toolserver.clock import ManualClock
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.group_commit import GROUP
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_group_commit import open_postgres

pytestmark = pytest.mark.live
NOW_MS = int(START.timestamp() * 1000)
TOKENS = [token(number) for number in range(20)]
WRITES = re.compile(r"(?:INSERT INTO|(?<!DO )UPDATE|DELETE FROM) (\w+)")


@pytest.fixture
def asked(monkeypatch):
    """The statements that all connections ran."""
    seen, execute = [], PostgresConnection.execute

    def note(db, sql, parameters=()):
        seen.append(sql)
        return execute(db, sql, parameters)

    monkeypatch.setattr(PostgresConnection, "execute", note)
    return seen


async def test_a_group_writes_each_table_once_however_many_calls_it_has(tmp_path, asked):
    async with open_postgres(terms_of(tmp_path, row_key=b"k" * 32)) as store:
        ledger = SqlLedger(store, ManualClock(START))
        names = (f"call_{NOW_MS:012x}{n:020x}" for n in count())  # of today: no archive can have them
        for each in TOKENS:
            await ledger.mint(each, 1000, cause=each[-9:])

        async def charge(number):
            asked.clear()
            calls = [
                ledger.charge(next(names), TOKENS[n % len(TOKENS)], 1, endpoint="/api/pro/x", undelivered=True)
                for n in range(number)
            ]
            outcomes = await all_at_once(*calls)
            assert {outcome.charged for outcome in outcomes} == {1}
            return list(asked)

        await charge(1)
        alone, together = await charge(1), await charge(GROUP)
        assert len(together) == len(alone)
        written = Counter(table for sql in together for table in WRITES.findall(sql))
        assert written == {"account": 1, "transfer": 1, "reservation": 1, "journal": 1}
        assert await faults(ledger) == []
