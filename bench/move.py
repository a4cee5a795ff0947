"""`python -m bench.move --to URL [--calls N] [--kills N] [--dir DIR]`: measure how long a large ledger takes to move.

A file is written with a month of calls (`bench.month`), a signed receipt for each charge, and the log of the uncharged
calls. `toolserver db move` moves it to an empty schema. The copy is killed with SIGKILL as often as requested, and
started again. Then `toolserver db check` reads both places and has to report the same.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.month import Books, _hash, make_month, write_month
from toolserver.money.receipts.keys import RECEIPT_KEYS, Key, ensure_keys
from toolserver.money.receipts.log import AppendHour, BookedCall, LogLease, hour_at
from toolserver.money.receipts.sign import Body, Sale, StoredReceipt, core_of, encode, receipt_id, signing_input
from toolserver.money.receipts.sql_store import append_hour, book_calls, store_receipts
from toolserver.sql.move_mark import MARK_FILE
from toolserver.sql.row_seal import KEY, RowSeal, read_key
from toolserver.sql.sealed_file import seal_all
from toolserver.sql.sqlite import connect

FILE = "ledger.sqlite3"
PROGRESS = b" rows copied"
NEVER = 2**62


def make_receipts(books: Books, key: Key) -> Iterator[StoredReceipt]:
    """Yield a signed receipt for each charged call."""
    for call_id, account, price, state, _, endpoint, _, _, _, at in books.holds:
        if state != "voided":
            body = Body(hashlib.sha256(call_id.encode()).hexdigest(), 900)
            sale = Sale(call_id, _hash(account), endpoint, f"GET {endpoint}", price, price, 0, body=body)
            core = encode(core_of(sale, service="bench", now=at / 1000))
            signature = key.sign(signing_input(key.kid, core))
            yield StoredReceipt(receipt_id(call_id), sale.owner, core, key.kid, signature, at)


def list_uncharged(books: Books) -> list[BookedCall]:
    """Return the uncharged calls, as they are booked."""
    found = []
    for call_id, account, price, _, reason, endpoint, _, _, _, at in books.holds:
        if reason is not None:
            hour = hour_at(at / 1000)
            key = hashlib.sha256(f"{hour} {account} {endpoint} {reason}".encode()).digest()
            receipt = hashlib.sha256(call_id.encode()).digest() if reason == "delivery_failed" else None
            found.append(BookedCall(hour, key, reason, endpoint, price, receipt, at))
    return found


def write_evidence(books: Books, path: Path) -> None:
    """Add receipts and the log to a ledger's file."""
    with closing(connect(path)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        (key,) = ensure_keys(path.parent / RECEIPT_KEYS)
        for rows in batched(make_receipts(books, key), 10_000):
            store_receipts(db, rows)
        by_hour: dict[int, list[BookedCall]] = {}
        for call in list_uncharged(books):
            by_hour.setdefault(call.hour, []).append(call)
        for hour in sorted(by_hour):
            book_calls(db, by_hour[hour])
            assert append_hour(db, AppendHour.of(hour, by_hour[hour], LogLease("bench", 1, NEVER)))
        seal_all(db, RowSeal(read_key(path.parent / KEY)))
        db.execute("COMMIT")


def batched(rows: Iterator[StoredReceipt], size: int) -> Iterator[list[StoredReceipt]]:
    """Yield the rows in lists of at most this length."""
    held: list[StoredReceipt] = []
    for row in rows:
        held.append(row)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


def run(*words: str) -> dict[str, Any]:
    """Return a command's JSON output. Raises SystemExit where it fails."""
    done = subprocess.run([sys.executable, "-m", "toolserver", *words, "--json"], capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode() or done.stdout.decode())
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def move_and_kill(words: Sequence[str], copied_for_s: float) -> None:
    """Begin a move, and kill it this long after it first reports that it copies."""
    with subprocess.Popen([sys.executable, "-m", "toolserver", *words], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while PROGRESS not in (line := process.stderr.readline()):
            if not line:
                raise SystemExit("the move ended before it could be killed: take more calls")
        time.sleep(copied_for_s)
        process.send_signal(signal.SIGKILL)
        print(f"  killed after: {line.decode().strip()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.move")
    parser.add_argument("--to", required=True, metavar="URL", help="An empty database or schema")
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--buyers", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--dir", type=Path, help="Folder to leave the ledger in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolserver-move-") as name:
        folder = given.dir or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.perf_counter()
        books = make_month(given.calls, given.buyers)
        write_month(books, folder / FILE)
        write_evidence(books, folder / FILE)
        size = (folder / FILE).stat().st_size / 1e6
        made_s = time.perf_counter() - begun
        print(
            f"{given.calls} calls, {len(books.transfers)} transfers, {size:.0f} MB, made in {made_s:.0f} s", flush=True
        )
        del books
        sys.exit(0 if move_and_compare(folder, given.to, given.kills) else 1)


def move_and_compare(folder: Path, url: str, kills: int) -> bool:
    """Move a ledger with these interruptions, and print the figures. Return whether both places are the same."""
    os.environ.pop("TOOLSERVER_DATABASE_URL", None)
    words = ("db", "move", "--to", url, "--data-dir", str(folder))
    for _ in range(kills):
        move_and_kill(words, random.uniform(0.1, 2.0))
        assert (folder / MARK_FILE).exists()
    said = run(*words)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"  moved: {said['copied']} rows in the last run, {said['copied_per_second']} a second; compared in"
        f" {said['compared_s']} s; {said['seconds']} s in all; {most:.0f} MB at most"
    )
    kept = Path(said["kept"])
    kept.rename(folder / FILE)
    (folder / MARK_FILE).unlink()
    before = run("db", "check", "--data-dir", str(folder))
    os.environ["TOOLSERVER_DATABASE_URL"] = url
    after = run("db", "check", "--data-dir", str(folder))
    wrong = [name for name in before if before[name] != after[name] and name != "engine"]
    print(f"  {sum(each['rows'] for each in after['tables'].values())} rows in {len(after['tables'])} tables")
    print(f"  log of {after['log']['size']} leaves, root {after['log']['root'][:16]}…; {after['accounts']}")
    print(f"  receipts: {after['tables']['receipt']}")
    print(f"  different: {', '.join(wrong)}" if wrong else "  both places say the same: every table, sum, and the log")
    return not wrong


if __name__ == "__main__":
    main()
