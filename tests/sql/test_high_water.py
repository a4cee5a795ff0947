"""Marks outside the database only rise, whoever raises them, and are on the disk."""

import threading

import pytest

from toolserver.sql.high_water import FILE, HighWater, MarksBroken


def test_a_mark_is_kept_by_name_and_never_falls(tmp_path):
    marks = HighWater(tmp_path)
    assert marks.read("address") is None
    assert [marks.raise_to("address", number) for number in (5, 3, 7)] == [5, 5, 7]
    marks.raise_to("rows", 1)
    assert (HighWater(tmp_path).read("address"), HighWater(tmp_path).read("rows")) == (7, 1)


def test_a_rule_replaces_a_mark(tmp_path):
    marks = HighWater(tmp_path)
    assert marks.change("log", lambda before: {"size": 1, "before": before}) == {"size": 1, "before": None}
    assert marks.read("log") == {"size": 1, "before": None}


def test_threads_that_raise_at_the_same_time_lose_nothing(tmp_path):
    def count():
        for _ in range(50):
            HighWater(tmp_path).change("n", lambda before: (before or 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert HighWater(tmp_path).read("n") == 200


@pytest.mark.parametrize("text", ["", "{", "[]", "1"])
def test_a_broken_file_is_not_begun_anew(tmp_path, text):
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text)
    with pytest.raises(MarksBroken):
        HighWater(tmp_path).raise_to("address", 1)
    assert (tmp_path / FILE).read_text() == text
