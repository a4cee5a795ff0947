"""`python -m tests.live.spender FILE ROUND [KEY …]`: spends without end, and writes down what it was told was done.

One line before each step and one after it, straight to standard output: what is read there happened before the kill.
The keys are Idempotency-Keys of earlier rounds that never got an answer; they are tried again first.
"""

import asyncio
import os
import random
import sys
from collections.abc import Awaitable
from pathlib import Path

from toolserver.calls.idempotency import Idempotency, KeptResult
from toolserver.calls.idempotency_store import SqlIdempotencyStore
from toolserver.clock import SystemClock
from toolserver.core.caller import new_call_id
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.store import SqlLedger, open_ledger

CALLERS = 24
TOKENS = 6
PRICE = 2
TTL_S = 3600


def token(number: int) -> str:
    return f"svc_live_{number:064x}"


def _pack(result: str) -> KeptResult:
    return KeptResult(result.encode())


def _unpack(_call_id: str, kept: bytes) -> str:
    return kept.decode()


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Spender:
    """One customer after the other."""

    def __init__(self, ledger: SqlLedger, name: str) -> None:
        self.ledger, self.name = ledger, name
        self.once = Idempotency(SqlIdempotencyStore(ledger.file, SystemClock()))

    async def settle(self, call_id: str, reason: str | None) -> None:
        say("asks", call_id, reason or "charge")
        settled = await self.ledger.settle(call_id, no_charge=reason)
        say("told", call_id, settled.state)

    async def charge(self, call_id: str, who: str, endpoint: str = "/x") -> str:
        say("asks", call_id, "charge")
        settled = await self.ledger.charge(call_id, who, PRICE, endpoint=endpoint)
        say("told", call_id, settled.state)
        return settled.state

    async def call(self, kind: int, who: str) -> None:
        """One of the ways a call can go: most end in a charge, some are released, some charged and then released."""
        call_id = new_call_id()
        if kind < 3:
            await self.charge(call_id, who)
        else:
            say("asks", call_id, "reserve")
            await self.ledger.reserve(call_id, who, PRICE, endpoint="/x", ttl_s=TTL_S)
            say("told", call_id, "open")
            if kind < 6:
                await self.settle(call_id, None)
        if kind in (2, 5, 6):
            await self.settle(call_id, "cancelled")

    async def keyed(self, key: str) -> None:
        """A call with an Idempotency-Key; the key begins with the customer's number."""
        who = token(int(key.split("-")[0]))
        say("key", key)

        async def work(call_id: str) -> str:
            return await self.charge(call_id, who, f"/once/{key}")

        await self.once.once("s", key, "r", work, pack=_pack, unpack=_unpack)
        say("kept", key)

    async def spend(self, number: int) -> None:
        chance = random.Random(f"{self.name} {number}")
        turn = 0
        while True:
            turn += 1
            customer = chance.randrange(TOKENS)
            kind = chance.randrange(9)
            name = f"{customer}-{self.name}-{number}-{turn}"
            await self.paying(name, self.keyed(name) if kind == 8 else self.call(kind, token(customer)))

    async def paying(self, name: str, call: Awaitable[None]) -> None:
        """A call that may find too few credits: then more are bought, for the calls to come."""
        try:
            await call
        except PaymentRequired:
            await self.ledger.mint(token(int(name.split("-")[0])), 500, cause=name)


async def main(path: str, name: str, keys: list[str]) -> None:
    async with open_ledger(Path(path)) as ledger:
        spender = Spender(ledger, name)
        for number in range(TOKENS):
            await ledger.mint(token(number), 500, cause=f"first {number}")
        say("ready")
        async with asyncio.TaskGroup() as tasks:
            for key in keys:
                tasks.create_task(spender.paying(f"{key}-{name}", spender.keyed(key)))
            for number in range(CALLERS):
                tasks.create_task(spender.spend(number))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
