"""A member that a source gave before and that all rows now lack is named; one that is null by chance is not."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from tests.calls.parts import number_source
from toolserver.upstream.member_watch import (
    FORGET_S,
    LEAST_ROWS_OF_LISTS,
    LEAST_SEEN,
    LIST,
    MOST_SEEN,
    QUESTIONS,
    SAMPLE,
    SAVE_EVERY_S,
    MemberCount,
    MemberWatch,
    count_members,
)

START = datetime(2027, 1, 15, 8, tzinfo=UTC)
SOURCE, OTHER = number_source("Test.one"), number_source("Test.other")


class Row(NamedTuple):
    name: str
    price: float | None
    tags: tuple[str, ...] = ()
    place: Any = None


class Answer(NamedTuple):
    rows: tuple[Row, ...]
    stamp: datetime | None = START


def prices(*values: float | None) -> tuple[Row, ...]:
    return tuple(Row(f"row {number}", value) for number, value in enumerate(values))


def see(watch: MemberWatch, value: Any, after_s: float = 0, source=SOURCE, key="q") -> tuple[str, ...]:
    """What the watch says is missing from an answer to a query with default arguments."""
    watch.learn(source, key, value, START + timedelta(seconds=after_s))
    return watch.list_missing(source, value)


def lived(*answers: Any, save=None) -> MemberWatch:
    watch = MemberWatch(save)
    assert [see(watch, answer) for answer in answers] == [()] * len(answers)
    return watch


def test_rows_are_counted_wherever_they_are_and_an_empty_text_is_no_value():
    inner = Row("", None, ("a",), place=Row("b", 2.0))
    assert count_members(Answer((inner, Row("c", 3.0))), most=None) == {
        f"Answer.rows{LIST}": (1, 1),
        "Answer.stamp": (1, 1),
        "Row.name": (2, 3),
        "Row.price": (2, 3),
        f"Row.tags{LIST}": (1, 3),
        "Row.place": (1, 3),
    }
    assert count_members({"a": Row("a", 1.0), "b": [Row("b", None)]}, most=None)["Row.price"] == (1, 2)
    for nothing in (None, 7, "text", START, (), (1, 2), {"a": 1}):
        assert count_members(nothing, most=None) == {}


def test_of_long_lists_a_sample_from_everywhere_is_counted():
    rows = prices(*range(SAMPLE * 3))
    assert count_members(rows, most=SAMPLE)["Row.price"] == (SAMPLE, SAMPLE)
    assert count_members(rows[: SAMPLE + 1], most=SAMPLE)["Row.price"] == (51, 51)


def test_a_member_that_all_rows_had_is_missing_from_the_first_answer_without_it():
    watch = lived(prices(*range(LEAST_SEEN)))
    assert see(watch, prices(None, None)) == ("price",)
    assert see(watch, prices(None, None), 60) == ("price",)
    assert watch.list_gone() == [("Test.one", "Row.price", START.timestamp())]
    assert see(watch, prices(None, 1.0), 120) == ()
    assert watch.list_gone() == []


def test_too_few_earlier_rows_prove_nothing():
    watch = lived(prices(*range(LEAST_SEEN - 1)))
    assert see(watch, prices(None, None, None, None)) == ()


def test_a_single_record_is_believed_after_fifty_of_them():
    assert see(lived(*[Row("a", 1.0)] * 48), Row("a", None)) == ()
    assert see(lived(*[Row("a", 1.0)] * 50), Row("a", None)) == ("price",)


def test_a_member_that_a_list_rarely_has_is_missing_only_from_a_long_list():
    half = prices(*[1.0, None] * 50)
    assert see(lived(half), prices(*[None] * 9)) == ()
    assert see(lived(half), prices(*[None] * 10)) == ("price",)
    assert see(lived(prices(*[1.0] * 2, *[None] * 98)), prices(*[None] * 300)) == ()
    assert see(lived(prices(None, *[1.0] * 999)), prices(*[None] * 4)) == ()


def test_what_never_had_a_value_is_not_missing():
    assert see(lived(*[prices(*[None] * 50)] * 5), prices(*[None] * 50)) == ()


def test_a_list_that_is_empty_in_some_rows_is_no_missing_member_but_in_all_of_many_it_is():
    tagged = tuple(Row("a", 1.0, ("x",)) for _ in range(50))
    assert see(lived(tagged), prices(*range(LEAST_ROWS_OF_LISTS - 1))) == ()
    assert see(lived(tagged), prices(*range(LEAST_ROWS_OF_LISTS))) == ("tags",)


def test_the_rows_outside_the_sample_are_read_before_a_member_is_called_missing():
    watch = lived(prices(*range(SAMPLE)))
    only_one = prices(*[None] * SAMPLE, None, 1.0)
    assert count_members(only_one, most=SAMPLE)["Row.price"][0] == 0
    assert see(watch, only_one) == ()


def test_a_null_that_comes_every_night_is_reported_once():
    watch = lived(*[Row("a", 1.0)] * 60)
    assert see(watch, Row("a", None)) == ("price",)
    for _ in range(30):
        see(watch, Row("a", None))
    assert see(watch, Row("a", 1.0)) == ()
    assert see(watch, Row("a", None)) == ()


def test_a_caller_s_own_query_is_not_counted_but_told_what_the_usual_ones_lack():
    watch = lived(prices(*range(LEAST_SEEN)))
    assert watch.list_missing(SOURCE, prices(None)) == ()
    see(watch, prices(None, None))
    assert watch.list_missing(SOURCE, prices(None)) == ("price",)
    assert watch.list_missing(SOURCE, prices(3.0, None)) == ()
    assert watch.list_missing(SOURCE, ()) == ()
    assert watch.list_missing(OTHER, prices(None)) == ()


def test_each_query_has_its_own_usual():
    watch = lived(prices(*range(50)))
    for _ in range(5):
        assert see(watch, prices(*[None] * 50), key="another") == ()


def test_a_member_gone_for_a_season_is_a_usual_null():
    watch = lived(prices(*range(50)))
    assert see(watch, prices(None, None), FORGET_S - 1) == ("price",)
    assert see(watch, prices(None, None), FORGET_S + 1) == ()
    assert see(watch, prices(None, None), FORGET_S + 2) == ()


def test_a_restart_keeps_what_was_usual_and_what_is_missing():
    rows: dict[tuple[str, str], Any] = {}

    def save(source, key, at, members):
        rows[source, key] = (source, key, at, members)

    see(lived(prices(*range(50)), save=save), prices(None, None), 60)
    watch = MemberWatch(save)
    watch.restore(rows.values())
    assert watch.list_missing(SOURCE, prices(None)) == ("price",)
    assert see(watch, prices(1.0), 120) == ()
    assert rows["Test.one", "q"][3]["Row.price"]["lacking"] == 0


def test_counts_are_saved_at_once_when_a_member_goes_or_comes_and_otherwise_now_and_then():
    saved: list[float] = []
    watch = MemberWatch(lambda source, key, at, members: saved.append(at - START.timestamp()))
    good, bad = prices(*range(50)), prices(*[None] * 50)
    for at, value in ((0, good), (60, good), (120, bad), (180, bad), (240, good), (240 + SAVE_EVERY_S, good)):
        see(watch, value, at)
    assert saved == [0, 120, 240, 240 + SAVE_EVERY_S]


def test_newer_answers_weigh_more_and_a_single_null_is_never_forgotten():
    count = MemberCount(filled=MOST_SEEN - 1, seen=MOST_SEEN)
    count.add(1, 1, 0.0)
    assert (count.filled, count.seen) == (MOST_SEEN // 2, MOST_SEEN // 2 + 1)


def test_what_is_remembered_is_bounded():
    saved: dict[str, Any] = {}
    watch = MemberWatch(lambda source, key, at, members: saved.update({key: members}))
    for number in range(QUESTIONS + 1):
        see(watch, prices(*range(50)), key=str(number))
    assert see(watch, prices(*[None] * 50), key="0") == ()
    assert see(watch, prices(*[None] * 50), key=str(QUESTIONS)) == ("price",)


def test_it_is_logged_once_when_a_member_goes_and_once_when_it_is_back(caplog):
    watch = lived(prices(*range(50)))
    for value in (None, None, 1.0, 1.0):
        see(watch, prices(value, value))
    assert [(record.missing, record.back) for record in caplog.records] == [(["Row.price"], []), ([], ["Row.price"])]


@pytest.mark.parametrize("rows", [1, 2, 5, 20])
def test_the_chance_of_a_false_report_is_small_for_every_length(rows):
    """With members that are null at random, at most one in a hundred answers is reported wrongly."""
    reported = 0
    for share in range(1, 100):
        count = MemberCount(filled=share * 10, seen=1000)
        reported += (1 - share / 100) ** rows > 0.01 and count.is_missing_from(rows)
    assert reported == 0
