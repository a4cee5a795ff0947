"""Make ledgers of old versions, kill their upgrades, and look at what the next start finds."""

import asyncio
import base64
import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from tests.money.ledger.ledgers import token
from tests.postgres import run_sql, terms_of
from toolserver.clock import SystemClock
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.serving.database_check import check_place
from toolserver.sql.connection import NUMBERS
from toolserver.sql.ledger_place import LedgerPlace, open_place
from toolserver.sql.migrate import migrate, migrations
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_migrate import migrate_server, server_migrations
from toolserver.sql.sealed_file import SealedConnection

FOLDER = Path(__file__).parent
ENGINES = ("file", "server")
VERSIONS = ("first", "d5b8471", "f47ee7d3", "709ce2e3")
ZEROS = json.dumps({"kty": "oct", "k": "A" * 43})  # the key of the seal under which the rows were written
KEPT = ("token", "allowance", "webhook_subscription", "webhook_fire", "oauth_grant", "oauth_secret", "removed_name")
AGAIN = 0.3  # share of upgrades that are killed more than once
DEAD = -signal.SIGKILL


class OldLedger(NamedTuple):
    """A ledger as an old version left it: its number of steps on each engine, and the rows and marks it had."""

    steps: dict[str, int]
    tables: dict[str, dict[str, Any]]
    marks: dict[str, Any]
    facts: dict[str, Any]


def read_old(version: str) -> OldLedger:
    """The ledger of a version; of the first one, what the rows of a later one say of buyers."""
    steps, name = {
        "first": ({"file": 1, "server": 1}, "version_21"),
        "d5b8471": ({"file": 21, "server": 9}, "version_21"),
        "f47ee7d3": ({"file": 28, "server": 16}, "version_28"),
        "709ce2e3": ({"file": 31, "server": 21}, "version_31"),
    }[version]
    read = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    facts, marks = read["facts"], read["marks"]
    if version == "first":  # its file had no log and no seal
        marks = {"address": marks["address"]}
        facts = {name: value for name, value in facts.items() if name != "log"}
    return OldLedger(steps, read["tables"], marks, facts)


def _decode(value: Any) -> Any:
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value


def _insert(old: OldLedger, there: dict[str, list[str]], execute: Callable[..., Any]) -> None:
    """Insert the rows of the tables that a version had, in the columns that it had."""
    for name, table in old.tables.items():
        columns = [column for column in table["columns"] if column in there.get(name, ())]
        places = [table["columns"].index(column) for column in columns]
        sql = f"INSERT INTO {name}({', '.join(columns)}) VALUES({', '.join('?' * len(columns))})"
        if columns:
            execute(f"DELETE FROM {name}")  # the accounts that a new ledger has
            for row in table["rows"]:
                execute(sql, [_decode(row[place]) for place in places])


def make_file(old: OldLedger, folder: Path) -> Path:
    """Make the data directory of an old version."""
    (folder / "keys").mkdir(parents=True, mode=0o700)
    for name, text in (("rows.json", ZEROS), ("high-water.json", json.dumps(old.marks))):
        (folder / "keys" / name).write_text(text, encoding="utf-8")
        (folder / "keys" / name).chmod(0o600)
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
        migrate(db, migrations()[: old.steps["file"]])
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        there = {name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")] for name in names}
        db.execute("BEGIN")
        _insert(old, there, db.execute)
        db.execute("COMMIT")
    return folder / FILE


def make_server(old: OldLedger, place: Any) -> None:
    """Make the tables of an old version in an empty schema, by the text that its software had. They are not sealed."""
    old = old._replace(tables={name: table for name, table in old.tables.items() if name != "writer_seal"})
    first, *later = server_migrations()[: old.steps["server"]]
    if old.steps["server"] < 10:  # a comment of the first step was another one then
        first = replace(first, sql=first.sql.replace("tests/sql/", "tests/storage/"))
    with closing(PostgresConnection(place)) as db:
        migrate_server(db, [first, *later])
        there: dict[str, list[str]] = {}
        numbered = []
        for table, column, identity in db.execute(
            """SELECT table_name::text, column_name::text, is_identity::text FROM information_schema.columns
               WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"""
        ):
            there.setdefault(table, []).append(column)
            if identity == "YES":
                numbered.append((table, column))
        db.transact(lambda: _insert(old, there, db.execute))
        for table, column in numbered:
            db.execute(f"""SELECT setval(pg_get_serial_sequence('{table}', '{column}'),
              (SELECT coalesce(max({column}), 0) + 1 FROM {table}), false)""")
        db.execute(f"SELECT setval('ledger_number', {NUMBERS}, false)")


def _in_child(job: Callable[[], Any], report: Path | None = None) -> int:
    """Start a job in a child and return its process id. It writes what the job returns to a file."""
    pid = os.fork()
    if pid:
        return pid
    try:
        outcome = job()
        if report is not None:
            report.write_text(json.dumps(outcome), encoding="utf-8")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _die_before(number: int) -> list[int]:
    """Let this process die before it runs so many statements. Returns a list with the count of those that it ran."""
    count = [0]

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*words: Any, **named: Any) -> Any:
            if count[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count[0] += 1
            return method(*words, **named)

        return run

    SealedConnection.execute = counted(SealedConnection.execute)  # type: ignore[method-assign]
    for name in ("begin", "execute", "run_script", "commit"):
        setattr(PostgresConnection, name, counted(getattr(PostgresConnection, name)))
    return count


async def _start(place: LedgerPlace) -> None:
    async with open_place(place) as file:
        await file.probe()


def upgrade(place: LedgerPlace, die_before: int = -1) -> int:
    """Open a ledger as a start does. Returns the number of statements."""
    count = _die_before(die_before)
    asyncio.run(_start(place))
    return count[0]


async def _look(place: LedgerPlace) -> dict[str, Any]:
    verdict = await check_place(place)
    async with open_place(place) as file:
        await file.check_rows()
        ledger = SqlLedger(file, SystemClock())
        await ledger.mint(token(9), 5, cause="after the upgrade")
        await ledger.reserve("a call", token(9), 2, endpoint="/x", ttl_s=60)
        sold = await ledger.settle("a call", no_charge=None)
    after = await check_place(place)
    return {"before": verdict, "charged": sold.charged, "after": after["breaches"]}


def look(place: LedgerPlace) -> dict[str, Any]:
    """Open a ledger, check all of it, sell a call, and check it again."""
    return asyncio.run(_look(place))


def find_faults(old: OldLedger, found: dict[str, Any]) -> list[str]:
    """Say what is not as the old version left it."""
    before = found["before"]
    wrong = [f"{name}: {value} became {before[name]}" for name, value in old.facts.items() if before[name] != value]
    wrong += [f"{breach['rule']}: {breach['where']}" for breach in (*before["breaches"], *found["after"])]
    rows = {name: facts["rows"] for name, facts in before["tables"].items()}
    for name in KEPT:
        there = len(old.tables.get(name, {"rows": []})["rows"])
        if "log" in old.facts and rows.get(name, 0) != there:
            wrong.append(f"{name}: {there} rows became {rows.get(name, 0)}")
    return wrong if found["charged"] == 2 else [*wrong, f"a call was charged {found['charged']}"]


class Scene(NamedTuple):
    """An old ledger on one engine, how a copy of it is made, and how many statements and seconds its upgrade takes."""

    old: OldLedger
    make: Callable[[Path], LedgerPlace]
    statements: int
    seconds: float


def set_up(engine: str, version: str, folder: Path) -> Scene:
    """Make one old ledger, upgrade it without a kill, and measure that."""
    old = read_old(version)
    folder.mkdir()
    if engine == "file":
        make_file(old, folder / "made")

        def make(place: Path) -> LedgerPlace:
            shutil.copytree(folder / "made", place)
            return place / FILE

    else:

        def make(place: Path) -> LedgerPlace:
            terms = terms_of(place)
            _wait(_in_child(lambda: make_server(old, terms)))
            return terms

    place, report = make(folder / "whole"), folder / "statements"
    began = time.monotonic()
    assert _wait(_in_child(lambda: upgrade(place), report)) == 0, "an upgrade without a kill failed"
    return Scene(old, make, json.loads(report.read_text()), time.monotonic() - began)


def kill_one(scene: Scene, folder: Path, rng: random.Random) -> tuple[int, list[str]]:
    """Kill the upgrade of a copy, once or more, and return how often it died and what the next start finds wrong."""
    folder.mkdir()
    place, report, deaths = scene.make(folder / "copy"), folder / "found", 0
    while not deaths or rng.random() < AGAIN:
        if rng.random() < 0.5:
            number = rng.randrange(scene.statements)
            child = _in_child(lambda number=number: upgrade(place, number))  # type: ignore[misc]
        else:
            child = _in_child(lambda: upgrade(place))
            time.sleep(rng.uniform(0, scene.seconds))
            os.kill(child, signal.SIGKILL)
        deaths += _wait(child) == DEAD
    if _wait(_in_child(lambda: look(place), report)):
        return deaths, ["the next start failed"]
    wrong = find_faults(scene.old, json.loads(report.read_text()))
    if not isinstance(place, Path):
        schema = place.url.rpartition("=")[2]
        run_sql(f"DROP SCHEMA {schema} CASCADE", place.url)
    return deaths, wrong


def run_matrix(kills: int, seed: int, engines: Sequence[str], versions: Sequence[str]) -> dict[str, Any]:
    """Kill upgrades in turn over all engines and versions. Returns counts, and what was wrong."""
    rng = random.Random(seed)
    tally: dict[str, Any] = {"kills": 0, "starts": 0, "wrong": [], "seed": seed, "by": {}}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        names = [(engine, version) for engine in engines for version in versions]
        scenes = {name: set_up(*name, root / "-".join(name)) for name in names}
        for name in cycle(names):
            deaths, wrong = kill_one(scenes[name], root / str(tally["starts"]), rng)
            tally["kills"] += deaths
            tally["starts"] += 1
            tally["wrong"] += [f"{' '.join(name)}, start {tally['starts']}: {each}" for each in wrong]
            tally["by"][" ".join(name)] = tally["by"].get(" ".join(name), 0) + deaths
            shutil.rmtree(root / str(tally["starts"] - 1), ignore_errors=True)
            if tally["kills"] >= kills:
                return tally
    raise AssertionError("unreachable")
