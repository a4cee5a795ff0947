"""`toolserver db move` as a process that is killed: it goes on, copies each row once, and both places say the same.

`LONG=1` moves a ledger of 1,000,000 calls, as `python -m bench.move` does.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bench.month import make_month, write_month
from bench.move import FILE, write_evidence
from tests.live.processes import COMMAND, environment, ran
from tests.postgres import terms_of, url_of
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import StorageFailed
from toolserver.sql.ledger_place import read_place

pytestmark = [pytest.mark.live, pytest.mark.slow("it moves a ledger between two programs"), pytest.mark.timeout(1200)]
LONG = bool(os.environ.get("LONG"))
CALLS, BUYERS = (1_000_000, 10_000) if LONG else (20_000, 500)
KILLS = 3


def copied(folder: Path) -> int:
    """How many rows the database has by now."""
    try:
        return int(read_place(terms_of(folder), count_copied))
    except StorageFailed:  # the tables are not made yet
        return 0


def count_copied(db: SqlConnection) -> int:
    return db.execute("SELECT coalesce(sum(copied), 0) FROM ledger_move_table").fetchone()[0]  # type: ignore[no-any-return]


def say(*words: str, folder: Path, **more: str) -> dict[str, Any]:
    """What a command says as JSON."""
    done = ran(*words, "--json", folder=folder, within_s=1000, **more)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_move_that_is_killed_again_and_again_goes_on_and_ends_with_the_same_ledger(tmp_path):
    data, url = tmp_path / "data", url_of(tmp_path)
    data.mkdir(mode=0o700)
    books = make_month(CALLS, BUYERS)
    write_month(books, data / FILE)
    write_evidence(books, data / FILE)
    before = say("db", "check", "--data-dir", str(data), folder=tmp_path)
    assert before["ok"] is True
    rows = sum(each["rows"] for each in before["tables"].values())

    words = [*COMMAND, "db", "move", "--to", url, "--data-dir", str(data)]
    for kill in range(1, KILLS + 1):
        wanted = copied(tmp_path) + (1 if kill < KILLS else rows // 4)
        with subprocess.Popen(words, env=environment({}), cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            while (there := copied(tmp_path)) < min(wanted, rows):
                assert process.poll() is None, "it ended before it was killed"
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        print(f"\nkilled at {there} of {rows} rows")
    serve = ran("serve", "--port", "0", "--data-dir", str(data), folder=tmp_path)
    assert "run `toolserver db move` again" in serve.stderr.decode()

    moved = say("db", "move", "--to", url, "--data-dir", str(data), folder=tmp_path)
    assert moved["resumed"] is True
    assert 0 <= moved["copied"] < rows
    after = say("db", "check", "--data-dir", str(data), folder=tmp_path, TOOLSERVER_DATABASE_URL=url)
    assert {**after, "engine": "SQLite"} == before
    print(f"{rows} rows, of these {moved['copied']} in the last run, {moved['copied_per_second']} a second")
