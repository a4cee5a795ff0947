"""What a kept answer says to a read, and what room it takes."""

from tests.calls.parts import START
from toolserver.upstream.kept_answer import ENTRIES, ENTRIES_FROM_USERS, ROOM_FROM_USERS, KeptAnswer, measure_room
from toolserver.upstream.reading import SourceAnswer


def test_it_answers_with_its_times_and_why_it_is_not_newer():
    kept = KeptAnswer(7, START, None, START, {"etag": "x"}, dropped=2)
    answer = kept.make_answer("timeout")
    assert (answer.value, answer.fetched_at, answer.dated, answer.failure) == (7, START, START, "timeout")
    assert (answer.latency_ms, answer.dropped) == (None, 2)


def test_a_body_takes_the_room_of_an_average_one_at_least_and_of_all_at_most():
    sizes = {size: measure_room(KeptAnswer(1, START, None, None, {}, size=size)) for size in (0, 9000, 10**9)}
    assert sizes == {0: ROOM_FROM_USERS, 9000: 9000, 10**9: ROOM_FROM_USERS * ENTRIES_FROM_USERS}


def test_the_room_is_for_512_answers_of_eight_kibibytes():
    assert (ENTRIES, ENTRIES_FROM_USERS, ROOM_FROM_USERS) == (4096, 512, 8192)


def test_an_answer_is_whole_and_in_the_first_place_unless_it_is_said_otherwise():
    newest = START.replace(hour=7)
    assert KeptAnswer(7, START, newest, None, {}).make_answer() == SourceAnswer(7, START, newest, None)
