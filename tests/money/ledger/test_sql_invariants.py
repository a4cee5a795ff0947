"""Every rule of the books finds what breaks it: the file is damaged on purpose, past its own guards."""

import sqlite3
from contextlib import closing

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.money.ledger.sql_invariants import RULES, SHOWN, find_breaches, find_problems, read_totals
from toolserver.money.ledger.store import FILE, open_ledger

RICH = token(1)
NOW = int(START.timestamp() * 1000)

GUARDS = (
    *("transfer_is_never_changed", "transfer_is_never_deleted"),
    *("reservation_moves_towards_no_charge", "reservation_is_never_deleted", "reservation_keeps_its_allowance"),
)
INDEXES = ("transfer_settled_once", "transfer_reversed_once", "transfer_paid_once")

AS_TRANSFERS = "a reservation is what its transfers say"

# In the books below: 1 mint · 2 c1 charged at once · 3 c2 open · 4 c3 pending, 5 posted · 6 c4 pending, 7 voided
# · 8 c5 charged at once, 9 reversed. Account 4 is the token's.
ALLOWANCE = """INSERT INTO allowance(id, hash, ref, parent, name, credits, spent, day, spent_today, created_at)
  VALUES('a', '{0}', 'r', (SELECT {1} FROM token), 'n', 9, {2}, 0, 0, 0);"""

MONTH = "INSERT INTO closed_month VALUES('2099-01', 4000000000000, {}, '', 0, NULL);"
REMOVED = "INSERT INTO removed_calls VALUES(4, '', {}, 0, 1);"

DAMAGE = [
    ("no transfer is missing", "DELETE FROM transfer WHERE seq=2"),
    ("debits equal credits", "UPDATE account SET credits=credits+1 WHERE id=4"),
    ("an account is the sum of its transfers", "UPDATE account SET pending=pending+1 WHERE id=4"),
    ("an account is the sum of its transfers", "UPDATE transfer SET amount=1 WHERE seq=3"),
    ("no account is overdrawn", "UPDATE account SET debits=999 WHERE id=4"),
    ("no account is overdrawn", "UPDATE account SET pending=-1 WHERE id=4"),
    ("a transfer is settled at most once", "INSERT INTO transfer VALUES(10, 'void', 4, 2, 1, 4, NULL, 0)"),
    ("a transfer is settled at most once", "INSERT INTO transfer VALUES(10, 'reverse', 2, 4, 1, 8, NULL, 0)"),
    ("a settlement moves what was set aside", "UPDATE transfer SET amount=2 WHERE seq=5"),
    ("a settlement moves what was set aside", "UPDATE transfer SET debit=4, credit=2 WHERE seq=9"),
    ("a settlement moves what was set aside", "UPDATE transfer SET resolves=2 WHERE seq=5"),
    ("a settlement moves what was set aside", "UPDATE transfer SET resolves=99 WHERE seq=5"),
    (
        "a reservation is what its transfers say",
        "UPDATE reservation SET state='posted', settled_at=1 WHERE call_id='c2'",
    ),
    (
        "a reservation is what its transfers say",
        "UPDATE reservation SET state='open', settled_at=NULL WHERE call_id='c1'",
    ),
    (AS_TRANSFERS, "UPDATE reservation SET state='voided', reason='x' WHERE call_id='c3'"),
    (AS_TRANSFERS, "UPDATE reservation SET state='reversed' WHERE call_id='c4'"),
    (
        "a reservation is what its transfers say",
        "UPDATE reservation SET state='posted', reason=NULL WHERE call_id='c5'",
    ),
    (AS_TRANSFERS, "UPDATE reservation SET credits=9 WHERE call_id='c3'"),
    (AS_TRANSFERS, "UPDATE reservation SET transfer=99 WHERE call_id='c3'"),
    ("every charge belongs to one reservation", "DELETE FROM reservation WHERE call_id='c1'"),
    ("every charge belongs to one reservation", "UPDATE reservation SET transfer=2 WHERE call_id='c5'"),
    ("credits come from a cause", "UPDATE transfer SET cause=NULL WHERE seq=1"),
    ("credits come from a cause", "UPDATE transfer SET cause='x' WHERE seq=2"),
    ("a token has one account and an account one token", "DELETE FROM token"),
    ("a token has one account and an account one token", "UPDATE token SET account=1"),
    ("an allowance has spent what its calls cost", ALLOWANCE.format("f" * 64, "hash", 1)),
    (
        "an allowance spends its owner's credits",
        "INSERT INTO account(id, kind) VALUES(5, 'token');"
        f"INSERT INTO token(hash, account, ref, issued_at) VALUES('{'e' * 64}', 5, 'acct_e', 0);"
        + ALLOWANCE.format("f" * 64, "max(hash)", 1)
        + "UPDATE reservation SET allowance='a', day=0 WHERE call_id='c1'",
    ),
    (
        "a token with limits has spent today what its calls of the day cost",
        "INSERT INTO owner_limits(account, day, spent_today, changed_at) SELECT 4, day, 1, 0 FROM reservation"
        " WHERE call_id='c2'",
    ),
    ("no reservation is open past its time", "UPDATE reservation SET expires_at=1 WHERE call_id='c2'"),
    ("a closed month keeps its transfers", MONTH.format(8)),
    ("a closed month keeps its transfers", MONTH.format(9) + REMOVED.format(1)),
    ("no transfer is missing", REMOVED.format(1)),
    ("an account is the sum of its transfers", MONTH.format(10) + REMOVED.format(1)),
    ("debits equal credits", REMOVED.format(1)),
    ("references lead somewhere", "UPDATE reservation SET account=99 WHERE call_id='c1'"),
    ("the file is sound", "UPDATE reservation SET state='lost' WHERE call_id='c1'"),
]


@pytest.fixture
async def file(tmp_path):
    async with open_ledger(tmp_path / FILE, ManualClock(START)) as ledger:
        await ledger.mint(RICH, 100, cause="rich")
        await ledger.charge("c1", RICH, 1, endpoint="/x")
        await ledger.reserve("c2", RICH, 2, endpoint="/x", ttl_s=60)
        for call, reason in (("c3", None), ("c4", "5xx")):
            await ledger.reserve(call, RICH, 1, endpoint="/x", ttl_s=60)
            await ledger.settle(call, no_charge=reason)
        await ledger.charge("c5", RICH, 1, endpoint="/x")
        await ledger.settle("c5", no_charge="cancelled")
        yield ledger.file


async def test_sound_books_have_no_breach_and_a_total(file):
    assert await file.apart(lambda db: find_breaches(db, NOW)) == []
    assert await file.apart(read_totals) == (1, 100, 2, 2, 96, 9)


async def test_empty_books_are_sound(tmp_path):
    async with open_ledger(tmp_path / "empty") as ledger:
        assert await ledger.check() == []
        assert await ledger.file.apart(read_totals) == (0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(("rule", "damage"), DAMAGE)
async def test_damage_is_found(file, rule, damage):
    with closing(sqlite3.connect(file.path, isolation_level=None)) as db:  # one that checks no references
        db.execute("PRAGMA ignore_check_constraints=ON")
        for guard in GUARDS:
            db.execute(f"DROP TRIGGER {guard}")
        for index in INDEXES:
            db.execute(f"DROP INDEX {index}")
        db.executescript(damage)
    assert rule in {breach.rule for breach in await file.apart(lambda db: find_breaches(db, NOW))}


async def test_calls_whose_rows_were_removed_stay_in_the_totals(file):
    with closing(sqlite3.connect(file.path, isolation_level=None)) as db:
        db.execute("INSERT INTO removed_calls VALUES(4, '', 7, 2, 3)")
        assert read_totals(db) == (1, 100, 2 + 5, 2, 96, 9 + 3)


async def test_credits_that_were_taken_back_are_not_issued(file):
    with closing(sqlite3.connect(file.path, isolation_level=None)) as db:
        db.execute("INSERT INTO transfer VALUES(10, 'posted', 4, 1, 5, NULL, 'refund:1', 0)")
        assert read_totals(db) == (1, 95, 2, 2, 96, 10)


async def test_a_reservation_may_be_open_until_its_time_and_in_a_backup_for_ever(file):
    ends = NOW + 60_000
    assert await file.apart(lambda db: find_breaches(db, ends - 1)) == []
    assert await file.apart(lambda db: find_breaches(db, ends)) == [("no reservation is open past its time", "c2")]
    assert await file.apart(find_problems) == []


async def test_the_problems_of_a_backup_are_named_by_rule_and_place_and_at_most_five_of_each_rule(file):
    rule = "a token has one account and an account one token"
    with closing(sqlite3.connect(file.path, isolation_level=None)) as db:
        for number, found in ((5, 1), (6, 2), (7, 3), (8, 4), (9, 5), (10, 5)):
            db.execute("INSERT INTO account(id, kind) VALUES(?, 'token')", (number,))
            assert find_problems(db) == [f"{rule}: account {each}" for each in range(5, 5 + found)]
        assert SHOWN == 5


@proves("ledger.sums")
def test_every_rule_is_broken_by_some_damage():
    assert {rule for rule, _ in DAMAGE} >= set(RULES)
