"""`python -m tests.hostile.settlement_kills [POINTS] [SEED]`: kills a service in the middle of signed payments (x402).

Each round sends one payment whose settlement is killed at a chosen point, and up to two others beside it. The service
then stays down for up to 2,000 blocks, and half of the senders come back. In the end every payment that the chain has
was answered, credited, or is listed for a person; one that it has not was not taken; nobody was offered to pay again.
"""

import asyncio
import itertools
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.hostile.payable_chain import NEVER, PayableChain, payable_chain
from tests.live.forking import Process
from tests.live.processes import (
    START_S,
    UNLIMITED,
    Program,
    Sim,
    begin_program,
    command,
    ran,
    read_ready_line,
    started,
)
from tests.money.x402.parts import PAY_TO, payload
from toolserver.money.ledger.store import FILE
from toolserver.money.x402 import wire

CALL, PREMIUM = "/api/pro/briefing", 20_000
TOPUP = "/api/payment/topup"
RPC = ("eth_blockNumber", "eth_getBlockByNumber", "eth_call", "eth_getLogs", "eth_getTransactionReceipt")
STAGES = tuple(f"{name} {when}" for name in ("verify", "settle", *RPC) for when in ("asked", "answered"))
LOOKS = STAGES[4:]  # a look at the chain may be one of several
KINDS = ("call", "call with a key", "new token", "known token", "large")
USD = {"new token": 2, "known token": 3, "large": 150}
DOWN = (0, 1, 10, 60, 300, 1000, 2000)  # blocks
BLOCK_S, AFTER_S, VALID_S = 2, 7200, 120
PATIENCE_S, SETTLE_S = 60.0, 4.0
Pending = tuple[int, int]


@dataclass
class Sent:
    """A payment as its sender knows it."""

    kind: str
    header: str
    nonce: str
    key: str | None
    answers: list[int] = field(default_factory=list)
    is_served: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass
class Result:
    """What became of all payments."""

    kills: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    blocks_down: int = 0
    wrong: list[str] = field(default_factory=list)


class Shop:
    """The service that is killed, and all that was sent to it."""

    def __init__(self, folder: Path, chain: PayableChain, world: Program, rng: random.Random) -> None:
        self.folder, self.chain, self.world, self.rng = folder, chain, world, rng
        self.sent: list[Sent] = []
        self.token = ""
        self.process: Process | None = None

    def settings(self) -> dict[str, str]:
        """It sells by x402 alone, on the chain of the test."""
        servers = json.dumps([f"{self.chain.url}/one", f"{self.chain.url}/two"])
        payments = {"X402__ENABLED": "true", "X402__FACILITATOR_URL": f"{self.chain.url}/x402"}
        payments |= {"X402__PAY_TO": f"0x{PAY_TO.hex()}", "PAYMENTS__RPC_URLS": servers, "PAYMENTS__WAIT_S": "0"}
        more = {"UPSTREAM__VIA": self.world.url, "SOURCES__LICENCE_POLICY": "any"}
        return UNLIMITED | {f"TOOLSERVER_{name}": value for name, value in (payments | more).items()}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Program]:
        """The service, which may be killed meanwhile."""
        words = command("serve", (), self.folder, "tests.hostile.impatient")
        process, log = begin_program(words, folder=self.folder, **self.settings())
        try:
            ready = await asyncio.wait_for(asyncio.to_thread(read_ready_line, process, log), START_S)
            self.process = process
            yield Program(process, ready, log)
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)
            assert process.stdout is not None
            process.stdout.close()

    def move_on(self, seconds: float) -> None:
        """Let time pass on the chain, in the world, and so in the service."""
        self.chain.offset_s += seconds
        with closing(Sim(self.world.url)) as sim:
            sim.put("clock", {"now": self.chain.now})

    def make(self, kind: str) -> Sent:
        """A new payment. One in eight is made late, one in eight never."""
        amount = PREMIUM if kind not in USD else USD[kind] * 10**6
        said = payload(amount, validBefore=str(int(self.chain.now) + VALID_S))
        nonce = said["payload"]["authorization"]["nonce"]
        self.chain.delays[nonce] = self.rng.choice((0.0,) * 6 + (20.0, NEVER))
        made = Sent(kind, wire.header(said), nonce, None if kind in ("call", "known token") else f"key-{nonce}")
        self.sent.append(made)
        return made

    async def send(self, url: str, sent: Sent) -> None:
        """Send a payment, for the first time or again, and judge the answer."""
        headers = {"payment-signature": sent.header} | ({"idempotency-key": sent.key} if sent.key else {})
        if sent.kind == "known token" and self.token:
            headers["authorization"] = f"Bearer {self.token}"
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False) as client:
            try:
                if sent.kind in USD:
                    answer = await client.post(TOPUP, json={"amount_usd": USD[sent.kind]})
                else:
                    answer = await client.get(CALL)
            except httpx.HTTPError:
                return
        sent.answers.append(answer.status_code)
        if answer.status_code == 200:
            sent.is_served = True
            if sent.kind == "known token" and not self.token:
                self.token = answer.json()["token"]
        elif "payment-required" in answer.headers and self._is_owed(sent):
            sent.problems.append(f"{sent.kind} {sent.nonce[:10]}: made, and offered to pay again: {answer.text}")

    def _is_owed(self, sent: Sent) -> bool:
        return any(event["nonce"] == sent.nonce for event in self.chain.events)

    async def kill_at(self, url: str, stage: str | None, count: int, wait_s: float, kinds: list[str]) -> bool:
        """Send payments and kill the service where it is at a stage for the count-th time. Returns if it was there."""
        reached, seen = asyncio.Event(), 0

        async def passing(name: str) -> None:
            nonlocal seen
            seen += name == stage
            if name == stage and seen == count:
                await asyncio.sleep(wait_s)
                self._kill()
                reached.set()

        self.chain.stage = passing
        sending = asyncio.gather(*(self.send(url, self.make(kind)) for kind in kinds))
        over = asyncio.create_task(reached.wait())
        await asyncio.wait([sending, over], return_when=asyncio.FIRST_COMPLETED)
        was = reached.is_set()
        if not was:
            await asyncio.sleep(wait_s)
            self._kill()
        self.chain.stage = None
        over.cancel()
        await sending
        return was

    def _kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


async def kill_at_points(points: int, folder: Path, *, seed: int = 1) -> Result:
    """Run it."""
    rng, result = random.Random(seed), Result()
    plan = [(stage, kind) for kind in KINDS for stage in (*STAGES, None)]
    rng.shuffle(plan)
    downs = [rng.choice(DOWN) for _ in range(points)]
    if points > 3:
        downs[1] = DOWN[-1]
    begun = -(sum(downs) * BLOCK_S + 2 * AFTER_S)
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(payable_chain(offset_s=begun))
        world = stack.enter_context(started("world", folder=folder))
        shop = Shop(folder, chain, world, rng)
        shop.move_on(0)
        async with shop.open() as program:
            first = shop.make("known token")
            chain.delays[first.nonce] = 0.0
            await shop.send(program.url, first)
            assert shop.token, "a known token is needed"
        for (stage, kind), blocks in zip(itertools.islice(itertools.cycle(plan), points), downs, strict=True):
            async with shop.open() as program:
                await _come_back(shop, program.url, rng)
                kinds = [kind, *rng.sample(KINDS, rng.randrange(3))]
                count = rng.choice((1, 1, 2)) if stage in LOOKS else 1
                was = await shop.kill_at(program.url, stage, count, rng.uniform(0, 0.03), kinds)
            result.kills += 1
            result.stages[stage if was and stage else "after the answer"] += 1
            result.blocks_down += blocks
            shop.move_on(blocks * BLOCK_S)
        shop.move_on(AFTER_S)
        await _audit(shop, result)
    return result


async def _come_back(shop: Shop, url: str, rng: random.Random) -> None:
    """Half of the senders without an answer come back; the others stay away for good."""
    coming = [sent for sent in shop.sent[-6:] if not sent.is_served and rng.random() < 0.5]
    await asyncio.gather(*(shop.send(url, sent) for sent in coming))


async def _audit(shop: Shop, result: Result) -> None:
    """Judge everything once the service has looked at all that is open."""
    async with shop.open() as program:
        open_ = await _wait_for_ends(shop, program)
        shop.move_on(AFTER_S)  # now what is owed is owed for long
        await asyncio.sleep(SETTLE_S)
        metric = await asyncio.to_thread(_metric, program, "toolserver_payments_pending")
        in_review = await asyncio.to_thread(_metric, program, "toolserver_payments_in_review")
        listed = await asyncio.to_thread(_listed, shop, "--pending")
        cases = await asyncio.to_thread(_listed, shop, "--cases")
    if not (len(listed) == open_ == metric):
        result.wrong.append(f"{open_} pending, {len(listed)} listed, the metric says {metric}")
    signed = [case for case in cases if case["kind"] in ("unsettled", "uncredited", "unanswered")]
    if len(signed) != in_review:
        result.wrong.append(f"{len(signed)} cases of signed payments listed, the metric says {in_review}")
    reviewed = Counter((case["tx"]) for case in signed)
    for sent in shop.sent:
        result.wrong += sent.problems
        end = find_end(shop.chain, _row(shop, sent), sent, reviewed)
        result.ends[end] += 1
        if end.startswith("!"):
            result.wrong.append(f"{sent.kind} {sent.nonce[:10]}: {end} (answers {sent.answers})")
    twice = [nonce for nonce, count in Counter(event["nonce"] for event in shop.chain.events).items() if count > 1]
    result.wrong += [f"made twice: {nonce}" for nonce in twice]
    result.wrong += await asyncio.to_thread(_books, shop)


async def _wait_for_ends(shop: Shop, program: Program) -> int:
    """Wait until the service has looked at all that is open; how many payments still are."""
    until = time.monotonic() + PATIENCE_S
    while True:
        count, metric = await asyncio.to_thread(_pending, shop, program)
        if (count == metric == 0) or time.monotonic() > until:
            return count
        await asyncio.sleep(0.5)


def find_end(chain: PayableChain, row: Any, sent: Sent, reviewed: Counter[str]) -> str:
    """What became of a payment, in words; with a mark of exclamation where that must not be."""
    made = next((event for event in chain.events if event["nonce"] == sent.nonce), None)
    if made is None:
        if sent.is_served:
            return "!served and never paid"
        return "not taken" if row is None else f"!pending for ever: {row}"
    if row is None or row[0] != "settled":
        return f"!money moved, and the table says {row}"
    if sent.kind in USD and row[1] is not None:
        return "credited"
    if sent.kind not in USD and row[2] is not None:
        return "answered"
    return "for a person" if reviewed[made["hash"]] else "!unseen"


def _row(shop: Shop, sent: Sent) -> Any:
    sql = "SELECT state, token, answered_at FROM x402_payment WHERE nonce=?"
    with closing(sqlite3.connect(shop.folder / "data" / FILE, timeout=10)) as db:
        return db.execute(sql, (bytes.fromhex(sent.nonce[2:]),)).fetchone()


def _pending(shop: Shop, program: Program) -> Pending:
    """How many payments are open: in the table, and by the metric."""
    with closing(sqlite3.connect(shop.folder / "data" / FILE, timeout=10)) as db:
        (count,) = db.execute("SELECT count(*) FROM x402_payment WHERE state='settling'").fetchone()
    return count, _metric(program, "toolserver_payments_pending")


def _metric(program: Program, name: str) -> int:
    text = httpx.get(program.ready["metrics_url"], trust_env=False, timeout=20).text
    return int(float(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} "))))


def _listed(shop: Shop, flag: str) -> list[Any]:
    words = ("purchases", flag, "--json", "--limit", "1000", "--data-dir", str(shop.folder / "data"))
    done = ran(*words, folder=shop.folder)
    assert done.returncode == 0, done.stderr.decode()
    return list(json.loads(done.stdout))


def _books(shop: Shop) -> list[str]:
    words = ("books", "check", "--json", "--data-dir", str(shop.folder / "data"))
    done = ran(*words, folder=shop.folder, within_s=120, **shop.settings())
    found = json.loads(done.stdout)["checks"]
    print("  books check:", ", ".join(f"{one['name']} {one['compared']}" for one in found))
    unread = "not compared: no service has read the chain yet"  # each is killed before it looks a second time
    notes = [one["note"] for one in found if one["note"] not in (None, unread)]
    return [*notes, *(f"{one['name']}: {text}" for one in found for text in one["differences"])]


def main(points: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as place:
        result = asyncio.run(kill_at_points(points, Path(place), seed=seed))
    print(f"{result.kills} kills, {result.blocks_down} blocks down; killed at:")
    for stage, count in sorted(result.stages.items()):
        print(f"  {stage:36} {count:4}")
    print("payments:", ", ".join(f"{count} {end}" for end, count in sorted(result.ends.items())))
    print("\n".join(result.wrong) or "everything ended in an answer, in credits, with a person, or was not taken")
    return bool(result.wrong)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given + [100, 1][len(given) :])))
