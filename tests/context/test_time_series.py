"""What tools remember between compositions."""

from datetime import timedelta

import pytest

from tests.calls.parts import START
from toolserver.context.context import SERIES_KEYS, SERIES_POINTS, Ring, TimeSeriesStore


def minutes(n: float):
    return START + timedelta(minutes=n)


def test_a_point_is_found_near_an_instant_and_not_farther():
    kept = TimeSeriesStore()
    for n in (0, 30, 60):
        kept.note("price", "a", n, minutes(n), keep_s=7200)
    assert kept.near("price", "a", minutes(31), within_s=300).value == 30
    assert kept.near("price", "a", minutes(45), within_s=300) is None
    assert kept.near("price", "b", minutes(30), within_s=300) is None
    assert (kept.first("price", "a").value, kept.last("price", "a").value) == (0, 60)
    assert kept.began("price") == START


def test_what_is_too_old_is_forgotten_and_series_are_bounded():
    kept = TimeSeriesStore()
    kept.note("price", "a", 1, START, keep_s=60)
    kept.note("price", "a", 2, minutes(2), keep_s=60)
    assert kept.first("price", "a").value == 2
    written = [f"b{number}" for number in range(SERIES_KEYS + 2)]
    for key in written:
        kept.note("price", key, 1, minutes(3), keep_s=60)
    assert kept.keys("price") == written[2:]


def test_every_point_is_told_to_the_owner_once_and_can_be_restored():
    rows = []
    kept = TimeSeriesStore(
        lambda series, key, point, keep_s: rows.append((series, key, point.at.timestamp(), point.value, keep_s))
    )
    kept.note("price", "a", 1, START, keep_s=600)
    kept.note("price", "a", 9, START, keep_s=600)
    again = TimeSeriesStore()
    again.restore(rows)
    assert len(rows) == 1
    assert again.last("price", "a").value == 1


def test_a_ring_holds_one_row_per_key_in_the_order_of_time():
    ring = Ring(keep_s=1800, most=10)
    ring.put("late", {"n": 2}, minutes(2))
    ring.put("early", {"n": 1}, minutes(1))
    ring.put("late", {"n": 3}, minutes(3))
    assert ring.rows(minutes(3)) == [{"n": 1}, {"n": 3}]
    assert (ring.get("late"), ring.get("other")) == ({"n": 3}, None)


def test_a_ring_forgets_what_is_too_old_and_what_is_too_much():
    ring = Ring(keep_s=1800, most=2)
    ring.put("a", "a", minutes(0))
    assert ring.rows(minutes(30)) == ["a"]
    assert ring.rows(minutes(31)) == []
    assert ring.get("a") is None
    for n, key in enumerate("bcd"):
        ring.put(key, key, minutes(31 + n))
    assert ring.rows(minutes(35)) == ["c", "d"]


def test_a_ring_is_the_same_one_for_everybody_who_names_it():
    kept = TimeSeriesStore()
    kept.ring("seen", keep_s=60, most=5).put("a", 1, START)
    assert kept.ring("seen", keep_s=60, most=5).rows(START) == [1]
    assert kept.ring("other", keep_s=60, most=5).rows(START) == []


def test_a_key_keeps_only_its_newest_points():
    kept, points = TimeSeriesStore(), SERIES_POINTS
    for n in range(points + 2):
        kept.note("price", "a", n, minutes(n), keep_s=864_000)
    assert (kept.first("price", "a").value, kept.last("price", "a").value) == (2, points + 1)


def test_a_point_at_the_very_edge_is_near_and_of_two_the_closer_one_is_given():
    kept = TimeSeriesStore()
    for n in (0, 10, 30):
        kept.note("price", "a", n, minutes(n), keep_s=7200)
    assert kept.near("price", "a", minutes(35), within_s=300).value == 30
    assert kept.near("price", "a", minutes(35), within_s=299) is None
    assert kept.near("price", "a", START - timedelta(minutes=5), within_s=300).value == 0
    found = [kept.near("price", "a", minutes(n), within_s=3600).value for n in (4, 6, 10, 19, 21)]
    assert found == [0, 10, 10, 10, 30]
    assert kept.points("price", "a") == [(minutes(n), n) for n in (0, 10, 30)]


def test_what_nobody_has_noted_is_nothing():
    kept = TimeSeriesStore()
    assert (kept.first("x", "a"), kept.last("x", "a"), kept.points("x", "a")) == (None, None, [])
    assert (kept.keys("x"), kept.began("x"), kept.near("x", "a", START, within_s=1e9)) == ([], None, None)


def test_a_point_is_kept_for_exactly_its_time_and_a_series_began_with_its_oldest_point():
    kept = TimeSeriesStore()
    kept.note("price", "a", 1, minutes(1), keep_s=60)
    kept.note("price", "a", 2, minutes(2), keep_s=60)
    kept.note("price", "b", 3, START, keep_s=60)
    assert [point.value for point in kept.points("price", "a")] == [1, 2]
    assert kept.began("price") == START
    kept.note("price", "a", 3, minutes(2.5), keep_s=60)
    assert [point.value for point in kept.points("price", "a")] == [2, 3]


def test_a_value_that_is_not_newer_is_ignored_and_nobody_is_told():
    told = []
    kept = TimeSeriesStore(lambda *given: told.append(given))
    for n, at in ((1, minutes(1)), (2, minutes(1)), (3, START)):
        kept.note("price", "a", n, at, keep_s=600)
    assert [point.value for point in kept.points("price", "a")] == [1]
    assert [(series, key, point.value, keep_s) for series, key, point, keep_s in told] == [("price", "a", 1.0, 600)]


def test_the_key_written_last_is_dropped_last():
    kept = TimeSeriesStore()
    for n, key in enumerate("aba"):
        kept.note("price", key, n, minutes(n), keep_s=600)
    assert kept.keys("price") == ["b", "a"]


def test_a_series_has_at_most_two_thousand_keys_of_a_thousand_points():
    assert (SERIES_KEYS, SERIES_POINTS) == (2000, 1000)


def test_stored_points_come_back_with_their_time_and_go_with_it():
    kept = TimeSeriesStore(lambda *given: pytest.fail("what comes from the store is not stored again"))
    kept.restore([("price", "a", minutes(n).timestamp(), n, 60) for n in (0, 1, 3)])
    assert kept.points("price", "a") == [(minutes(3), 3)]


def test_a_row_that_is_put_again_is_no_longer_the_oldest_of_its_ring():
    ring = Ring(keep_s=1800, most=2)
    for n, key in enumerate("abac"):
        ring.put(key, f"{key}{n}", minutes(n))
    assert ring.rows(minutes(4)) == ["a2", "c3"]
    assert ring.get("b") is None
