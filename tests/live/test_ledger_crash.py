"""The process is killed again and again in the middle of spending: the books never lie about what was acknowledged."""

import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.forking import start_program
from tests.live.processes import ROOT, environment
from tests.live.spender import PRICE, TTL_S
from tests.requirements import proves
from tests.size import sized
from toolserver.clock import ManualClock, SystemClock
from toolserver.money.ledger.store import open_ledger

ROUNDS = sized(30, fast=20, long=200)

# What may be found in the books after a crash, by what the caller was told last and what it had asked for since.
MAY_BE = {
    (None, "charge"): {None, "posted"},
    (None, "reserve"): {None, "open"},
    ("open", None): {"open"},
    ("open", "charge"): {"open", "posted"},
    ("open", "cancelled"): {"open", "voided"},
    ("posted", None): {"posted"},
    ("posted", "cancelled"): {"posted", "reversed"},
    ("voided", None): {"voided"},
    ("reversed", None): {"reversed"},
}


@dataclass
class Told:
    """What one process said before it died."""

    last: dict[str, str | None] = field(default_factory=dict)
    asked: dict[str, str | None] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def hear(self, line: str) -> None:
        word, name, *rest = line.split()
        if word == "asks":
            self.asked[name] = rest[0]
            self.last.setdefault(name, None)
        elif word == "told":
            self.last[name], self.asked[name] = rest[0], None
        elif word == "key":
            self.begun.add(name)
        elif word == "kept":
            self.kept.add(name)


def run_and_kill(path: Path, name: str, keys: list[str], after_s: float) -> Told:
    """Let one process spend for a while. Its output is a file: reading it keeps nobody waiting."""
    said = path.with_suffix(f".{name}.txt")
    command = [sys.executable, "-m", "tests.live.spender", str(path), name, *keys]
    with said.open("wb") as output:
        process = start_program(command, env=environment({}), cwd=ROOT, stdout=output)
    try:
        patience = time.monotonic() + 20
        while b"ready\n" not in said.read_bytes():
            assert process.poll() is None, "the spender did not start"
            assert time.monotonic() < patience, "the spender does not get ready"
            time.sleep(0.005)
        time.sleep(after_s)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL
    told = Told()
    for line in said.read_text().removeprefix("ready\n").splitlines():
        told.hear(line)
    said.unlink()
    return told


def states(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT call_id, state FROM reservation"))


def by_key(path: Path) -> dict[str, int]:
    """How often each Idempotency-Key was charged."""
    sql = "SELECT substr(endpoint, 7), sum(state='posted') FROM reservation WHERE endpoint LIKE '/once/%' GROUP BY 1"
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute(sql))


@proves("ledger.crash")
@pytest.mark.live
@pytest.mark.timeout(30 + 4 * ROUNDS)
async def test_no_kill_loses_or_doubles_what_was_acknowledged(tmp_path):
    path, chance, waiting, done, acknowledged = tmp_path / "ledger.sqlite3", random.Random(4), set(), set(), 0
    for number in range(ROUNDS):
        told = run_and_kill(path, f"r{number}", sorted(waiting), chance.uniform(0, 0.25))
        found = states(path)
        wrong = {
            call: (last, told.asked[call], found.get(call))
            for call, last in told.last.items()
            if found.get(call) not in MAY_BE[last, told.asked[call]]
        }
        assert wrong == {}
        acknowledged += sum(last is not None for last in told.last.values())
        done |= told.kept
        waiting = (waiting | told.begun) - done
        charged = by_key(path)
        assert {key: charged.get(key) for key in done if charged.get(key) != 1} == {}
        assert {key for key, times in charged.items() if times > 1} == set()

    assert acknowledged > ROUNDS
    assert done
    clock = ManualClock(SystemClock().now())
    async with open_ledger(path, clock) as ledger:
        assert await ledger.check() == []
        still_open = list(states(path).values()).count("open")
        clock.advance(TTL_S + 1)
        assert await ledger.sweep() == still_open > 0
        assert await ledger.holds() == []
        assert await ledger.check() == []
        spent, left, minted = await ledger.file.read(_sums)
        assert spent + left == minted
        assert spent == PRICE * list(states(path).values()).count("posted")


def _sums(db):
    """Credits charged, left and minted, from three different tables."""
    (spent,) = db.execute("SELECT sum(credits) FROM reservation WHERE state='posted'").fetchone()
    (left,) = db.execute("SELECT sum(credits - debits - pending) FROM account WHERE kind='token'").fetchone()
    (minted,) = db.execute("SELECT sum(amount) FROM transfer WHERE cause IS NOT NULL").fetchone()
    return spent, left, minted
