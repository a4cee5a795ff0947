import sqlite3
from contextlib import closing

from toolserver.webhooks.memory_store import MemoryTables
from toolserver.webhooks.store import SqlTables, WebhookTables


def test_every_engine_has_what_operations_ask_for():
    wanted = {name for name in vars(WebhookTables) if not name.startswith("_")}
    with closing(sqlite3.connect(":memory:")) as db:
        for tables in (MemoryTables(), SqlTables(db)):
            assert all(callable(getattr(tables, name)) for name in wanted)
