"""Check a ledger on either engine for `toolserver db check`: whether it is sound, and the numbers that identify it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import anyio.to_thread

from toolserver.money.ledger.admin import WRITTEN
from toolserver.money.ledger.sql_invariants import Breach, LedgerTotals, find_breaches, read_totals
from toolserver.money.receipts.log import LogMark
from toolserver.money.receipts.sql_store import log_state_of
from toolserver.sql.connection import SqlConnection, is_shared
from toolserver.sql.kept_tables import CountRows, TableFacts, read_table_facts, sum_accounts
from toolserver.sql.ledger_place import LedgerPlace, open_place, read_place


class DatabaseFacts(NamedTuple):
    """The facts by which two copies of a ledger are compared, and the rules that are broken in it."""

    engine: str
    tables: dict[str, TableFacts]
    accounts: dict[str, list[int]]
    totals: LedgerTotals
    log: LogMark
    breaches: list[Breach]

    def describe(self) -> dict[str, Any]:
        """Return the facts as plain values."""
        return {
            "ok": not self.breaches,
            "engine": self.engine,
            "breaches": [breach._asdict() for breach in self.breaches],
            **self.totals._asdict(),
            "accounts": self.accounts,
            "log": {"size": self.log.size, "root": self.log.root.hex()},
            "tables": {name: facts._asdict() for name, facts in self.tables.items() if facts.rows},
        }


def read_facts(db: SqlConnection, count: CountRows = lambda name, rows: None) -> DatabaseFacts:
    """Read every row once for the digests, and check the rules of the ledger. Reservations of any age may be open."""
    engine = "PostgreSQL" if is_shared(db) else "SQLite"
    tables = read_table_facts(db, count)
    return DatabaseFacts(engine, tables, sum_accounts(db), read_totals(db), log_state_of(db), find_breaches(db, 0))


def find_differences(one: DatabaseFacts, other: DatabaseFacts) -> Iterator[str]:
    """Describe in words where two copies of a ledger differ."""
    for name, facts in one.tables.items():
        copy = other.tables[name]
        if facts.rows != copy.rows:
            yield f"{name}: {facts.rows} rows and {copy.rows}"
        elif facts != copy:
            yield f"{name}: {facts.rows} rows, but with different contents"
    for what, here, there in (
        ("sums of accounts", one.accounts, other.accounts),
        ("totals", one.totals, other.totals),
        ("log of uncharged calls", one.log, other.log),
    ):
        if here != there:
            yield f"{what}: {here} and {there}"
    yield from (f"{breach.rule}: {breach.where}" for breach in other.breaches)


async def check_place(place: LedgerPlace) -> dict[str, Any]:
    """Return the facts of a ledger, and whether another program wrote rows of its file. Raises StorageFailed."""
    async with open_place(place) as file:
        strange = [Breach(WRITTEN, where) for where in await file.find_rewritten()]
    facts = await anyio.to_thread.run_sync(read_place, place, read_facts)
    return facts._replace(breaches=strange + facts.breaches).describe()
