"""A data directory with a ledger's file is served by one process at a time."""

import pytest

from toolserver.money.ledger.store import FILE
from toolserver.serving.directory_lock import hold_directory
from toolserver.settings import Settings


def test_a_second_process_on_the_same_ledger_is_refused_with_what_to_set(tmp_path):
    (tmp_path / FILE).touch()
    settings = Settings(data_dir=tmp_path)
    said = r"another process serves from .* set database_url \(TOOLSERVER_DATABASE_URL\) and redis_url"
    with hold_directory(settings), pytest.raises(SystemExit, match=said), hold_directory(settings):
        pass
    with hold_directory(settings):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [FILE], "nothing is left behind"


def test_what_keeps_no_file_of_money_needs_no_lock(tmp_path):
    shared = Settings(data_dir=tmp_path, database_url="postgresql://db.example/money")
    with hold_directory(shared), hold_directory(shared):
        pass
    free = Settings(data_dir=tmp_path)
    with hold_directory(free), hold_directory(free):
        pass
