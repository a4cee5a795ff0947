"""Histories of three instances over one server are what the pure rules say, and a fault in the SQL would be seen."""

from contextlib import contextmanager

import pytest

from tests.money.ledger.postgres_history import live
from tests.size import sized
from toolserver.money.ledger import sql_tables
from toolserver.sql import connection, postgres_group_commit
from toolserver.sql.postgres import ServerAway

pytestmark = pytest.mark.live
SEEDS = sized(12, fast=3, long=300)
CAUGHT_WITHIN = 40


async def test_what_is_stored_is_what_the_rules_say_whatever_the_network_does(tmp_path):
    histories = [await live(seed, tmp_path) for seed in range(SEEDS)]

    assert [(h.seed, h.wrong) for h in histories if h.wrong] == []
    for what in ("answered", "refused", "cuts"):
        assert sum(getattr(h, what) for h in histories) > SEEDS, f"too quiet: {what}"


async def test_without_faults_nobody_is_refused_for_the_sake_of_others(tmp_path):
    history = await live(7, tmp_path, faults=False)
    assert (history.wrong, history.failed, history.unknown) == ([], 0, 0)


def _no_locks(patch):
    """Accounts are loaded without a lock."""
    patch.setattr(sql_tables, "lock_accounts", lambda db, needs: None)


def _numbers_before_locks(patch):
    """The block of numbers is taken before the accounts are locked."""
    really, locks = sql_tables.next_numbers, sql_tables.lock_accounts
    taken = {}

    def take_then_lock(db, needs):
        taken[id(db)] = really(db, "ledger_number", "", "")
        return locks(db, needs)

    patch.setattr(sql_tables, "lock_accounts", take_then_lock)
    patch.setattr(sql_tables, "next_numbers", lambda db, *rest: taken.pop(id(db)))


def _no_second_try(patch):
    """What was lost is not run again."""
    patch.setattr(postgres_group_commit, "TRIES", 1)


def _every_lost_commit_counts(patch):
    """A commit whose answer was not heard is taken for one that was done."""
    patch.setattr(postgres_group_commit, "_require_committed", lambda *given: None)


def _half_a_group(patch):
    """The first half of a large group is committed by itself."""
    really = sql_tables.store_state

    def store(db, books):
        really(db, books)
        if len(books.transfers) > 2:
            db.commit()
            db.begin()
            raise ServerAway("in the middle")

    patch.setattr(sql_tables, "store_state", store)


MUTANTS = (
    _no_locks,
    _numbers_before_locks,
    _no_second_try,
    _every_lost_commit_counts,
    _half_a_group,
)


@contextmanager
def mutated(mutant):
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        yield


@pytest.mark.slow("histories under each fault, until one of them shows it")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_"))
async def test_a_fault_would_be_seen(tmp_path, mutant):
    wrong = []
    with mutated(mutant):
        for seed in range(CAUGHT_WITHIN):
            history = await live(seed, tmp_path, faults=mutant is not _no_second_try)
            wrong = history.wrong
            if wrong:
                break
    assert wrong, "no history showed it"


def test_the_lock_is_the_one_that_the_ledger_asks_for():
    assert sql_tables.lock_accounts.__module__ == "toolserver.money.ledger.sql_tables"
    assert connection.NUMBERS >= 128, "a group must fit into a block of numbers"
