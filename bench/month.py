"""`python -m bench.month [--calls N] [--buyers N] [--dir DIR]`: measure how long the books of a large month take, and
check that they are right.

A ledger is written with purchases, top-ups, calls paid by signature, grants, refunds, reversals on the chain and calls
of every outcome, before, within and after one month. The expected sums are counted while the rows are made, without
SQL; then `toolserver books month` and `toolserver books tool` are run on the file and compared.
"""

import argparse
import csv
import io
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolserver.sql.migrate import migrate
from toolserver.sql.sqlite import connect

MONTH = "2027-01"
SINCE, UNTIL = (int(datetime(2027, month, 1, tzinfo=UTC).timestamp() * 1000) for month in (1, 2))
MARGIN = 3 * 86_400_000  # before and after the month, in ms
PATHS = {"/api/pro/briefing": 1, "/api/pro/macro": 2, "/api/pro/whales": 2, "/api/pro/sentiment": 2}
CHAIN = 8453


@dataclass
class Books:
    """Rows to write, with the counts that the command has to reproduce."""

    random: random.Random
    count: Counter[str] = field(default_factory=Counter)
    tools: dict[str, Counter[str]] = field(default_factory=lambda: {path: Counter() for path in PATHS})
    transfers: list[tuple[Any, ...]] = field(default_factory=list)
    holds: list[tuple[Any, ...]] = field(default_factory=list)
    payments: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    credits: dict[int, list[int]] = field(default_factory=dict)  # account: credits, debits, pending
    now: int = SINCE - MARGIN

    def move(self, kind: str, debit: int, credit: int, amount: int, resolves: Any = None, cause: Any = None) -> int:
        """Write a transfer and change the accounts, as one would by hand."""
        seq = len(self.transfers) + 1
        self.transfers.append((seq, kind, debit, credit, amount, resolves, cause, self.now))
        if credit > 3 and kind in ("posted", "reverse"):
            self.credits[credit][0] += amount
        if debit > 3:
            row = self.credits[debit]
            row[1] += amount if kind in ("posted", "post") else 0
            row[2] += amount if kind == "pending" else -amount if kind in ("post", "void") else 0
        return seq

    def book(self, name: str, amount: int = 1) -> None:
        """Count an amount if it falls into the month."""
        if SINCE <= self.now < UNTIL:
            self.count[name] += amount

    def owe(self, amount: int) -> None:
        """Count what buyers are owed at the end of the month, before it, and at the end of all."""
        self.count["owed_now"] += amount
        self.count["owed"] += amount if self.now < UNTIL else 0
        self.count["owed_before"] += amount if self.now < SINCE else 0

    def spendable(self, account: int) -> int:
        """Return the credits that an account can spend."""
        credits, debits, pending = self.credits[account]
        return credits - debits - pending


def buy(books: Books, account: int) -> None:
    """Buy credits by a transfer; one in twenty is undone on the chain at once."""
    usd, hash = books.random.choice((1, 5, 20)), books.random.randbytes(32)
    number, credits = len(books.payments) + 1, usd * 50
    books.move("posted", 1, account, credits, cause=f"eip155:{CHAIN}:0x{hash.hex()}:0")
    books.book("sold_by_transfer", credits)
    books.book("by_transfer", usd * 1_000_000)
    books.owe(credits)
    undone = books.random.random() < 0.05
    purchase = (number, number.to_bytes(32, "big"), number.to_bytes(20, "big"), number, usd * 1_000_000, credits)
    books.payments.append(("purchase", (*purchase, None, "reorged" if undone else "credited", books.now, books.now)))
    token = _hash(account)
    if undone:
        books.move("posted", account, 1, credits)
        books.book("taken_back", credits)
        books.book("undone", usd * 1_000_000)
        books.owe(-credits)
        row = (CHAIN, hash, number, token, 7, hash, usd * 1_000_000, credits, credits, 0, books.now)
        books.payments.append(("tx_reversal", (number, *row)))
        return
    seen = (CHAIN, hash, number, token, 7, hash, books.now, usd * 1_000_000, credits, "[0]", "blocks", 0, 0, books.now)
    books.payments.append(("tx_credit", (*seen, None, None, books.now, None)))


def top_up(books: Books, account: int) -> None:
    """Buy credits by a signed payment."""
    usd, payload = books.random.choice((1, 5)), books.random.randbytes(32)
    payer, nonce = payload[:20], books.random.randbytes(32)
    books.move("posted", 1, account, usd * 50, cause=f"x402:eip155:{CHAIN}:0x{payer.hex()}:0x{nonce.hex()}")
    books.book("sold_by_x402", usd * 50)
    books.book("by_x402_topup", usd * 1_000_000)
    books.owe(usd * 50)
    row = (payload, payer, nonce, usd * 1_000_000, f"topup {_hash(account)}", "settled", nonce, books.now, None)
    books.payments.append(
        ("x402_payment", (*row, _hash(account), usd * 50, None, None, books.now, books.now, None, None))
    )


def pay_call(books: Books, account: int) -> None:
    """Pay one call by signature: USDC, and no credits."""
    payload = books.random.randbytes(32)
    row = (payload, payload[:20], payload, 20_000, "GET /api/pro/briefing x", "settled", payload, books.now, None)
    books.payments.append(("x402_payment", (*row, None, None, None, None, books.now, books.now, None, books.now)))
    books.book("by_x402_call", 20_000)


def grant(books: Books, account: int) -> None:
    """Grant credits from the operator."""
    books.move("posted", 1, account, 10, cause=f"grant:{len(books.transfers)}")
    books.book("granted", 10)
    books.owe(10)


def refund(books: Books, account: int) -> None:
    """Pay credits back from the operator."""
    amount = min(10, books.spendable(account))
    if amount > 0:
        id = f"rf_{len(books.transfers):032x}"
        books.move("posted", account, 1, amount, cause=f"refund:{id}:asked for")
        paid = books.random.random() < 0.9
        terms = (id, _hash(account), bytes(20), amount, amount * 20_000, "asked for", "paid" if paid else "booked")
        row = (*terms, books.now, books.now, "payer", bytes(20), books.now, books.now)
        books.payments.append(("refund", (*row, bytes(32), books.now) if paid else row))
        books.book("paid_back", amount * 20_000 if paid else 0)
        books.count["to_pay_back"] += 0 if paid else amount * 20_000
        books.book("refunded", amount)
        books.owe(-amount)


def call(books: Books, account: int) -> None:
    """Make a paid call: charged in one step or in two, released, or charged and given back."""
    path = books.random.choice(list(PATHS))
    price, end = PATHS[path], books.random.choices(("posted", "post", "void", "reverse"), (60, 30, 6, 4))[0]
    if books.spendable(account) < price:
        buy(books, account)
        if books.spendable(account) < price:
            return
    id, begun = f"call_{len(books.holds):032x}", books.now
    first = books.move("posted" if end == "posted" else "pending", account, 2, price)
    if end != "posted":
        books.now += 40
        books.move("void" if end == "void" else "post", account, 2, price, resolves=first)
    books.book("calls_released" if end == "void" else "calls_charged")
    books.book("used", 0 if end == "void" else price)
    books.owe(0 if end == "void" else -price)
    if SINCE <= books.now < UNTIL:
        books.tools[path]["calls_released" if end == "void" else "calls"] += 1
        books.tools[path]["credits"] += 0 if end == "void" else price
    if end == "reverse":
        books.now += 40
        books.move("reverse", 2, account, price, resolves=first)
        books.book("given_back", price)
        books.book("calls_given_back")
        books.owe(price)
        if SINCE <= books.now < UNTIL:
            books.tools[path]["calls_given_back"] += 1
            books.tools[path]["credits_given_back"] += price
    state = {"posted": "posted", "post": "posted", "void": "voided", "reverse": "reversed"}[end]
    reason = {"void": "stale_data", "reverse": "delivery_failed"}.get(end)
    books.holds.append((id, account, price, state, reason, path, "", first, begun + 300_000, books.now))


RARE: tuple[tuple[Callable[[Books, int], None], float], ...] = (
    (buy, 0.01),
    (top_up, 0.006),
    (pay_call, 0.004),
    (grant, 0.001),
    (refund, 0.002),
)


def make_month(calls: int, buyers: int, seed: int = 1) -> Books:
    """Make a month of calls by buyers, in order of time."""
    books = Books(random.Random(seed))
    books.credits = {account: [0, 0, 0] for account in range(4, 4 + buyers)}
    step = (UNTIL - SINCE + 2 * MARGIN) // calls
    for number in range(calls):
        begun = books.now
        account = 4 + number % buyers if number < buyers else books.random.randrange(4, 4 + buyers)
        for event, share in RARE:
            if books.random.random() < share:
                event(books, account)
        call(books, account)
        books.now = max(books.now, begun + step)
    return books


def write_month(books: Books, path: Path) -> None:
    """Write the rows into a new ledger's file."""
    with closing(connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")
        migrate(db)
        db.execute("BEGIN")
        sql = "INSERT INTO account(id, kind, credits, debits, pending) VALUES (?,'token',?,?,?)"
        for account, row in books.credits.items():
            db.execute(sql, (account, *row))
            token = (_hash(account), account, f"acct_{account:032x}", SINCE)
            db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?,?,?,?)", token)
        _insert(db, "transfer", books.transfers)
        _insert(db, "reservation", books.holds)
        for table, row in books.payments:
            _insert(db, table, [row])
        db.execute("COMMIT")


def _insert(db: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    columns = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")][: len(rows[0])]
    marks = ",".join("?" * len(columns))
    db.executemany(f"INSERT INTO {table}({','.join(columns)}) VALUES ({marks})", rows)


def _hash(account: int) -> str:
    return f"{account:064x}"


def compare_month(books: Books, said: dict[str, Any]) -> Iterator[str]:
    """Yield the differences between `books month` and the count."""
    for name, value in said["credits"].items():
        if value != books.count[name]:
            yield f"{name}: counted {books.count[name]}, the books say {value}"
    usd = {**{way: said["usdc"][way]["usd"] for way in ("by_transfer", "by_x402_topup", "by_x402_call")}}
    usd |= {way: said["usdc"][way]["usd"] for way in ("paid_back", "to_pay_back")}
    usd["undone"] = said["usdc"]["undone_on_chain"]["usd"]
    for way, text in usd.items():
        if round(float(text) * 1_000_000) != books.count[way]:
            yield f"{way}: counted {books.count[way]} atomic USDC, the books say {text}"
    yield from said["problems"]


def compare_tools(books: Books, rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield the differences between `books tool` and the count."""
    for row in rows:
        for name, value in list(row.items())[1:]:
            if int(value) != books.tools[row["endpoint"]][name]:
                yield f"{row['endpoint']} {name}: counted {books.tools[row['endpoint']][name]}, the books say {value}"
    if {row["endpoint"] for row in rows} != {path for path, counted in books.tools.items() if counted}:
        yield "the tools are others"


def run_books(folder: Path, *words: str) -> tuple[float, str]:
    """Return the seconds and the output of a command of `toolserver books`, in its own process."""
    command = [sys.executable, "-m", "toolserver", "books", *words, "--data-dir", str(folder)]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - begun
    if done.returncode not in (0, 1) or done.stderr:
        raise SystemExit(done.stderr)
    return took, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.month")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--buyers", type=int, default=10_000)
    parser.add_argument("--dir", type=Path, help="Folder to leave the ledger in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-month-") as name:
        folder = given.dir or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.perf_counter()
        books = make_month(given.calls, given.buyers)
        write_month(books, folder / "ledger.sqlite3")
        size = (folder / "ledger.sqlite3").stat().st_size / 1e6
        print(f"{given.calls} calls by {given.buyers} buyers, {len(books.transfers)} transfers, {size:.0f} MB")
        print(f"made and written in {time.perf_counter() - begun:.1f} s", flush=True)
        wrong = list(compare_month(books, json.loads(_show_time(folder, "month", MONTH, "--json"))))
        tools = _show_time(folder, "tool", "--month", MONTH)
        wrong += compare_tools(books, list(csv.DictReader(io.StringIO(tools))))
        for verb in ("token", "export"):
            lines = _show_time(folder, verb, "--month", MONTH).splitlines()
            print(f"  {len(lines) - 1} lines")
        print("\n".join(wrong) or "every sum equals the independent count")
        sys.exit(1 if wrong else 0)


def _show_time(folder: Path, verb: str, *words: str) -> str:
    """Return the output of a command, and print its seconds of wall time and CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    took, said = run_books(folder, verb, *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"books {verb:7} {took:6.2f} s, of these {worked:.2f} s of work", flush=True)
    return said


if __name__ == "__main__":
    main()
