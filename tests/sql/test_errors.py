"""Callers of a store catch one failure, whatever the engine; a file that is not ours is a refusal of its own."""

import pytest

from toolserver.errors import ToolserverError
from toolserver.sql.errors import (
    ForeignDatabase,
    MigrationChanged,
    NewerDatabase,
    StorageClosed,
    StorageFailed,
)


def test_a_closed_store_is_a_failed_one():
    with pytest.raises(StorageFailed):
        raise StorageClosed("closed")


def test_a_caller_is_told_to_come_back_and_a_log_why():
    failure = StorageFailed("/var/lib/x.sqlite3: disk I/O error")

    assert (failure.code, failure.status, failure.headers) == ("storage_unavailable", 503, {"Retry-After": "5"})
    assert "sqlite3" not in failure.detail
    assert str(failure) == "/var/lib/x.sqlite3: disk I/O error"


@pytest.mark.parametrize("refusal", [NewerDatabase, ForeignDatabase, MigrationChanged])
def test_a_file_that_is_not_ours_is_not_mistaken_for_a_failure_that_passes(refusal):
    assert issubclass(refusal, ToolserverError)
    assert not issubclass(refusal, StorageFailed)
