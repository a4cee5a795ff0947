"""Marks only rise, in a file and in a database: there they are those of all instances, and each file is a witness."""

import threading
from contextlib import closing

import pytest

from tests.postgres import POSTGRES, WORK_S, run_sql, terms_of, url_of
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import HighWater, MarksBroken, SharedMarks, find_later
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import migrate_server

GONE = PostgresTerms("postgresql://nobody@127.0.0.1:9/none", connect_s=0.2, work_s=0.2)
live = pytest.mark.live


@pytest.fixture
def shared(tmp_path):
    """Makes the marks of an instance, which has a folder of its own."""
    terms = terms_of(tmp_path)
    with closing(PostgresConnection(terms)) as db:
        migrate_server(db)
    return lambda name: SharedMarks(tmp_path / name, terms)


@pytest.fixture(params=["file", POSTGRES])
def make(request, tmp_path):
    """Makes the marks of one data directory, on each engine."""
    if request.param == "file":
        return lambda: HighWater(tmp_path / "one")
    found = request.getfixturevalue("shared")
    return lambda: found("one")


def test_a_mark_is_kept_by_name_and_never_falls(make):
    marks = make()
    assert marks.read("address") is None
    assert [marks.raise_to("address", number) for number in (5, 3, 7)] == [5, 5, 7]
    marks.raise_to("rows", 1)
    assert make().read_all() == {"address": 7, "rows": 1}


def test_a_rule_replaces_a_mark_by_what_it_makes_of_the_one_before(make):
    assert make().change("log", lambda before: {"size": 1, "before": before}) == {"size": 1, "before": None}
    assert make().change("log", lambda before: {**before, "size": 2}) == {"size": 2, "before": None}


def test_a_rule_that_fails_changes_nothing(make):
    make().raise_to("n", 1)
    with pytest.raises(ZeroDivisionError):
        make().change("n", lambda before: 1 // 0)
    assert make().read("n") == 1


def test_threads_that_raise_at_the_same_time_lose_nothing(make):
    def count():
        for _ in range(5):
            make().change("n", lambda before: (before or 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make().read("n") >= 15  # in a database a rule may be asked again


@live
def test_what_one_instance_raises_all_have_and_each_goes_on_behind_it(shared):
    one, other = shared("one"), shared("other")
    one.raise_to("address", 64)
    assert other.read("address") == 64
    assert other.change("address", lambda before: before + 64) == 128
    assert one.read("address") == 128
    assert (HighWater(one.path.parents[1]).read("address"), HighWater(other.path.parents[1]).read("address")) == (
        64,
        128,
    )


@live
def test_instances_that_raise_a_mark_at_the_same_time_do_so_one_after_the_other(shared):
    one, other = shared("one"), shared("other")
    one.change("n", lambda before: 0)
    second = threading.Thread(target=other.change, args=("n", lambda before: before + 1))

    def count_slowly(before):
        if not second.ident:
            second.start()
        second.join(0.3)
        return before + 1

    one.change("n", count_slowly)
    second.join()
    assert one.read("n") == 2


@live
def test_a_database_that_comes_back_from_a_backup_does_not_lower_what_a_file_has(shared, tmp_path):
    one, other = shared("one"), shared("other")
    one.change("log", lambda _: {"size": 100, "root": "aa"})
    run_sql('UPDATE mark SET value = \'{"size": 40, "root": "bb"}\'', url_of(tmp_path))
    assert other.read("log")["size"] == 40
    assert one.read("log") == {"size": 100, "root": "aa"}
    one.change("log", lambda before: before)
    assert other.read("log") == {"size": 100, "root": "aa"}, "the file has told the others"


@live
def test_a_mark_in_the_database_that_cannot_be_read_is_not_begun_anew(shared, tmp_path):
    one = shared("one")
    one.raise_to("address", 64)
    run_sql("UPDATE mark SET value = '{'", url_of(tmp_path))
    for use in (one.read_all, lambda: one.raise_to("address", 1)):
        with pytest.raises(MarksBroken, match="not JSON"):
            use()


@pytest.mark.parametrize("use", [lambda marks: marks.read("address"), lambda marks: marks.raise_to("address", 5)])
def test_without_the_database_nothing_is_read_or_raised(tmp_path, use):
    pytest.importorskip("asyncpg")
    HighWater(tmp_path).raise_to("address", 3)
    with pytest.raises(StorageFailed, match="marks in the database"):
        use(SharedMarks(tmp_path, GONE))
    assert HighWater(tmp_path).read("address") == 3


@live
def test_a_pooler_that_gives_each_transaction_another_connection_is_enough(shared, tmp_path):
    pooled = PostgresTerms(url_of(tmp_path), cached=0, connect_s=WORK_S, work_s=WORK_S)
    assert SharedMarks(tmp_path / "pooled", pooled).raise_to("address", 9) == 9
    assert shared("one").read("address") == 9


LONG, SHORT = {"size": 100, "root": "aa"}, {"size": 40, "root": "bb"}


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        (None, None, None),
        (None, 5, 5),
        (7, 5, 7),
        (LONG, SHORT, LONG),
        (LONG, {**SHORT, "part": 2}, {**SHORT, "part": 2}),
        ({**LONG, "part": 2}, {**SHORT, "part": 2}, {**LONG, "part": 2}),
    ],
)
def test_of_two_the_later_one_counts(one, other, later):
    assert find_later(one, other) == later
    assert find_later(other, one) == later


@pytest.mark.parametrize(("one", "other"), [(1, LONG), (LONG, {"root": "aa"}), (1, "1")])
def test_values_that_cannot_be_compared_are_said_to_be_broken(one, other):
    with pytest.raises(MarksBroken, match="cannot be compared"):
        find_later(one, other)
