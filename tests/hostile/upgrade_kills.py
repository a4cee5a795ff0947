"""`python -m tests.hostile.upgrade_kills [KILLS]`: kills the first start of this version on an older data directory.

That start makes the key of the seal if there is none, migrates the ledger and seals its rows. A process of its own does
it and is killed at one of its statements from the making of the key until after the commit of the seal; the kills are
spread evenly over these statements. The next start must finish the work: no start is refused, and no credit is lost.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.forking import start_program
from tests.live.processes import ROOT, environment
from tests.sql.test_sealed_file import BEFORE_SEAL, buy, make_older, take_back
from toolserver.clock import SystemClock
from toolserver.errors import ToolserverError
from toolserver.money.ledger.store import FILE
from toolserver.serving.money import open_money
from toolserver.settings import Settings
from toolserver.sql import sqlite
from toolserver.sql.migrate import migrations
from toolserver.sql.row_seal import KEY
from toolserver.sql.sqlite import durable

CREDITS = 100
SEAL = "INSERT INTO writer_seal"


@dataclass
class Report:
    """How many starts were killed, and what is wrong afterwards."""

    kills: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


async def make_unsealed(path: Path) -> None:
    """A ledger with credits as a version before the seal left it."""
    async with durable(path) as file:
        await file.alone(buy(4, CREDITS))
    take_back(path, BEFORE_SEAL)
    shutil.rmtree((path.parent / KEY).parent)


ORIGINS: dict[str, Callable[[Path], Awaitable[None]]] = {
    "a ledger that was never sealed": make_unsealed,
    "a ledger that an older version sealed": make_older,
}


def watch_statements(data_dir: Path, see: Callable[[str], None]) -> None:
    """Let this process pass each statement of its writing connection to `see` once there is a key, before it runs."""
    connect = sqlite.connect

    def watched(path: Path, **named: Any) -> Any:
        db = connect(path, **named)
        db.set_trace_callback(lambda sql: see(sql) if (data_dir / KEY).exists() else None)
        return db

    sqlite.connect = watched


async def start_once(data_dir: Path) -> None:
    async with durable(data_dir / FILE):
        pass


def start_and_die(data_dir: Path, statement: int) -> None:
    """Start, and die before the statement of this number. What the killed process does."""
    seen: list[str] = []

    def see(sql: str) -> None:
        seen.append(sql)
        if len(seen) == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_statements(data_dir, see)
    asyncio.run(start_once(data_dir))


def count_statements(data_dir: Path) -> None:
    """Start, and print the number of the first statement after the seal was committed."""
    seen: list[str] = []
    watch_statements(data_dir, seen.append)
    asyncio.run(start_once(data_dir))
    seals = [number for number, sql in enumerate(seen, start=1) if sql.lstrip().startswith(SEAL)]
    print(seals[-1] + 2)  # after the seal comes its COMMIT


def run(data_dir: Path, *words: str) -> tuple[int, str]:
    """The exit status of a process that starts on a data directory, and what it printed."""
    command, pipe = [sys.executable, "-m", "tests.hostile.upgrade_kills", str(data_dir), *words], subprocess.PIPE
    process = start_program(command, env=environment({}), cwd=ROOT, stdout=pipe, stderr=pipe)
    out, _ = process.communicate(timeout=60)
    return process.wait(), out.decode()


async def start_again(data_dir: Path) -> list[str]:
    """Start the money of a service as `serve` does, and describe what is wrong with its ledger."""
    settings = Settings(data_dir=data_dir)
    async with open_money(settings, clock=SystemClock(), base_url="https://data.example", service="data.example") as m:
        file = m.own.file
        balance = await file.read(lambda db: db.execute("SELECT credits FROM account WHERE id=4").fetchall())
        version = await file.read(lambda db: db.execute("SELECT max(number) FROM migration").fetchone()[0])
        wrong = await file.find_rewritten()
    facts = {"credits": (balance, [(CREDITS,)]), "version": (version, len(migrations()))}
    return wrong + [f"{name}: {now} instead of {wanted}" for name, (now, wanted) in facts.items() if now != wanted]


def spread(kills: int, last: int) -> list[int]:
    """Numbers from 1 to `last`, evenly spread, with both ends; some stand twice if there are more kills."""
    return [1 + round(n * (last - 1) / max(1, kills - 1)) for n in range(kills)]


async def kill_upgrades(folder: Path, kills: int) -> Report:
    """Kill that many starts on each kind of older data directory, and start each directory again."""
    report = Report()
    for number, (origin, make) in enumerate(ORIGINS.items()):
        old = folder / f"old-{number}"
        old.mkdir()
        await make(old / FILE)
        trial = folder / "trial"
        shutil.copytree(old, trial)
        _, printed = await asyncio.to_thread(run, trial, "count")
        shutil.rmtree(trial)
        for statement in spread(kills, int(printed)):
            shutil.copytree(old, trial)
            status, _ = await asyncio.to_thread(run, trial, str(statement))
            where = f"{origin}, killed before statement {statement} of {int(printed)}"
            if status == -signal.SIGKILL:
                report.kills += 1
            else:
                report.wrong.append(f"{where}: the process ended with {status} and was not killed")
            try:
                report.wrong += [f"{where}: {each}" for each in await start_again(trial)]
            except ToolserverError as error:
                report.refused.append(f"{where}: {type(error).__name__}: {error}")
            shutil.rmtree(trial)
    return report


def main(words: list[str]) -> int:
    if len(words) == 2:
        data_dir = Path(words[0])
        if words[1] == "count":
            count_statements(data_dir)
        else:
            start_and_die(data_dir, int(words[1]))
        return 0
    with tempfile.TemporaryDirectory() as place:
        report = asyncio.run(kill_upgrades(Path(place), int(words[0]) if words else 50))
    print("\n".join([*report.refused, *report.wrong]))
    print(f"{report.kills} kills: {len(report.refused)} starts were refused, {len(report.wrong)} things are wrong")
    return bool(report.refused or report.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
