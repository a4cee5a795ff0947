"""Placeholders become numbers, and nothing else of a statement changes."""

import pytest

from toolserver.sql.postgres import translate


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ? + ?", "SELECT $1 + $2"),
        ("SELECT ?2, ?1, ?2", "SELECT $2, $1, $2"),
        ("SELECT :b, :a, :b", "SELECT $1, $2, $1"),
        ("SELECT 'what? :a', \"x?\" FROM t -- why? :b", "SELECT 'what? :a', \"x?\" FROM t -- why? :b"),
        ("SELECT 'it''s?', x::text, ?", "SELECT 'it''s?', x::text, $1"),
    ],
)
def test_placeholders_are_numbered(sql, expected):
    assert translate(sql).sql == expected


def test_named_parameters_are_bound_in_the_order_of_their_numbers():
    statement = translate("SELECT :until, :since WHERE :until > 1")
    assert statement.bind({"since": 1, "until": 2, "unused": 3}) == (2, 1)
    assert translate("SELECT ?, ?").bind([1, None]) == (1, None)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (" SELECT 1", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("EXPLAIN UPDATE t SET a=1", True),
        ("UPDATE t SET a=1 RETURNING a", True),
        ("UPDATE t SET a=1", False),
        ("INSERT INTO t SELECT 1", False),
    ],
)
def test_it_is_known_which_statements_give_rows(sql, rows):
    assert translate(sql).gives_rows is rows
