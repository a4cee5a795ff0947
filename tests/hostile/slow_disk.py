"""`python -m tests.hostile.slow_disk …`: our program on a disk whose syncs take half a second.

SQLite syncs when it commits, so each COMMIT of the ledger's connections waits before it is made.
"""

import sqlite3
import time
from typing import Any

from toolserver.sql.sealed_file import SealedConnection

SYNC_S = 0.5


class SlowConnection(SealedConnection):
    """A connection on a slow disk."""

    def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            time.sleep(SYNC_S)
        return super().execute(sql, *rest)


def main() -> None:
    from toolserver.sql import sqlite

    sqlite.SealedConnection = SlowConnection  # type: ignore[misc]
    from toolserver.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
