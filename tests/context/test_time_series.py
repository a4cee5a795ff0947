"""What tools remember between compositions."""

from datetime import timedelta

from tests.calls.parts import START
from toolserver.context import time_series
from toolserver.context.time_series import Ring, TimeSeriesStore


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


def test_what_is_too_old_is_forgotten_and_series_are_bounded(monkeypatch):
    kept = TimeSeriesStore()
    kept.note("price", "a", 1, START, keep_s=60)
    kept.note("price", "a", 2, minutes(2), keep_s=60)
    assert kept.first("price", "a").value == 2
    monkeypatch.setattr(time_series, "KEYS", 3)
    for key in "bcdef":
        kept.note("price", key, 1, minutes(3), keep_s=60)
    assert kept.keys("price") == ["d", "e", "f"]


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


def test_a_key_keeps_only_its_newest_points(monkeypatch):
    monkeypatch.setattr(time_series, "POINTS", 3)
    kept = TimeSeriesStore()
    for n in range(5):
        kept.note("price", "a", n, minutes(n), keep_s=86400)
    assert (kept.first("price", "a").value, kept.last("price", "a").value) == (2, 4)
