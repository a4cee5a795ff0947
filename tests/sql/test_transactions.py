"""A group is one transaction; an operation that breaks it is found by applying each on its own."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.sql.errors import ConstraintViolated, DatabaseError
from toolserver.sql.group_commit import PendingOperation, WrongOutcomes, run_jobs
from toolserver.sql.sqlite import commit_group, read_each


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE note(word TEXT CHECK (word <> 'forbidden'))")
        yield db


def put(db, words):
    return [db.execute("INSERT INTO note VALUES(?)", (word,)).rowcount for word in words]


def put_twice(db, words):
    return [len(put(db, [word, word])) for word in words]


def forget(db, words):
    put(db, words)
    return []


def group(*operations):
    return [PendingOperation(run, argument, None) for run, argument in operations]


def words(db):
    return [word for (word,) in db.execute("SELECT word FROM note ORDER BY rowid")]


def test_neighbours_share_a_call_and_all_share_a_transaction(db):
    statements = []
    db.set_trace_callback(statements.append)
    outcomes = commit_group(db, group((put, "a"), (put, "b"), (put_twice, "c"), (put, "d")))
    db.set_trace_callback(None)
    assert outcomes == [1, 1, 2, 1]
    assert words(db) == ["a", "b", "c", "c", "d"]
    assert [each for each in statements if not each.startswith("INSERT")] == ["BEGIN IMMEDIATE", "COMMIT"]


@pytest.mark.parametrize(
    ("run", "argument", "kind"), [(put, "forbidden", ConstraintViolated), (forget, "x", WrongOutcomes)]
)
def test_an_operation_that_breaks_its_group_fails_alone_and_leaves_nothing(db, caplog, run, argument, kind):
    first, broken, last = commit_group(db, group((put, "a"), (run, argument), (put, "b")))
    assert (first, type(broken), last) == (1, kind, 1)
    assert words(db) == ["a", "b"]
    assert not db.in_transaction
    assert "tried on its own" in caplog.text


def test_a_transaction_that_cannot_begin_fails_all(db, caplog):
    db.execute("BEGIN")
    outcomes = commit_group(db, group((put, "a"), (put, "b")))
    assert [type(outcome) for outcome in outcomes] == [DatabaseError] * 2


def test_reads_fail_each_for_itself(db):
    def fail(db, arguments):
        raise ValueError("no")

    found = read_each(db, group((put, "a"), (fail, None), (forget, "b")))
    assert found[0] == 1
    assert [type(each) for each in found[1:]] == [ValueError, WrongOutcomes]


def test_a_job_that_raises_takes_only_its_own_writes_back(db):
    def broken(db):
        put(db, ["half"])
        raise ValueError("no")

    db.execute("BEGIN")
    first, failure, last = run_jobs(db, [lambda db: put(db, ["a"]), broken, lambda db: put(db, ["b"])])
    assert (first, type(failure), last) == ([1], ValueError, [1])
    assert words(db) == ["a", "b"]
