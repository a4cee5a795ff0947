"""`toolserver books`: its sums equal an independent count, it says when they cannot, and it exports every movement."""

import csv
import io
import json
import sqlite3
from collections import Counter
from contextlib import closing

import anyio.to_thread
import pytest
from click.testing import CliRunner

from bench.month import MONTH, SINCE, UNTIL, compare_month, compare_tools, make_month, write_month
from tests.cli.test_ledger import run
from tests.money.ledger.ledgers import token
from toolserver.cli.books import books, span_of_day, span_of_month
from toolserver.money.ledger.sql_invariants import find_breaches
from toolserver.money.ledger.store import FILE, open_ledger

CALLS, BUYERS = 4000, 60


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small month: what was counted, and the folder of its ledger."""
    folder, counted = tmp_path_factory.mktemp("month"), make_month(CALLS, BUYERS, seed=7)
    write_month(counted, folder / FILE)
    return counted, folder


async def test_the_simulated_month_breaks_no_rule_of_the_ledger(made):
    _, folder = made
    with closing(sqlite3.connect(folder / FILE)) as db:
        assert find_breaches(db, 0) == []


async def test_the_sums_of_a_month_equal_the_count(made):
    counted, folder = made
    done = await run(books, "month", MONTH, "--json", "--data-dir", folder)

    assert done.exit_code == 0
    assert list(compare_month(counted, json.loads(done.stdout))) == []
    assert all(counted.count[name] for name in ("taken_back", "refunded", "given_back", "by_x402_call", "owed_before"))


async def test_the_days_of_a_month_add_up_to_it(made):
    counted, folder = made
    used = 0
    for day in range(1, 32):
        done = await run(books, "day", f"{MONTH}-{day:02}", "--json", "--data-dir", folder)
        used += json.loads(done.stdout)["credits"]["used"]

    assert used == counted.count["used"]


async def test_each_tool_has_what_was_counted_for_it(made):
    counted, folder = made
    done = await run(books, "tool", "--month", MONTH, "--data-dir", folder)

    assert list(compare_tools(counted, list(csv.DictReader(io.StringIO(done.stdout))))) == []


async def test_the_tokens_add_up_to_what_was_used_and_is_owed(made):
    counted, folder = made
    done = await run(books, "token", "--month", MONTH, "--json", "--data-dir", folder)
    rows = json.loads(done.stdout)

    assert sum(row["used"] for row in rows) == counted.count["used"] - counted.count["given_back"]
    assert sum(row["bought"] - row["taken_back"] - row["used"] for row in rows) == (
        counted.count["owed"] - counted.count["owed_before"]
    )


async def test_an_export_has_each_movement_once_and_signed(made):
    counted, folder = made
    done = await run(books, "export", "--month", MONTH, "--data-dir", folder)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    inside = [t for t in counted.transfers if SINCE <= t[7] < UNTIL]

    assert [int(row["seq"]) for row in rows] == [t[0] for t in inside]
    assert [abs(int(row["credits"])) for row in rows] == [t[4] for t in inside]
    sums = Counter(dict.fromkeys(("posted", "reverse"), 0))
    for row in rows:
        sums[row["kind"]] += int(row["credits"])
    assert sums["reverse"] == counted.count["given_back"]
    assert all(row["endpoint"] for row in rows if row["kind"] in ("post", "void", "reverse"))


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE tx_credit SET credits = 1", "transfers:"),
        ("UPDATE account SET credits = credits + 1 WHERE id = 5", "owed now:"),
    ],
)
async def test_books_that_do_not_agree_end_with_1(made, tmp_path, sql, problem):
    counted, _ = made
    write_month(counted, tmp_path / FILE)
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        assert db.execute(sql).rowcount
        db.commit()
    found = [await run(books, "month", month, "--data-dir", tmp_path) for month in ("2026-12", MONTH)]

    assert 1 in {done.exit_code for done in found}
    assert problem in "".join(done.stdout for done in found)


def test_spans_begin_and_end_at_midnight_utc():
    assert [at.isoformat()[:16] for at in span_of_month("2027-12")] == ["2027-12-01T00:00", "2028-01-01T00:00"]
    assert [at.isoformat()[:16] for at in span_of_day("2028-02-29")] == ["2028-02-29T00:00", "2028-03-01T00:00"]
    assert span_of_month(None).since.day == 1


@pytest.mark.parametrize(
    "words",
    [("month", "2027"), ("day", "2027-02-30"), ("tool", "--day", "x"), ("day", "9999-12-31"), ("month", "9999-12")],
)
async def test_a_date_of_another_form_is_refused_in_a_sentence(made, words):
    done = await run(books, *words, "--data-dir", made[1])

    assert done.exit_code == 2
    assert "is not written as" in done.stderr


async def test_one_command_checks_everything_and_says_what_it_did_not(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(token(1), 10, cause="grant:x:thanks")
    done = await run(books, "check", "--json", "--data-dir", tmp_path)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["ok"]) == (0, True)
    names = ["ledger", "statements", "receipts", "books", "log", "months", "chain_book", "chain", "balances"]
    assert [one["name"] for one in found["checks"]] == names
    assert "no RPC server is configured" in found["checks"][-2]["note"]
    assert "no service has read the chain" in found["checks"][-1]["note"]
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.charge("call_1", token(1), 2, endpoint="/x")
    done = await run(books, "check", "--no-chain", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert "call_1 was charged 2 credits and has no receipt that says so" in done.stdout
    assert "balances" not in done.stdout


async def test_the_receipts_of_a_follower_are_compared_with_the_ledger_that_it_follows(tmp_path):
    owner, follower = tmp_path / "owner", tmp_path / "follower"
    async with open_ledger(owner / FILE) as ledger, open_ledger(follower / FILE):
        await ledger.mint(token(1), 10, cause="grant:x:thanks")
        await ledger.charge("b:call_1", token(1), 2, endpoint="/x", service="b")
    follows = {"url": "http://127.0.0.1:1", "service": "b", "key_id": "b-1", "secret": "0123456789abcdef" * 4}
    named = {f"TOOLSERVER_LEDGER__{name.upper()}": value for name, value in follows.items()}
    words = ["check", "--no-chain", "--data-dir", str(follower)]

    def do(*more):
        return CliRunner().invoke(books, [*words, *more], env=named)

    alone = await anyio.to_thread.run_sync(do)
    assert (alone.exit_code, "name its folder (--owner)" in alone.stdout) == (0, True)
    beside = await anyio.to_thread.run_sync(do, "--owner", str(owner))
    assert (beside.exit_code, "call_1 was charged 2 credits and has no receipt" in beside.stdout) == (1, True)
