"""What differs between the engines, written once: each form on the engine that it is for."""

import sqlite3
import threading
from contextlib import closing

import anyio
import pytest

from tests.money.ledger.ledgers import opened_file
from toolserver.sql.connection import (
    among,
    among_values,
    hold_alone,
    hold_together,
    in_order,
    insert,
    is_shared,
    lock_rows,
    next_numbers,
    pairs,
)


class Server:
    """Writes down what a server would be asked."""

    shared, in_transaction = True, True

    def __init__(self, *rows):
        self.rows, self.asked, self.given = rows, [], []

    def execute(self, sql, parameters=()):
        self.asked.append(sql)
        self.given.append(parameters)
        return Answer(self.rows)


class Answer(list):
    rowcount = 0

    def fetchone(self):
        return self[0]

    def fetchall(self):
        return list(self)


@pytest.fixture
def file():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, word TEXT)")
        db.execute("INSERT INTO t VALUES(1, 'a'), (2, 'b'), (5, 'c')")
        yield db


def test_a_file_belongs_to_one_process_and_a_server_to_many(file):
    assert (is_shared(file), is_shared(Server())) == (False, True)


def test_one_of_several_values_is_one_parameter_on_both(file):
    condition, values = among(file, "word", ["a", "c", "x"])
    assert file.execute(f"SELECT id FROM t WHERE {condition}", (values,)).fetchall() == [(1,), (5,)]
    assert among(Server(), "word", ("a", "c")) == ("word = ANY(?)", ["a", "c"])


def test_pairs_are_a_table_of_two_columns_on_both(file):
    asked, parameters = pairs(file, [("a", "b"), ("c", "d")])
    assert file.execute(f"SELECT b, a FROM {asked}", parameters).fetchall() == [("b", "a"), ("d", "c")]
    asked, parameters = pairs(Server(), [("a", "b"), ("c", "d")])
    assert (asked.startswith("unnest("), parameters) == (True, (["a", "c"], ["b", "d"]))


def test_a_server_gets_all_rows_in_one_statement_as_an_array_for_each_column(file):
    rows, types = [(number, f"w{number}") for number in range(10, 210)], "bigint text"
    server = Server()
    assert insert(server, "INSERT INTO t VALUES", rows, "ON CONFLICT DO NOTHING", types=types) == 0
    arrays = "CAST(? AS bigint[]), CAST(? AS text[])"
    assert server.asked == [f"INSERT INTO t SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"]
    assert server.given == [[[number for number, _ in rows], [word for _, word in rows]]]
    assert insert(server, "INSERT INTO t VALUES", [], types=types) == 0
    assert len(server.asked) == 1
    assert insert(file, "INSERT INTO t VALUES", rows, "ON CONFLICT DO NOTHING", types=types) == 200
    assert insert(file, "INSERT INTO t VALUES", [*rows, (1, "x")], "ON CONFLICT DO NOTHING") == 0
    assert file.execute("SELECT * FROM t WHERE id >= 10").fetchall() == rows


def test_rows_are_locked_in_the_order_of_their_ids_where_others_write(file):
    server = Server((3,), (7,))
    assert lock_rows(server, "SELECT id FROM t", ()) == {3, 7}
    assert server.asked == ["SELECT id FROM t ORDER BY id FOR NO KEY UPDATE"]
    assert lock_rows(file, "no statement at all", ()) is None


def test_new_numbers_follow_the_greatest_or_come_from_a_sequence(file):
    assert next_numbers(file, "n", "SELECT max(id) FROM t", "SELECT max(id) FROM t WHERE id > 9") == [6, 1]
    assert next_numbers(Server((2048,)), "n", "SELECT max(id) FROM t", "SELECT max(id) FROM t") == [2048, 2048]


def test_only_a_file_is_given_the_order_of_joins(file):
    sql = "SELECT 1 FROM t a CROSS JOIN t b ON a.id = b.id"
    assert in_order(file, sql) == sql
    assert in_order(Server(), sql) == "SELECT 1 FROM t a JOIN t b ON a.id = b.id"


@pytest.mark.live
@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        (hold_alone, hold_alone, ["first", "second"]),
        (hold_together, hold_alone, ["first", "second"]),
        (hold_alone, hold_together, ["first", "second"]),
        (hold_together, hold_together, ["second", "first"]),
    ],
)
async def test_who_holds_a_name_alone_has_it_until_the_transaction_ends(tmp_path, first, second, order):
    seen, arrived, entered, go_on = [], threading.Event(), threading.Event(), threading.Event()

    def hold_long(db):
        first(db, "room")
        arrived.set()
        assert go_on.wait(20)
        seen.append("first")

    def hold_after(db):
        second(db, "room")
        seen.append("second")
        entered.set()

    async with opened_file("postgres", tmp_path) as one, opened_file("postgres", tmp_path) as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.alone, hold_long)
            await anyio.to_thread.run_sync(arrived.wait)
            tasks.start_soon(other.alone, hold_after)
            await anyio.to_thread.run_sync(entered.wait, 20.0 if order[0] == "second" else 0.3)
            go_on.set()
    assert seen == order


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 31, 33, 64, 65, 150])
def test_values_are_asked_for_in_statements_of_a_few_sizes(file, count):
    values = [bytes([number]) for number in range(count)]
    file.execute("CREATE TABLE named(name BLOB) STRICT")
    insert(file, "INSERT INTO named VALUES", [(bytes([number]),) for number in range(200)])
    wanted, parameters = among_values(file, "name", values)
    assert sorted(name for (name,) in file.execute(f"SELECT name FROM named WHERE {wanted}", parameters)) == values
    assert wanted.count("?") == len(parameters) in (1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert among_values(Server(), "name", values) == ("name = ANY(?)", (values,))
