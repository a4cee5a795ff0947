"""SQL and connections stand in stores only, so that a second database is a second store."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.code import modules

STORE = re.compile(r"(.*_)?store|sql.*|postgres.*")
DRIVERS = frozenset({"sqlite3", "aiosqlite", "asyncpg"})
SQL = re.compile(
    r"\s*(SELECT\s.+\sFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(UNIQUE\s+)?(TABLE|INDEX)\s"
    r"|ALTER\s+TABLE\s|DROP\s+TABLE\s|PRAGMA\s)",
    re.DOTALL,
)


def is_store(name: str) -> bool:
    """True for the modules that may hold SQL."""
    return name.startswith("toolserver.sql.") or STORE.fullmatch(name.rpartition(".")[2]) is not None


def database_in(tree: ast.AST) -> Iterator[str]:
    """Each sign of a database: SQL text, a statement that is run, a driver that is imported, a connection passed on."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if SQL.match(text):
                yield f"line {node.lineno}: SQL"
            case ast.Call(func=ast.Attribute(attr="execute" | "executemany" | "executescript")):
                yield f"line {node.lineno}: a statement is run"
            case ast.Import(names=names) if {alias.name for alias in names} & DRIVERS:
                yield f"line {node.lineno}: a driver is imported"
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in DRIVERS:
                yield f"line {node.lineno}: a driver is imported"
            case ast.Lambda(args=ast.arguments(args=[ast.arg(arg="db"), *_])):
                yield f"line {node.lineno}: a function over a connection"


def test_sql_and_connections_stand_in_stores_only():
    found = {name: list(database_in(m.tree)) for name, m in modules().items() if not is_store(name)}

    assert {name: signs for name, signs in found.items() if signs} == {}


def test_each_sign_of_a_database_is_seen():
    text = """
import sqlite3
from aiosqlite import Connection
db.execute(statement)
SQL = "SELECT a FROM b"
store.run(lambda db: db)
"""
    assert len(list(database_in(ast.parse(text)))) == 5
    assert list(database_in(ast.parse("'Select a tool from the list'; run(lambda x: x)"))) == []
