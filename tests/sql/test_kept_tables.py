"""The tables that both engines keep: complete, in an order that references allow, and the same page by page."""

import hashlib
import sqlite3
from contextlib import closing

import msgspec
import pytest

from toolserver.sql.kept_tables import (
    LEFT_OUT,
    KeptTable,
    TableFacts,
    decode_key,
    encode_key,
    list_kept_tables,
    read_pages,
    read_table_facts,
    sum_accounts,
)
from toolserver.sql.migrate import migrate
from toolserver.sql.row_seal import TABLES


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        yield db


def fill(db, count):
    for number in range(count):
        account = number + 4
        db.execute("INSERT INTO account VALUES(?, 'token', ?, 1, 0)", (account, 10 + number))
        db.execute(
            "INSERT INTO token(hash, account, ref, issued_at) VALUES(?,?,?,1)",
            (f"{number:064x}", account, f"a{number}"),
        )


def test_every_table_of_money_is_kept_and_what_belongs_to_one_engine_or_process_is_not():
    names = [table.name for table in list_kept_tables()]
    assert set(TABLES) <= set(names)
    assert not LEFT_OUT & set(names)
    assert len(names) == len(set(names))
    assert {"idempotency", "webhook_subscription", "webhook_fire", "oauth_grant", "refund"} <= set(names)


def test_what_others_refer_to_comes_before_them(db):
    names = [table.name for table in list_kept_tables()]
    for name in names:
        for row in db.execute(f"PRAGMA foreign_key_list({name})").fetchall():
            assert names.index(row[2]) <= names.index(name), (row[2], name)


def test_a_table_has_its_columns_in_their_order_and_its_whole_key():
    (token,) = (table for table in list_kept_tables() if table.name == "token")
    assert token.columns[:3] == ("hash", "account", "ref")
    (node,) = (table for table in list_kept_tables() if table.name == "log_node")
    assert node == KeptTable("log_node", ("level", "idx", "hash"), ("level", "idx"))
    assert node.key_of((2, 7, b"x")) == [2, 7]
    assert all(table.key for table in list_kept_tables()), "without a key a move could not go on"


def test_a_key_of_bytes_and_text_is_the_same_when_it_is_read_back():
    assert decode_key(encode_key([1, "\u00e9", b"\x00\xff"])) == [1, "\u00e9", b"\x00\xff"]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_have_every_row_once_in_the_order_of_keys(db, limit):
    (table,) = (table for table in list_kept_tables() if table.name == "log_node")
    rows = [(level, index, bytes([level, index]) * 16) for index in (2, 0, 1) for level in (1, 0)]
    db.executemany("INSERT INTO log_node VALUES(?,?,?)", rows)
    pages = list(read_pages(db, table, limit=limit))
    assert [row for page in pages for row in page] == sorted(rows)
    assert max(map(len, pages)) <= limit
    behind = [row for page in read_pages(db, table, (0, 1), limit) for row in page]
    assert behind == sorted(rows)[2:]


def test_facts_count_the_rows_and_change_with_any_value(db):
    fill(db, 3)
    counted = []
    before = read_table_facts(db, lambda name, rows: counted.append((name, rows)))
    assert counted == [("account", 6), ("token", 3)]
    rows = db.execute("SELECT * FROM token ORDER BY hash").fetchall()
    digest = hashlib.sha256(b"".join(msgspec.msgpack.encode(row) for row in rows)).hexdigest()
    assert before["token"] == TableFacts(3, digest)
    assert before["receipt"] == TableFacts(0, hashlib.sha256().hexdigest())
    db.execute("UPDATE token SET issued_at=2 WHERE account=5")
    after = read_table_facts(db)
    assert {name for name in before if before[name] != after[name]} == {"token"}


def test_accounts_are_summed_by_kind(db):
    fill(db, 3)
    assert sum_accounts(db) == {"issued": [0, 0, 0], "revenue": [0, 0, 0], "suspense": [0, 0, 0], "token": [33, 3, 0]}
