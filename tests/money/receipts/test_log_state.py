"""The rules of the log: what a group of leaves adds, and which states may be signed."""

from dataclasses import replace

import pytest

from tests.calls.parts import START
from tests.money.receipts.test_merkle import mth
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import make_key
from toolserver.money.receipts.log import (
    AppendHour,
    BookedCall,
    DaySum,
    LogForked,
    LogLease,
    LogMark,
    SignCheckpoint,
    add_up,
    describe_day,
    grow_log,
    hour_at,
    sum_by_day,
)

NOW = START.timestamp()
HOUR, MS = hour_at(NOW), int(NOW * 1000)
SIGN = SignCheckpoint("data.example/log", make_key(), MS)


def calls(count, first=0, hour=HOUR):
    """Calls of as many tokens."""
    keys = (bytes([first + n]) * 32 for n in range(count))
    return [BookedCall(hour, key, "5xx", f"/api/pro/{n % 2}", 3, None, MS) for n, key in enumerate(keys)]


def totals(count):
    return add_up(calls(count))


def grown(count, size=0, frontier=None):
    return grow_log(totals(count), size, frontier or {}, MS)


def nodes_of(count):
    """All nodes of a log of so many leaves."""
    return {(level, place): value for level, place, value in grown(count).nodes}


def test_growth_in_two_groups_is_growth_in_one():
    whole, first = grown(7), grown(3)
    nodes = {(level, place): value for level, place, value in first.nodes}
    frontier = {place: nodes[place] for place in merkle.frontier(3)}
    second = grow_log(totals(7)[3:], 3, frontier, MS)
    assert first.leaves + second.leaves == whole.leaves
    assert first.nodes + second.nodes == whole.nodes


def test_an_hour_grows_the_log_by_a_leaf_for_each_bucket_and_by_sums_of_its_day():
    lease = LogLease("a", MS + 5, MS + 9)
    append = AppendHour.of(HOUR, [*calls(3), calls(1)[0]._replace(credits=5)], lease)
    growth = append.on(0, {})
    assert (append.calls, [leaf.at for leaf in growth.leaves]) == (4, [MS + 5] * 3)
    assert [(leaf.hour, leaf.key, leaf.day) for leaf in growth.leaves] == [
        (HOUR, bytes([n]) * 32, "2027-01-15") for n in range(3)
    ]
    assert growth.sums == [
        DaySum("2027-01-15", "5xx", "/api/pro/0", 3, 11),
        DaySum("2027-01-15", "5xx", "/api/pro/1", 1, 3),
    ]
    assert growth.leaves[0].entry == append.totals[0].entry(0)


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_a_checkpoint_signs_the_root_of_the_whole_log(size):
    signed = SIGN.on(size, None, nodes_of(size))
    assert signed.root == mth([total.entry(seq) for seq, total in enumerate(totals(size))])
    assert (signed.size, signed.at) == (size, SIGN.now)
    assert signed.note.startswith(f"data.example/log\n{size}\n")


@pytest.mark.parametrize(("before", "size"), [(0, 0), (0, 5), (3, 3), (3, 4), (5, 8)])
def test_a_log_that_has_grown_is_signed_again_from_the_nodes_that_are_asked_for(before, size):
    last, nodes = SIGN.on(before, None, nodes_of(before)), nodes_of(size)
    needed = {place: nodes[place] for place in SIGN.nodes(size, last)}
    assert SIGN.on(size, last, needed).size == size


def test_a_log_that_shrank_is_never_signed_though_every_node_is_still_there():
    nodes = nodes_of(5)
    last = SIGN.on(5, None, nodes)
    with pytest.raises(LogForked, match="has 4 leaves and had 5"):
        SIGN.on(4, last, nodes)


def test_a_log_whose_beginning_was_changed_is_never_signed():
    nodes = nodes_of(5)
    last = SIGN.on(3, None, nodes)
    with pytest.raises(LogForked, match="first 3 leaves"):
        SIGN.on(5, last, nodes | {(0, 2): bytes(32)})


def test_a_log_with_missing_nodes_is_never_signed():
    nodes = nodes_of(5)
    last = SIGN.on(3, None, nodes)
    with pytest.raises(LogForked, match="first 3 leaves"):
        SIGN.on(5, last, {place: value for place, value in nodes.items() if place != (0, 2)})
    with pytest.raises(LogForked, match="missing"):
        SIGN.on(5, None, {})


def test_a_day_is_described_by_its_sums_the_most_frequent_first():
    sums = [DaySum("d", "b", "/y", 1, 2), DaySum("d", "a", "/x", 3, 6), DaySum("d", "a", "/y", 1, 2)]
    assert describe_day("d", sums, [{"seq": 1}]) == {
        "date": "d",
        "count": 5,
        "credits_skipped": 10,
        "by_reason": {"a": 4, "b": 1},
        "by_endpoint": {"/x": 3, "/y": 2},
        "events": [{"seq": 1}],
    }


def test_a_state_that_is_kept_outside_the_database_is_led_on_from_too():
    nodes = nodes_of(5)
    root = SIGN.on(3, None, nodes).root
    kept = replace(SIGN, marked=LogMark(3, root))
    needed = {place: nodes[place] for place in kept.nodes(5, None)}
    assert kept.on(5, None, needed).size == 5
    for wrong in (LogMark(3, bytes(32)), LogMark(6, root)):
        with pytest.raises(LogForked, match=f"{wrong.size} "):
            replace(SIGN, marked=wrong).on(5, None, nodes)
    assert replace(SIGN, marked=LogMark(6, root)).nodes(5, None) == SIGN.nodes(5, None)


def test_the_same_state_may_be_signed_again_and_the_name_is_signed_with_it():
    first = SIGN.on(3, None, nodes_of(3))
    again = replace(SIGN, now=MS + 1).on(3, first, nodes_of(3))
    assert again == first._replace(at=MS + 1)
    assert replace(SIGN, origin="other/log").on(3, first, nodes_of(3)).note.startswith("other/log\n3\n")


def test_sums_of_a_day_are_told_apart_by_day_reason_and_endpoint():
    buckets = calls(2) + calls(1, first=2, hour=HOUR + 24) + [calls(1, first=3)[0]._replace(reason="stale_data")]
    assert sorted(sum_by_day(add_up(buckets))) == [
        DaySum("2027-01-15", "5xx", "/api/pro/0", 1, 3),
        DaySum("2027-01-15", "5xx", "/api/pro/1", 1, 3),
        DaySum("2027-01-15", "stale_data", "/api/pro/0", 1, 3),
        DaySum("2027-01-16", "5xx", "/api/pro/0", 1, 3),
    ]


def test_what_is_equally_frequent_is_listed_by_its_name():
    sums = [DaySum("d", reason, "/x", 2, 1) for reason in ("c", "a", "b")]
    assert list(describe_day("d", sums, [])["by_reason"]) == ["a", "b", "c"]
