"""A pooler that gives each transaction another connection is found out, whether or not it refuses our settings."""

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread
import pytest

from tests.deploy.proxies import answers
from tests.ports import reserve_port
from tests.postgres import WORK_S, server_url, terms_of
from toolserver.sql.connection import SqlConnection
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres

pytestmark = pytest.mark.live
OURS = "statement_timeout,lock_timeout,idle_in_transaction_session_timeout,synchronous_commit,jit,enable_seqscan"
JOINS = "enable_hashjoin,enable_mergejoin,max_parallel_workers_per_gather"
IGNORED = f"ignore_startup_parameters = {OURS},{JOINS},search_path\n"


@contextmanager
def pgbouncer(folder: Path, database: str, *, more: str = "") -> Iterator[str]:
    """PgBouncer in transaction mode, with two connections to a database; its URL."""
    program = shutil.which("pgbouncer") or os.environ.get("PGBOUNCER")
    if program is None:
        pytest.skip("pgbouncer is not here")
    port, parts = reserve_port(), urlsplit(database)
    user = parts.username or getpass.getuser()
    path = folder / "pgbouncer.ini"
    path.write_text(
        f"[databases]\n* = host={parts.hostname} port={parts.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = any\nauth_file = {folder}/users\npool_mode = transaction\n"
        f"default_pool_size = 2\nunix_socket_dir =\nserver_reset_query_always = 0\n{more}"
    )
    path.write_text(path.read_text().replace("* = host", f"{parts.path[1:]} = user={user} host"))
    (folder / "users").write_text(f'"{user}" ""\n')
    folder.chmod(0o755)
    drop = ["-u", "nobody"] if os.geteuid() == 0 else []
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *drop, str(path)], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 20
        while not answers(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        yield f"postgresql://{user}@127.0.0.1:{port}{parts.path}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("more", ["", IGNORED])
async def test_a_service_behind_pgbouncer_in_transaction_mode_needs_no_setting(tmp_path, more):
    """Many statements by several connections over two of the pooler: none is prepared where another one runs it."""
    with pgbouncer(tmp_path, server_url(), more=more) as url:
        terms = PostgresTerms(url, readers=3, connect_s=WORK_S, work_s=WORK_S)
        async with open_postgres(terms) as store:

            def count(db: SqlConnection) -> int:
                return int(db.execute("SELECT count(*) FROM lease WHERE name=?", ("none",)).fetchone()[0])

            for _ in range(10):
                assert await store.read(count) == 0
                await store.alone(count)
        assert await anyio.to_thread.run_sync(read_lock_timeout, terms) == (True, "5s")


def read_lock_timeout(terms: PostgresTerms) -> tuple[bool, str]:
    """Whether a connection takes its server for a pooler, and what a transaction sets for itself."""
    with closing(PostgresConnection(terms)) as db:
        db.begin()
        timeout = str(db.execute("SELECT current_setting('lock_timeout')").fetchone()[0])
        db.rollback()
        return db.is_pooled, timeout


def test_a_server_itself_is_no_pooler(tmp_path):
    with closing(PostgresConnection(terms_of(tmp_path))) as db:
        db.connect()
        assert not db.is_pooled
