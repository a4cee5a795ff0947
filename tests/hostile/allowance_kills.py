"""`python -m tests.hostile.allowance_kills [ROUNDS] [SEED]`: ten allowances of one token under load, and kills.

In each round a hundred calls are made at once over allowances with random caps; in two rounds of three the service is
killed meanwhile. After each round no cap is crossed, every charge has its answer, and the token has what is left. In
the end one allowance after the other is revoked while it is used: no call that is begun after the answer buys anything.
"""

import asyncio
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.live.forking import Process
from tests.live.killing import begun, check_books
from tests.live.processes import UNLIMITED, Program, control, started
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.serving.money import MARKER

OWNER, CREDITS = f"svc_live_{1:064x}", 100_000
PATHS = {"/api/pro/briefing": 1, "/api/pro/macro": 2, "/api/pro/sentiment": 2}
ALLOWANCES, AT_ONCE, REVOKED = 10, 100, (0, 2, 3)  # those have no cap by the day
ROUTE, WHO = "/api/payment/allowances", {"authorization": f"Bearer {OWNER}"}
LOAD_S, EXPIRED_S, PATIENCE_S = 0.5, 7200, 90


@dataclass
class Report:
    """What was counted, and everything that is wrong."""

    rounds: int = 0
    kills: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    whole: set[str] = field(default_factory=set)
    full: int = 0
    revoked_s: list[float] = field(default_factory=list)
    late: int = 0
    wrong: list[str] = field(default_factory=list)


class Load:
    """One service in one folder, the owner's token, and the tokens of its allowances."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng, self.report = folder, rng, Report()
        self.children: list[str] = []
        self.ids: list[str] = []

    async def create(self, url: str) -> None:
        """Ten allowances: caps that a few rounds exhaust, some by the day, one for one tool."""
        async with client_of(url) as client:
            for number in range(ALLOWANCES):
                terms: dict[str, Any] = {"name": f"agent {number}", "credits": self.rng.randint(15, 150)}
                if number % 3 == 1:
                    terms["credits_per_day"] = self.rng.randint(10, 80)
                if number == 5:
                    terms["tools"] = ["premium_briefing"]
                made = await client.post(ROUTE, json=terms, headers=WHO)
                assert made.status_code == 201, made.text
                self.children.append(made.json()["token"])
                self.ids.append(made.json()["id"])

    async def call(self, client: httpx.AsyncClient) -> None:
        """One call of some allowance, or of the owner itself."""
        token = self.rng.choice([*self.children, OWNER])
        try:
            answer = await client.get(self.rng.choice(list(PATHS)), headers={"authorization": f"Bearer {token}"})
        except httpx.HTTPError:
            self.report.answers["cut"] += 1
            return
        said = "200" if answer.status_code == 200 else f"{answer.status_code} {answer.json().get('error')}"
        self.report.answers[said] += 1
        if answer.status_code == 200:
            self.report.whole.add("call_" + answer.headers["x-service-receipt-id"].removeprefix("rcpt_"))

    async def press(self, program: Program, process: Process, *, kills: bool) -> None:
        """A hundred calls at once; the service may be killed meanwhile."""
        async with client_of(program.url) as client:
            calls = [asyncio.create_task(self.call(client)) for _ in range(AT_ONCE)]
            if kills:
                enough = self.rng.choice((0, 1, 20, 60, 90))  # calls that have ended
                while sum(call.done() for call in calls) < enough:
                    await asyncio.wait(calls, timeout=0.002, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(self.rng.uniform(0.0, LOAD_S / 10))
                process.kill()
                await asyncio.to_thread(process.wait)
            await asyncio.gather(*calls)

    async def revoke(self, program: Program, number: int) -> float:
        """Revoke an allowance that is being used. Returns the seconds from asking until the last answer was begun."""
        who, begun_at, ended = {"authorization": f"Bearer {self.children[number]}"}, list[float](), asyncio.Event()

        async def use() -> None:
            while not ended.is_set():
                at = time.monotonic()
                if (await client.get("/api/pro/briefing", headers=who)).status_code == 200:
                    begun_at.append(at)

        async with client_of(program.url) as client:
            await client.patch(f"{ROUTE}/{self.ids[number]}", json={"credits": 50_000}, headers=WHO)
            users = [asyncio.create_task(use()) for _ in range(8)]
            while len(begun_at) < len(users):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            asked = time.monotonic()
            gone = await client.delete(f"{ROUTE}/{self.ids[number]}", headers=WHO)
            answered = time.monotonic()
            assert gone.status_code in (200, 204), gone.text
            await asyncio.sleep(2 * LOAD_S)
            ended.set()
            await asyncio.gather(*users)
        self.report.late += sum(at > answered for at in begun_at)
        return max(0.0, max(begun_at) - asked)

    def wait_for_expiry(self) -> None:
        """Wait until nothing is held any more for calls that died."""
        until = time.monotonic() + PATIENCE_S
        while rows_of(self.folder, "SELECT 1 FROM reservation WHERE state='open'"):
            assert time.monotonic() < until, "credits are still held for calls that died"
            time.sleep(0.2)

    def audit(self) -> list[str]:
        """What is wrong in the books after a round."""
        rows = rows_of(self.folder, "SELECT id, credits, credits_per_day, spent, spent_today FROM allowance")
        found = [
            f"{id} spent {s} of {cap}, {t} of {day} today" for id, cap, day, s, t in rows if s > cap or t > (day or t)
        ]
        held = "SELECT call_id, credits, allowance, state FROM reservation WHERE state IN ('posted', 'open')"
        calls, spent = rows_of(self.folder, held), Counter[str]()  # what died while it ran is held until it expires
        for _, credits, allowance, _ in calls:
            spent[allowance] += credits
        found += [f"{id} says {s} spent, its calls {spent[id]}" for id, _, _, s, _ in rows if s != spent[id]]
        found += [
            f"charged, and never answered: {id}"
            for id, _, _, state in calls
            if state == "posted" and id not in self.report.whole
        ]
        ((left,),) = rows_of(self.folder, "SELECT sum(credits - debits - pending) FROM account WHERE kind='token'")
        if left + spent.total() != CREDITS:
            found.append(f"{left} left and {spent.total()} spent of {CREDITS}")
        self.report.full = sum(s == cap or t == day for _, cap, day, s, t in rows)
        return found


def client_of(url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=AT_ONCE + 10)
    return httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits)


def rows_of(folder: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "data" / FILE, timeout=10)) as db:
        return db.execute(sql).fetchall()


async def fund(folder: Path) -> None:
    """A new ledger in which one token has credits."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / MARKER).touch()
    async with open_ledger(folder / "data" / FILE) as ledger:
        await ledger.mint(OWNER, CREDITS, cause="grant:test:load")


def run_rounds(rounds: int, folder: Path, *, seed: int = 1) -> Report:
    """Run it."""
    load = Load(folder, random.Random(seed))
    asyncio.run(fund(folder))
    with started("world", folder=folder) as world:
        settings = {**UNLIMITED, "TOOLSERVER_UPSTREAM__VIA": world.url, "TOOLSERVER_SOURCES__LICENCE_POLICY": "any"}
        for number in range(rounds):
            with begun(folder, **settings) as (program, process):
                if number == 0:
                    asyncio.run(load.create(program.url))
                else:
                    load.report.wrong += load.audit()
                kills = number % 3 != 2
                asyncio.run(load.press(program, process, kills=kills))
                load.report.kills += kills
                load.report.rounds += 1
        with control(world.url) as sim:
            sim.put("clock", {"advance_s": EXPIRED_S})
        with begun(folder, **settings) as (program, _):
            load.wait_for_expiry()
            load.report.wrong += load.audit()
            load.report.revoked_s = [asyncio.run(load.revoke(program, number)) for number in REVOKED]
        load.report.wrong += check_books(folder / "data", {})
    return load.report


def main(rounds: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as place:
        report = run_rounds(rounds, Path(place), seed=seed)
    print(f"{report.rounds} rounds of {AT_ONCE} calls at once, {report.kills} kills, {report.full} caps used up")
    print("  " + ", ".join(f"{count} {said}" for said, count in report.answers.most_common()))
    slowest = max(report.revoked_s)
    print(
        f"  a revoked allowance bought its last answer {slowest * 1000:.0f} ms after that was asked for, at the latest"
    )
    print("\n".join(report.wrong) or "no cap is crossed, every charge has its answer, and the token has what is left")
    print(f"  {report.late} answers were bought by calls that were begun after a revocation was answered")
    return bool(report.wrong or report.late)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given + [30, 1][len(given) :])))
