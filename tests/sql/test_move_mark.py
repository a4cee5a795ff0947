"""The mark of a move in a data directory: what it says, and what it keeps from being opened."""

import pytest

from toolserver.sql.move_mark import (
    COMPLETE,
    COPYING,
    MARK_FILE,
    LedgerMoved,
    MoveMark,
    forget_move,
    read_move,
    require_not_moved,
    show_server,
    write_move,
)

URL = "postgresql://me:hunter2@db.example:5433/money?search_path=a"


def test_a_folder_without_a_mark_may_be_opened(tmp_path):
    assert read_move(tmp_path) is None
    require_not_moved(tmp_path)


def test_a_mark_is_read_as_it_was_written_and_names_no_password(tmp_path):
    mark = MoveMark.begin(URL)
    write_move(tmp_path, mark)
    assert read_move(tmp_path) == mark
    assert (mark.to, mark.state) == ("postgresql://db.example:5433/money", COPYING)
    assert "hunter2" not in (tmp_path / MARK_FILE).read_text()
    assert (tmp_path / MARK_FILE).stat().st_mode & 0o777 == 0o600
    assert MoveMark.begin(URL).id != mark.id


def test_while_a_ledger_is_moved_and_after_it_says_what_to_do(tmp_path):
    mark = MoveMark.begin(URL)
    write_move(tmp_path, mark)
    with pytest.raises(LedgerMoved, match=r"is being moved to postgresql://db\.example:5433/money: run `toolserver db"):
        require_not_moved(tmp_path)
    write_move(tmp_path, mark.complete())
    assert mark.complete() == MoveMark(mark.id, mark.to, COMPLETE)
    with pytest.raises(LedgerMoved, match=r"was moved to postgresql://db\.example:5433/money: set database_url"):
        require_not_moved(tmp_path)


def test_a_move_that_goes_on_elsewhere_is_the_same_move():
    mark = MoveMark.begin(URL)
    assert mark.go_to("postgres://other.example/x") == MoveMark(mark.id, "postgres://other.example/x")


def test_a_mark_that_was_forgotten_keeps_nothing_from_being_opened(tmp_path):
    write_move(tmp_path, MoveMark.begin(URL))
    forget_move(tmp_path)
    forget_move(tmp_path)
    require_not_moved(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"id": 1}'])
def test_a_mark_that_cannot_be_read_keeps_the_file_closed(tmp_path, text):
    (tmp_path / MARK_FILE).write_text(text)
    with pytest.raises(LedgerMoved, match="cannot be read"):
        require_not_moved(tmp_path)


def test_a_server_is_shown_without_what_is_secret():
    assert show_server("postgresql://db.example/money") == "postgresql://db.example/money"
    assert show_server("postgresql:///money?host=/run/x&password=y") == "postgresql:///money"
