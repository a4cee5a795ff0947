"""`python -m tests.live.killing embedded|client KILLS [SEED]`: kills a selling service under load, and audits it.

Every answer that arrives whole names its call. After each kill the service is started again, and every call that is
still charged must be one of those: what did not arrive was released. What arrived and was released all the same is
counted: its mark was not on disk yet. A mark goes with the next commit, which takes as long as the disk does; that no
mark missed one is counted too. Credits are bought on the simulated chain, so that in the end `toolserver books check`
compares everything.
"""

import asyncio
import hashlib
import json
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.live import marking
from tests.live.buying import bought, read_core
from tests.live.forking import Process
from tests.live.processes import UNLIMITED, Program, begin_program, command, ran, read_ready_line, started
from tests.live.test_sister import SECRET
from tests.ports import reserve_port
from toolserver.money.ledger.store import FILE
from toolserver.money.purchases.demo import XPUB
from toolserver.money.receipts.sql_store import read_receipts
from toolserver.sql.ledger_place import read_place

PATHS = ("/api/pro/briefing", "/api/pro/macro", "/api/pro/sentiment", "/api/pro/crypto-deep")
CALLERS, TOKENS, USD = 16, 4, 1000
CREDITS = 50 * USD
LAST_S = 0.05  # by then the mark of a delivery is on disk
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@dataclass
class Tally:
    """What callers got: the call_ids of answers that arrived whole, and how many calls were made in all."""

    whole: dict[str, float] = field(default_factory=dict)  # with the moments of their arrival
    tokens: list[str] = field(default_factory=list)
    made: int = 0
    cut: int = 0
    kills: int = 0
    ages: dict[str, float] = field(default_factory=dict)  # of whole answers when the process was killed, in seconds
    released_whole: int = 0
    released_late: int = 0  # of them, those that had arrived longer than LAST_S before the kill
    released_missed: int = 0  # of them, those that a commit could have marked and did not
    longest_commit_s: float = 0.0
    most_released_whole: int = 0
    reversed: int = 0


class Caller:
    """Makes one paid call after the other until the service is gone, or until `ends` is set."""

    def __init__(self, at: Program, tally: Tally, rng: random.Random, ends: asyncio.Event | None = None) -> None:
        self._at, self._tally, self._rng, self._ends = at, tally, rng, ends or asyncio.Event()

    async def run(self) -> None:
        who = {"authorization": f"Bearer {self._rng.choice(self._tally.tokens)}"}
        async with httpx.AsyncClient(base_url=self._at.url, headers=who, timeout=20, trust_env=False) as client:
            while not self._ends.is_set():
                self._tally.made += 1
                try:
                    receipt = await (self._by_mcp(client) if self._rng.random() < 0.3 else self._by_rest(client))
                except httpx.HTTPError:
                    self._tally.cut += 1
                    return
                if receipt is not None:
                    self._tally.whole["call_" + receipt.removeprefix("rcpt_")] = time.monotonic()

    async def _by_rest(self, client: httpx.AsyncClient) -> str | None:
        headers = {"idempotency-key": f"{self._rng.getrandbits(64):x}"} if self._rng.random() < 0.4 else {}
        answer = await client.get(self._rng.choice(PATHS), headers=headers)
        if answer.status_code != 200:
            return None
        core = read_core(answer.headers["x-service-receipt"])
        assert core["response_sha256"] == hashlib.sha256(answer.content).hexdigest(), "cut short, and taken for whole"
        return str(answer.headers["x-service-receipt-id"])

    async def _by_mcp(self, client: httpx.AsyncClient) -> str | None:
        params = {"name": "premium_briefing", "arguments": {}}
        answer = await client.post("/api/mcp", json={**CALL, "params": params}, headers={"accept": "application/json"})
        return answer.json()["result"].get("_meta", {}).get("receipt_id") if answer.status_code == 200 else None


@contextmanager
def begun(folder: Path, module: str = "toolserver", **more: str) -> Iterator[tuple[Program, Process]]:
    """A service that will be killed; at the end it is ended in order, if it still runs."""
    process, log = begin_program(command("serve", (), folder, module), folder=folder, **more)
    try:
        yield Program(process, read_ready_line(process, log), log), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


class Audit:
    """The books of the owner, and the receipts and the log of the service that sells."""

    def __init__(self, owner: Path, seller: Path, marks: Path) -> None:
        self._owner, self._seller, self._marks = owner / FILE, seller / FILE, marks

    def states(self) -> dict[str, str]:
        """Each call and its state, without the name of the service that made it."""
        rows = _rows(self._owner, "SELECT call_id, state FROM reservation")
        return {call.rpartition(":")[2]: state for call, state in rows}

    def wait_for_releases(self, within_s: float = 30) -> None:
        """Wait until everything that died is released."""
        until = time.monotonic() + within_s
        while _rows(self._seller, "SELECT 1 FROM journal WHERE state='releasing'"):
            assert time.monotonic() < until, "releases are still waiting"
            time.sleep(0.1)

    @staticmethod
    def open_calls(states: dict[str, str]) -> set[str]:
        """The calls for which credits are still held. Nobody calls when this is asked."""
        return {call for call, state in states.items() if state == "open"}

    def check(self, tally: Tally) -> list[str]:
        """What is wrong: a charge without its answer, or sums that differ."""
        states = self.states()
        posted = {call for call, state in states.items() if state == "posted"}
        found = [f"charged, and never answered: {call}" for call in sorted(posted - tally.whole.keys())]
        found += [f"reserved by a process that is dead: {call}" for call in sorted(self.open_calls(states))]
        given_back = tally.whole.keys() - posted
        tally.released_late = sum(tally.ages[call] > LAST_S for call in given_back)
        marks = marking.read_marks(self._marks)
        tally.released_missed = sum(map(marks.has_missed, given_back))
        tally.longest_commit_s = marks.measure_longest()
        released = len(given_back)
        tally.most_released_whole = max(tally.most_released_whole, released - tally.released_whole)
        tally.released_whole = released
        tally.reversed = sum(state == "reversed" for state in states.values())
        ((charged,),) = _rows(self._owner, "SELECT coalesce(sum(credits), 0) FROM reservation WHERE state='posted'")
        ((left,),) = _rows(self._owner, "SELECT sum(credits - debits) FROM account WHERE kind='token'")
        if charged + left != TOKENS * CREDITS:
            found.append(f"{charged} charged and {left} left of {TOKENS * CREDITS}")
        return found + self._check_keys(posted)

    def _check_keys(self, posted: set[str]) -> list[str]:
        """Whether each answer that is kept for a key is of a call that is charged, with its receipt and its bytes."""
        sql = """SELECT i.call_id, r.id IS NOT NULL, s.sha256 IS NOT NULL FROM idempotency i
          LEFT JOIN packed_receipt r ON lower(hex(r.id)) = substr(i.call_id, 6)
          LEFT JOIN shared_result s ON s.sha256 = i.shared WHERE i.own IS NOT NULL"""
        kept = _rows(self._seller, sql)
        print(f"  {len(kept)} answers are kept for keys")
        return [
            f"kept for a key without its charge, receipt or bytes: {call}"
            for call, receipt, shared in kept
            if not (receipt and shared and call in posted)
        ]

    def check_log(self) -> list[str]:
        """Whether each reversal of a call with a receipt stands in the log of uncharged calls."""
        receipts = {
            hashlib.sha256(receipt.core).hexdigest(): json.loads(receipt.core)["call_id"]
            for receipt in read_place(self._seller, lambda db: list(read_receipts(db)))
        }
        booked = "SELECT hex(receipt) FROM uncharged_call WHERE reason = 'delivery_failed' AND receipt IS NOT NULL"
        told = {receipts.get(digest.lower()) for (digest,) in _rows(self._seller, booked)}
        gone = {call for call, state in self.states().items() if state == "reversed"} & set(receipts.values())
        return [f"reversed, and not in the log: {call}" for call in sorted(gone - told)]


def _rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path, timeout=10)) as db:
        return db.execute(sql).fetchall()


def selling(world: str) -> dict[str, str]:
    """The settings of a service that sells credits on the simulated chain, large amounts after three blocks too."""
    servers = json.dumps([f"{world}/u/mainnet.base.org/", f"{world}/u/base-rpc.publicnode.com/"])
    sells = {"ENABLED": "true", "RPC_URLS": servers, "XPUB": XPUB, "SAFE_FROM_USD": "10000"}
    settings = {f"TOOLSERVER_PAYMENTS__{name}": value for name, value in sells.items()}
    return settings | {"TOOLSERVER_SOURCES__LICENCE_POLICY": "any"}


def check_books(folder: Path, settings: dict[str, str], *more: str) -> list[str]:
    """What `toolserver books check` finds wrong in a folder."""
    words = ("books", "check", "--json", "--data-dir", str(folder), *more)
    done = ran(*words, folder=folder, within_s=120, **settings)
    if not done.stdout:
        return [f"books check ended with {done.returncode}: {done.stderr.decode()}"]
    said = json.loads(done.stdout)
    print(f"  {folder.name}:", ", ".join(f"{one['name']} {one['compared']}" for one in said["checks"]))
    return [f"{one['name']}: {text}" for one in said["checks"] for text in one["differences"]]


def kill_again_and_again(mode: str, kills: int, folder: Path, *, seed: int = 1) -> tuple[Tally, list[str]]:
    """Run it. Returns what was counted and everything that is wrong."""
    tally, rng, wrong = Tally(), random.Random(seed), list[str]()
    with ExitStack() as stack:
        world = stack.enter_context(started("world", folder=folder))
        shared, sells = {**UNLIMITED, "TOOLSERVER_UPSTREAM__VIA": world.url}, selling(world.url)
        owner = seller = folder / "data"
        if mode == "client":
            owner = folder / "owner"
            at, follows = _follow(stack, folder, owner, shared | sells)
            tally.tokens = [bought(at, world.url, USD) for _ in range(TOKENS)]
            shared |= follows
        else:
            shared |= sells
            with begun(folder, **shared) as (at, _):
                tally.tokens = [bought(at, world.url, USD) for _ in range(TOKENS)]
        marks = folder / "marks"
        marks.touch()
        audit = Audit(owner, seller, marks)
        while tally.kills < kills:
            with begun(folder, marking.MODULE, **shared, MARKS=str(marks)) as (program, process):
                if mode == "client":
                    audit.wait_for_releases()
                wrong += audit.check(tally)
                if wrong:
                    break
                asyncio.run(_load_and_kill(program, process, tally, rng))
        with begun(folder, **shared):
            audit.wait_for_releases()
            wrong += audit.check(tally) + audit.check_log()
        for books in sorted({owner, seller}):
            more = () if books == owner else ("--owner", str(owner))
            wrong += check_books(books, sells if books == owner else shared, *more)
    return tally, wrong


def _follow(stack: ExitStack, folder: Path, owner: Path, settings: dict[str, str]) -> tuple[Program, dict[str, str]]:
    """Start an owner, and return it with the settings of a service that follows it."""
    port = reserve_port()
    keys = {"KEYS": json.dumps({"b-1": SECRET}), "SERVICES": '{"b-1": ["b"]}', "PORT": str(port)}
    settings = settings | {f"TOOLSERVER_LEDGER__{name}": value for name, value in keys.items()}
    place = folder / "owner-logs"
    place.mkdir()
    program = stack.enter_context(started("serve", "--data-dir", str(owner), folder=place, **settings))
    follows = {"URL": f"http://127.0.0.1:{port}", "SERVICE": "b", "KEY_ID": "b-1", "SECRET": SECRET}
    return program, {f"TOOLSERVER_LEDGER__{name}": value for name, value in follows.items()}


async def _load_and_kill(program: Program, process: Process, tally: Tally, rng: random.Random) -> None:
    callers = [
        asyncio.create_task(Caller(program, tally, random.Random(rng.getrandbits(64))).run()) for _ in range(CALLERS)
    ]
    enough, until = len(tally.whole) + rng.choice((0, 1, 40, 120)), time.monotonic() + 15
    while len(tally.whole) < enough and time.monotonic() < until:
        await asyncio.wait(callers, timeout=0.005)
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    process.kill()
    killed_at = time.monotonic()
    process.wait()
    tally.kills += 1
    await asyncio.gather(*callers)
    tally.ages |= {call: killed_at - at for call, at in tally.whole.items() if call not in tally.ages}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        counted, faults = kill_again_and_again(
            sys.argv[1], int(sys.argv[2]), Path(place), seed=int(*sys.argv[3:] or (1,))
        )
    print(
        f"{sys.argv[1]}: {counted.kills} kills, {counted.made} calls, {len(counted.whole)} whole answers,"
        f" {counted.cut} cut off, {counted.reversed} reversed; delivered and released all the same:"
        f" {counted.released_whole} in all, {counted.most_released_whole} at most in one kill,"
        f" {counted.released_late} of them longer than {LAST_S * 1000:.0f} ms before it,"
        f" {counted.released_missed} although a commit could have marked them;"
        f" the longest commit took {counted.longest_commit_s * 1000:.0f} ms"
    )
    print("\n".join(faults) or "nothing is charged that was not answered")
    sys.exit(bool(faults))
