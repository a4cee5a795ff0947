"""`python -m tests.money.ledger.postgres_history [--seeds 300]`: histories of three instances over one PostgreSQL.

Callers at three instances reserve, charge, settle and mint on few tokens, some with the same call_id, while a proxy
before each instance cuts connections, at COMMIT above all. Then the history is replayed one group after the other
through the pure rules: every outcome that was stored must be the outcome of the rules, and the books must be those of
the database. The order is that of the blocks of numbers that each group took while it held the locks of its accounts.
"""

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import anyio

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.postgres import terms_of
from tests.tcp_proxy import Fate, proxy_before
from toolserver.clock import ManualClock
from toolserver.errors import InsufficientCredits, InvalidToken
from toolserver.money.ledger import sql_tables
from toolserver.money.ledger.operations import (
    CauseReused,
    Charge,
    LedgerOperation,
    Mint,
    Reserve,
    Settle,
    UnknownCall,
    outcome_of,
)
from toolserver.money.ledger.state import LedgerState, Minted, key_of
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.connection import NUMBERS, SqlConnection
from toolserver.sql.errors import OutcomeUnknown, StorageFailed
from toolserver.sql.postgres_group_commit import open_postgres

INSTANCES = 3
CALLERS = 6  # at each instance
TURNS = 8  # of each caller
WINDOW = 24 * NUMBERS  # the blocks that groups under way at the same time may have taken, when some are run again
TOKENS = 4  # the last one is not there before somebody mints it


@dataclass
class Attempt:
    """One run of a group: the first number of its block, what it decided, and whether it wrote."""

    number: int
    operations: list[LedgerOperation[Any]]
    outcomes: list[Any]
    wrote: bool


@dataclass
class PostgresHistory:
    """What a seed did, and what is wrong with it."""

    seed: int
    attempts: list[Attempt] = field(default_factory=list)
    told: list[LedgerOperation[Any]] = field(default_factory=list)  # whose callers got a result
    answered: int = 0
    refused: int = 0
    failed: int = 0
    unknown: int = 0
    cuts: int = 0
    wrong: list[str] = field(default_factory=list)


class RecordingLedger(SqlLedger):
    """Keeps what each run of a group decided."""

    history: PostgresHistory

    def apply_group(self, db: SqlConnection, operations: Sequence[LedgerOperation[Any]]) -> list[Any]:
        now = self.now()
        books = sql_tables.load_state(db, operations, now)
        number = books.next_seq
        outcomes = [outcome_of(operation, books) for operation in operations]
        sql_tables.store_state(db, books)
        self.history.attempts.append(Attempt(number, list(operations), outcomes, bool(books.transfers)))
        return outcomes


async def live(seed: int, folder: Path, *, faults: bool = True) -> PostgresHistory:
    """Live through a seed and judge it."""
    history, rng, clock = PostgresHistory(seed), Random(seed), ManualClock(START)
    terms = terms_of(folder / str(seed))
    async with AsyncExitStack() as stack:
        ledgers = []
        for _ in range(INSTANCES):
            proxy, url = proxy_before(terms.url)
            stack.callback(proxy.close)
            store = await stack.enter_async_context(open_postgres(replace(terms, url=url)))
            ledger = RecordingLedger(store, clock)
            ledger.history = history
            ledgers.append((ledger, proxy))
        for number in range(TOKENS - 1):
            await ledgers[0][0].mint(token(number), 20, cause=f"first {number}")
        if faults:
            for _, proxy in ledgers:
                proxy.judge = _judge_at_random(Random(rng.random()), history)
        async with anyio.create_task_group() as tasks:
            for ledger, _ in ledgers:
                for _ in range(CALLERS):
                    tasks.start_soon(_call, ledger, Random(rng.random()), history)
        for _, proxy in ledgers:
            proxy.judge = lambda sent: "pass"
        await _judge(history, ledgers[0][0])
    return history


def _judge_at_random(rng: Random, history: PostgresHistory) -> Any:
    def judge(sent: bytes) -> Fate:
        dice = rng.random()
        if dice < (0.15 if b"COMMIT\0" in sent else 0.004):
            history.cuts += 1
            return rng.choice(("cut", "cut_after"))  # type: ignore[return-value]
        return "pass"

    return judge


async def _call(ledger: RecordingLedger, rng: Random, history: PostgresHistory) -> None:
    for turn in range(TURNS):
        operation = _choose(rng, turn)
        try:
            await ledger.file.together(ledger.apply_group, operation)
            history.answered += 1
            history.told.append(operation)
        except OutcomeUnknown:
            history.unknown += 1
        except StorageFailed as failure:
            history.failed += 1
            history.wrong += [] if history.cuts else [f"failed without a fault: {failure}"]
        except Exception:
            history.refused += 1


def _choose(rng: Random, turn: int) -> LedgerOperation[Any]:
    who, call = key_of(token(rng.randrange(TOKENS))), f"call_{rng.randrange(40)}"
    price = rng.choice((1, 1, 2, 7))
    match rng.choice(("charge", "charge", "reserve", "settle", "settle", "mint")):
        case "charge":
            return Charge(call, who, price, "/api/pro/x")
        case "reserve":
            return Reserve(call, who, price, "/api/pro/x", "", 10**15)
        case "settle":
            return Settle(call, rng.choice((None, "5xx")), key=rng.choice((None, who)))
        case _:
            return Mint(who, rng.choice((1, 5)), f"cause {rng.randrange(12)}", f"acct_{rng.getrandbits(64)}")


async def _judge(history: PostgresHistory, ledger: SqlLedger) -> None:
    """Replay what was stored through the pure rules, and compare outcomes and books."""
    stored = await ledger.file.read(lambda db: {n for (n,) in db.execute("SELECT seq FROM transfer")})
    blocks = {seq - seq % NUMBERS for seq in stored}
    last = {id(operation): attempt for attempt in history.attempts for operation in attempt.operations}
    for operation in history.told:
        if last[id(operation)].wrote and last[id(operation)].number not in blocks:
            history.wrong.append(f"{operation}: its caller has a result, and nothing was stored")
    books, born = LedgerState(ledger.now(), 1, 1), dict[str, int]()
    minted = _find_minted(history, blocks)
    for attempt in sorted(history.attempts, key=lambda attempt: attempt.number):
        if attempt.wrote and attempt.number not in blocks:
            continue  # it was rolled back
        books.next_seq, books.next_account = attempt.number, attempt.number
        for operation, outcome in zip(attempt.operations, attempt.outcomes, strict=True):
            if _came_just_before(operation, outcome, attempt.number, born):
                continue
            if isinstance(outcome, CauseReused) and _was_minted_beside(operation, attempt.number, minted):
                continue
            again = outcome_of(operation, books)
            if _show(again) != _show(outcome):
                history.wrong.append(f"{operation}: stored {_show(outcome)}, by the rules {_show(again)}")
            for name in (*books.tokens.keys(), *books.holds.keys()):
                born.setdefault(name, attempt.number)
    sql = "SELECT id, credits, debits, pending FROM account WHERE kind = 'token'"
    found = {row[0]: row for row in await ledger.file.read(lambda db: db.execute(sql).fetchall())}
    expected = {a.id: (a.id, a.credits, a.debits, a.pending) for a in books.accounts.values()}
    history.wrong += [] if found == expected else [f"the books are {found}, by the rules {expected}"]
    history.wrong += [f"{breach.rule}: {breach.where}" for breach in await ledger.check()]


def _came_just_before(operation: LedgerOperation[Any], outcome: Any, number: int, born: dict[str, int]) -> bool:
    """Whether a call was refused that in a serial history came before what it names, though its number is a later one.

    What is not there yet cannot be locked: a token that another group is about to commit is refused as unknown, and a
    call as never reserved. Refusals change nothing, so nothing depends on where they stand.
    """
    if not isinstance(outcome, InvalidToken | UnknownCall | InsufficientCredits):
        return False
    needs = operation.needs()
    names = [name for name in (needs.key, needs.call_id) if name is not None]
    return any(0 <= number - born.get(name, -WINDOW) < WINDOW for name in names)


def _was_minted_beside(operation: Mint, number: int, minted: dict[str, tuple[int, str]]) -> bool:
    """Whether its cause was credited to another token at about the same time, under a later number.

    No lock orders mints of different accounts: that one of them is the first is all that is decided.
    """
    at, key = minted.get(operation.cause, (0, ""))
    return 0 < at - number < WINDOW and key != operation.key


def _find_minted(history: PostgresHistory, blocks: set[int]) -> dict[str, tuple[int, str]]:
    """The number under which each cause was credited, and to which token."""
    return {
        operation.cause: (attempt.number, operation.key)
        for attempt in history.attempts
        if attempt.number in blocks
        for operation, outcome in zip(attempt.operations, attempt.outcomes, strict=True)
        if isinstance(operation, Mint) and isinstance(outcome, Minted) and not outcome.replayed
    }


def _show(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else repr(outcome)


def main() -> int:
    """Live through the seeds; the first that is wrong is shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    totals = dict.fromkeys(("answered", "refused", "failed", "unknown", "cuts"), 0)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(asked.first, asked.first + asked.seeds):
            history = anyio.run(lambda seed=seed: live(seed, Path(folder)))  # type: ignore[misc]
            totals = {name: count + getattr(history, name) for name, count in totals.items()}
            if history.wrong:
                print(f"seed {seed}:", *history.wrong, sep="\n  ")
                return 1
            if (done := seed - asked.first + 1) % 50 == 0:
                print(f"{done} of {asked.seeds} seeds: {totals}", flush=True)
    print(f"{asked.seeds} seeds, 0 violations: {totals}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
