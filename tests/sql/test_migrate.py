"""Numbered migrations: applied once, whole, in order, and only to a database we know."""

import sqlite3
from pathlib import Path

import pytest

from toolserver.sql.errors import ForeignDatabase, MigrationChanged, NewerDatabase
from toolserver.sql.migrate import (
    APPLICATION_ID,
    FOLDER,
    Migration,
    migrate,
    migrations,
    statements,
    verify,
)

PUBLISHED = Path(__file__).parent / "published_migrations.txt"  # every text that a database may have, by its SHA-256
FIRST = Migration(1, "first", "CREATE TABLE a(x INTEGER) STRICT;\nINSERT INTO a VALUES(1);\n")
SECOND = Migration(2, "second", "ALTER TABLE a ADD COLUMN y INTEGER;\n")
BROKEN = Migration(2, "broken", "INSERT INTO a VALUES(2);\nINSERT INTO nowhere VALUES(1);\n")


@pytest.fixture
def db():
    db = sqlite3.connect(":memory:", isolation_level=None)
    yield db
    db.close()


def rows(db, table="a"):
    return db.execute(f"SELECT * FROM {table}").fetchall()


def test_our_migrations_are_numbered_and_make_a_sound_database(db):
    steps = migrations()
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert migrate(db) == len(steps)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_new_database_is_no_news_and_an_older_one_is_one_line(db, caplog):
    caplog.set_level("INFO", "toolserver")
    migrate(db, [FIRST])
    assert caplog.messages == []
    migrate(db, [FIRST, SECOND])
    migrate(db, [FIRST, SECOND])
    assert [(r.getMessage(), r.before, r.version) for r in caplog.records] == [("database migrated", 1, 2)]


def test_each_step_is_applied_once(db):
    assert verify(db, []) == 0
    assert migrate(db, [FIRST]) == 1
    assert migrate(db, [FIRST]) == 1
    assert migrate(db, [FIRST, SECOND]) == 2
    assert rows(db) == [(1, None)]
    assert [(n, name) for n, name, *_ in rows(db, "migration")] == [(1, "first"), (2, "second")]


def test_a_step_that_fails_changes_nothing_and_can_be_mended(db):
    migrate(db, [FIRST])
    with pytest.raises(sqlite3.OperationalError):
        migrate(db, [FIRST, BROKEN])
    assert not db.in_transaction
    assert rows(db) == [(1,)]
    assert migrate(db, [FIRST, SECOND]) == 2


def test_a_newer_database_is_refused(db):
    migrate(db, [FIRST, SECOND])
    with pytest.raises(NewerDatabase, match="version 2; this software knows 1"):
        migrate(db, [FIRST])


def test_a_step_is_never_edited_after_it_was_applied(db):
    migrate(db, [FIRST])
    with pytest.raises(MigrationChanged, match="first"):
        migrate(db, [Migration(1, "first", FIRST.sql + "-- better"), SECOND])
    assert rows(db) == [(1,)]


@pytest.mark.parametrize("theirs", ["CREATE TABLE theirs(x)", "PRAGMA application_id=7"])
def test_somebody_elses_database_is_refused(db, theirs):
    db.execute(theirs)
    with pytest.raises(ForeignDatabase):
        migrate(db, [FIRST])


def test_the_database_of_one_application_is_refused_by_another(db):
    migrate(db, [FIRST])
    with pytest.raises(ForeignDatabase):
        migrate(db, [FIRST], application_id=7)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_two_that_start_at_the_same_moment_apply_a_step_once(tmp_path):
    """The slower one looked before the other had committed."""
    one, other = (sqlite3.connect(tmp_path / "x", isolation_level=None) for _ in range(2))

    class Slow:
        """Steps that the other process applies between our look and our first statement."""

        def __len__(self):
            return 1

        def __iter__(self):
            return iter([FIRST])

        def __getitem__(self, part):
            migrate(other, [FIRST])
            return [FIRST][part]

    migrate(one, Slow())
    assert rows(one) == [(1,)]
    one.close()
    other.close()


@pytest.mark.parametrize("names", [["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]])
def test_a_gap_in_the_numbers_is_an_error(tmp_path, names):
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(ValueError, match="not numbered"):
        migrations(tmp_path)


def test_other_files_in_the_folder_are_no_migrations(tmp_path):
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "0001_a.sql").write_text("SELECT 1;")
    assert [step.name for step in migrations(tmp_path)] == ["a"]
    assert len(migrations()) == len(list(FOLDER.glob("*.sql")))


def test_an_update_of_the_files_does_not_change_the_steps_of_a_running_process(tmp_path):
    file = tmp_path / "0001_first.sql"
    file.write_text("CREATE TABLE a(x);\n")
    before = migrations(tmp_path)
    file.write_text("CREATE TABLE b(x);\n")
    (tmp_path / "0002_second.sql").write_text("CREATE TABLE c(x);\n")
    assert migrations(tmp_path) == before


def test_no_published_text_of_a_migration_was_edited():
    """Databases have these checksums. An edited text, be it in a comment, would keep every service from starting."""
    published = [line.split() for line in PUBLISHED.read_text(encoding="utf-8").splitlines()]
    assert len(published) == 59
    for checksum, name in published:
        path = FOLDER / name
        step = migrations(path.parent)[int(path.name[:4]) - 1]
        assert step.was_applied_as(int(path.name[:4]), checksum), f"{name} was edited: add a new step instead"


def test_a_checksum_does_not_depend_on_how_lines_end(tmp_path):
    (tmp_path / "0001_a.sql").write_bytes(b"SELECT 1;\r\nSELECT 2;\r\n")
    (step,) = migrations(tmp_path)
    assert step.checksum == Migration(1, "a", "SELECT 1;\nSELECT 2;\n").checksum


def test_a_trigger_is_one_statement_and_an_unfinished_one_is_an_error():
    script = "CREATE TABLE a(x); -- one\nCREATE TRIGGER t BEFORE UPDATE ON a\nBEGIN SELECT 1; SELECT 2; END;\n"
    assert len(list(statements(script))) == 2
    with pytest.raises(ValueError, match="within a statement"):
        list(statements("CREATE TABLE a("))
