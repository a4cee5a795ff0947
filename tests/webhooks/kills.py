"""A process that dies between any two steps of a fire, again and again, while receivers do what they like.

`python -m tests.webhooks.kills [kills]` runs the long form and prints what was found. A step is a call of the file
in which webhooks are stored, of the ledger or of the receipts; the process may die just before or just after one. Dying
means that everything in memory is dropped and the database is opened again. Two timers run in every life, and receivers
answer, fail, hang, drip, redirect, close in the middle, ask for time or say that they are gone.
"""

import asyncio
import contextlib
import random
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from tests.calls.parts import RICH, START
from tests.webhooks import receivers
from tests.webhooks.receivers import Receiver, receiving, status
from tests.webhooks.room import NETWORK, open_room
from toolserver.clock import ManualClock
from toolserver.errors import SubscriptionConflict
from toolserver.money.receipts.sql_store import read_receipts
from toolserver.serving.money import MoneyParts
from toolserver.webhooks.delivery import DeliveryNetwork
from toolserver.webhooks.subscription_operations import ResumeSubscription

SLOT_S = 300
IMPATIENT = DeliveryNetwork(total_s=0.2)
LONGEST_LIFE = 120  # steps: three subscribers, each of whose fires has 38


class Killed(BaseException):
    """The process is gone."""


class Fate:
    """Counts steps down to the one at which the process dies."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Killed


class Mortal:
    """An object whose named methods are awaited, each a step that may be the last."""

    def __init__(self, inner, fate, names):
        self._inner, self._fate, self._names = inner, fate, names

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name not in self._names:
            return method

        async def stepped(*arguments, **named):
            self._fate.step()
            outcome = await method(*arguments, **named)
            self._fate.step()
            return outcome

        return stepped


class MortalLedger(Mortal):
    """A ledger whose file is mortal too, for those who store their own rows in it."""

    def __init__(self, ledger, fate):
        super().__init__(ledger, fate, ("reserve", "settle", "balance"))
        self.file = Mortal(ledger.file, fate, ("together", "alone", "read"))


def make_mortal(money: MoneyParts, fate: Fate) -> MoneyParts:
    """The same money, each of whose steps may be the last."""
    evidence = Mortal(money.evidence, fate, ("sign", "record_released"))
    return replace(money, own=MortalLedger(money.own, fate), evidence=evidence)


@dataclass
class Findings:
    """What became of it."""

    kills: int = 0
    delivered: int = 0  # fires that some receiver answered 2xx
    charged: int = 0
    gifts: int = 0  # taken by an attempt whose end nobody lived to see, and by no attempt after it
    duplicates: int = 0
    problems: tuple[str, ...] = ()


async def run_life(folder, clock, fate, subscribers=(), *, timers=1, network=NETWORK):
    """One life of the process; True when it died. The caller moves the clock."""
    async with open_room(folder, clock=clock, network=network, wrap=lambda money: make_mortal(money, fate)) as room:
        await room.shop.ledger.mint(RICH, 10_000, cause="kills")
        try:
            await resume_all(room)
            for url in subscribers:
                await room.subscribe(url)
            queue = room.hooks.queue
            await queue.keep_house()  # as a service does at its start and every minute: it mends clocks set back
            async with anyio.create_task_group() as tasks:
                for _ in range(timers):
                    tasks.start_soon(queue.work_due)
        except BaseException as end:
            if is_killed(end):
                return True
            raise
    return False


async def resume_all(room):
    """Do as the owners do whose endpoints said that they were gone, or failed for a day."""
    for paused in await room.hooks.store.all(100, "paused"):
        with contextlib.suppress(SubscriptionConflict):  # it cools down
            await room.hooks.store.apply(ResumeSubscription(paused.id, None, int(room.clock.time() * 1000)))


def is_killed(end):
    return isinstance(end, Killed) or (
        isinstance(end, BaseExceptionGroup) and any(is_killed(each) for each in end.exceptions)
    )


TAKING = (status(200), status(204), receivers.close_in_body)
FAULTS = (
    status(500),
    status(302, "Location: http://127.0.0.1:1/"),
    status(410),
    status(429, "Retry-After: 7"),
    receivers.hang,
    receivers.drip_head,
    receivers.close,
    receivers.close_in_head,
)


def moody(chance, faulty=0.4):
    """A receiver that answers as it likes, and the list in which it keeps whether it took each request."""
    taken: list[bool] = []

    async def answer(writer):
        taken.append(chance.random() >= faulty)
        await chance.choice(TAKING if taken[-1] else FAULTS)(writer)

    return answer, taken


async def torment(folder: Path, kills: int, seed: int, *, jumps: bool = False) -> Findings:
    """Live through so many deaths, then settle down; what was delivered and what was charged must agree."""
    chance, clock, findings = random.Random(seed), ManualClock(START), Findings()
    answer, takes = moody(chance)
    async with receiving(answer) as receiver:
        urls = [receiver.url(path=f"/{n}") for n in range(3)]
        await run_life(folder, clock, Fate(10**9), urls)
        clock.advance(SLOT_S)
        while findings.kills < kills:
            fate = Fate(chance.randint(1, LONGEST_LIFE))
            findings.kills += await run_life(folder, clock, fate, timers=2, network=IMPATIENT)
            clock.advance(chance.choice([1.0, 6.5, 37.0, 61.0, 61.0]))
            if jumps and chance.random() < 0.05:
                clock.advance(chance.choice([-86_400, 86_400]))
        receiver.answer = status(200)
        for _ in range(8):
            await run_life(folder, clock, Fate(10**9))
            clock.advance(61)
        takes += [True] * (len(receiver.requests) - len(takes))
        return await compare(folder, clock, receiver, takes, findings)


async def compare(folder, clock, receiver: Receiver, takes: list[bool], findings: Findings) -> Findings:
    """Compare what the receiver took with the log of deliveries, the ledger and the receipts."""
    problems = []
    answers: dict[str, list[bool]] = {}
    bodies: dict[str, set[bytes]] = {}
    for request, took in zip(receiver.requests, takes, strict=True):
        answers.setdefault(request.headers["webhook-id"], []).append(took)
        bodies.setdefault(request.headers["webhook-id"], set()).add(request.body)
    taken = {id: sum(seen) for id, seen in answers.items() if any(seen)}
    owed = {id for id in taken if answers[id][-1]}
    if changed := [id for id, seen in bodies.items() if len(seen) > 1]:
        problems.append(f"{len(changed)} deliveries changed their bytes")
    async with open_room(folder, clock=clock) as room:
        posted = await room.shop.ledger.file.read(
            lambda db: [row[0] for row in db.execute("SELECT call_id FROM reservation WHERE state='posted'")]
        )
        still_open = await room.shop.ledger.file.read(
            lambda db: db.execute("SELECT count(*) FROM webhook_fire WHERE state IN ('open', 'accepted')").fetchone()[0]
        )
        receipts = await room.shop.ledger.file.read(lambda db: {receipt.id for receipt in read_receipts(db)})
        held, spent = await room.held(), await room.spent()
    charged = {"msg_" + call.removeprefix("call_") for call in posted}
    if lost := owed - charged:
        problems.append(f"{len(lost)} were delivered and not charged")
    if extra := charged - set(taken):
        problems.append(f"{len(extra)} were charged and not delivered")
    unknown = len(set(taken) - charged)
    if unknown > findings.kills / 10:
        problems.append(f"{unknown} gifts")
    spent += 10_000
    if spent != len(charged):
        problems.append(f"{spent} credits were spent for {len(charged)} fires")
    if held or still_open:
        problems.append(f"{held} credits still held, {still_open} fires still open")
    if missing := [call for call in posted if "rcpt_" + call.removeprefix("call_") not in receipts]:
        problems.append(f"{len(missing)} charges without a receipt")
    duplicates = sum(count - 1 for count in taken.values())
    if duplicates > findings.kills:
        problems.append(f"{duplicates} duplicates for {findings.kills} kills")
    return replace(
        findings,
        delivered=len(taken),
        charged=len(charged),
        gifts=unknown,
        duplicates=duplicates,
        problems=tuple(problems),
    )


async def count_steps(folder: Path) -> int:
    """How many steps one fire has, from its slot to its receipt."""
    fate = Fate(10**9)
    clock = ManualClock(START)
    async with receiving() as receiver:
        await run_life(folder, clock, Fate(10**9), [receiver.url()])
        clock.advance(SLOT_S)
        await run_life(folder, clock, fate)
    return 10**9 - fate.left


def main(kills: int) -> None:
    for seed in range(4):
        with tempfile.TemporaryDirectory() as folder:
            print(seed, asyncio.run(torment(Path(folder), kills, seed, jumps=seed % 2 == 1)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
