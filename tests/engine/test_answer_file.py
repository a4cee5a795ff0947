"""Good answers on disk, when the service ends at an awkward moment."""

from datetime import UTC, datetime

import anyio
from anyio.lowlevel import checkpoint

from toolserver.storage.answers import MIGRATIONS, AnswerFile, StoredAnswer
from toolserver.storage.db import opened

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
LATER = NOW.timestamp() + 60


class Interrupted:
    """A connection that tells when a transaction is open, and gives others a turn then."""

    def __init__(self, db, begun):
        self._db, self._begun = db, begun

    def __getattr__(self, name):
        return getattr(self._db, name)

    async def execute(self, sql, *values):
        cursor = await self._db.execute(sql, *values)
        if sql.startswith("BEGIN"):
            self._begun.set()
            await checkpoint()
        return cursor


async def test_an_end_in_the_middle_of_writing_loses_nothing(tmp_path, caplog):
    path, begun = tmp_path / "answers.sqlite3", anyio.Event()
    async with opened(path, MIGRATIONS, synchronous="NORMAL") as db, anyio.create_task_group() as tasks:
        store = AnswerFile(Interrupted(db, begun), now=lambda: NOW)
        await tasks.start(store.run)
        store.save_answer("one", StoredAnswer(b"1", {}), expires_at=LATER)
        await begun.wait()
        store.save_answer("two", StoredAnswer(b"2", {}), expires_at=LATER)
        tasks.cancel_scope.cancel()

    async with opened(path, MIGRATIONS, synchronous="NORMAL") as db:
        again = AnswerFile(db, now=lambda: NOW)
        assert [(await again.load_answer(key)).payload for key in ("one", "two")] == [b"1", b"2"]
    assert not caplog.records
