"""The table of answers: bounded in number and in bytes, and strangers push out nothing but what strangers chose."""

from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ENTRIES, MOST_BYTES, AnswerTable


def answer(size: int) -> RenderedResponse:
    return RenderedResponse(b"x" * size, 0, 1e12, None)


def keys(table: AnswerTable, count: int) -> list[int]:
    """Which of the first `count` numbers have an answer."""
    return [key for key in range(count) if table.get(key) is not None]


def test_beyond_the_number_the_answer_made_first_is_forgotten():
    table = AnswerTable(entries=3)
    for number in (0, 1, 2, 0, 3):
        table.keep(number, answer(1))
    assert keys(table, 4) == [0, 2, 3]
    assert len(table) == 3


def test_a_large_answer_takes_the_place_of_as_many_as_it_needs():
    table = AnswerTable(most_bytes=100)
    for number in range(10):
        table.keep(number, answer(10))
    assert len(table) == 10
    table.keep(10, answer(45))
    assert keys(table, 11) == [5, 6, 7, 8, 9, 10]


def test_an_answer_made_anew_counts_once():
    table = AnswerTable(most_bytes=100)
    for size in (90, 20, 60, 20):
        table.keep(0, answer(size))
    table.keep(1, answer(80))
    assert keys(table, 2) == [0, 1]
    table.keep(2, answer(1))
    assert keys(table, 3) == [1, 2]


def test_pinned_answers_stay_whatever_comes():
    table = AnswerTable(entries=4, most_bytes=100)
    for number in (0, 1):
        table.pin(number)
        table.keep(number, answer(30))
    for number in range(2, 50):
        table.keep(number, answer(20))
    assert keys(table, 50) == [0, 1, 48, 49]


def test_pinned_answers_alone_may_take_more_than_the_room():
    table = AnswerTable(most_bytes=10)
    for number in range(3):
        table.pin(number)
        table.keep(number, answer(30))
    assert keys(table, 3) == [0, 1, 2]


def test_the_room_is_for_four_thousand_answers_of_eight_kibibytes():
    assert (ENTRIES, MOST_BYTES) == (4096, 33_554_432)


def test_the_bytes_that_fit_exactly_push_nothing_out():
    table = AnswerTable(entries=2, most_bytes=100)
    table.keep(0, answer(50))
    table.keep(1, answer(50))
    assert keys(table, 2) == [0, 1]
    table.keep(1, answer(51))
    assert keys(table, 2) == [1]
