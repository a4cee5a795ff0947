"""Long work on rows: each transaction is sealed, is whole or nothing, and waits for a service that writes."""

import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.postgres import POSTGRES, terms_of
from toolserver.sql.connection import is_shared
from toolserver.sql.errors import StorageFailed
from toolserver.sql.ledger_place import open_maintenance
from toolserver.sql.sealed_file import SealedFile
from toolserver.sql.sqlite import connect


@pytest.fixture(params=["sqlite", POSTGRES])
def place(request, tmp_path):
    return terms_of(tmp_path) if request.param == "postgres" else tmp_path / "ledger.sqlite3"


def write(db):
    db.execute("INSERT INTO closed_month VALUES ('2027-01', 1, 0, '', 0, NULL)")
    return "written"


def count(db):
    return int(db.execute("SELECT count(*) FROM closed_month").fetchone()[0])


def test_what_a_job_wrote_is_there_and_what_one_wrote_that_failed_is_not(place):
    def fail(db):
        write(db)
        raise KeyError

    with open_maintenance(place) as transact:
        with pytest.raises(KeyError):
            transact(fail)
        assert transact(count) == 0
        assert transact(write) == "written"
    with open_maintenance(place) as transact:
        assert transact(count) == 1
        assert transact(is_shared) is not isinstance(place, Path)


def test_a_refusal_of_the_tables_is_not_tried_again(place):
    tried = []

    def write_twice(db):
        tried.append(db)
        write(db)
        write(db)

    with open_maintenance(place) as transact, pytest.raises(StorageFailed):
        transact(write_twice)
    assert len(tried) == 1


def test_what_is_written_to_a_file_is_sealed(tmp_path):
    path = tmp_path / "ledger.sqlite3"
    with open_maintenance(path) as transact:
        transact(write)
    with closing(sqlite3.connect(path)) as db:
        assert SealedFile(path).find_rewritten(db) == []


def test_who_stands_in_the_way_is_waited_for_and_not_for_ever(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite3"
    impatient = open_maintenance(path, tries=2, connect=partial(connect, busy_ms=50))
    with impatient as transact, closing(connect(path)) as service:
        service.execute("BEGIN IMMEDIATE")
        transact_at_once = transact
        monkeypatch.setattr(time, "sleep", lambda s: service.execute("COMMIT"))
        assert transact_at_once(write) == "written"
        service.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(time, "sleep", lambda s: None)
        with pytest.raises(StorageFailed):
            transact_at_once(count)
