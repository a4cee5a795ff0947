"""The rules of the log: what a group of leaves adds, and which states may be signed."""

import pytest

from tests.calls.parts import START
from tests.receipts.test_merkle import mth
from toolserver.receipts import merkle
from toolserver.receipts.keys import make_key
from toolserver.receipts.log_state import (
    DaySum,
    LogForked,
    SignCheckpoint,
    UnchargedCall,
    describe_day,
    entry_of,
    grow_log,
)

NOW = START.timestamp()
SIGN = SignCheckpoint("data.example/log", make_key(), int(NOW * 1000))


def events(count):
    return [UnchargedCall(NOW, "5xx", f"/api/pro/{n % 2}", 3) for n in range(count)]


def nodes_of(count):
    """All nodes of a log of so many leaves."""
    return {(level, place): value for level, place, value in grow_log(events(count), 0, {}).nodes}


def test_growth_in_two_groups_is_growth_in_one():
    whole = grow_log(events(7), 0, {})
    first = grow_log(events(3), 0, {})
    nodes = {(level, place): value for level, place, value in first.nodes}
    frontier = {place: nodes[place] for place in merkle.frontier(3)}
    second = grow_log([UnchargedCall(NOW, "5xx", f"/api/pro/{n % 2}", 3) for n in range(3, 7)], 3, frontier)
    assert first.leaves + second.leaves == whole.leaves
    assert first.nodes + second.nodes == whole.nodes


def test_growth_sums_calls_and_credits_by_day_reason_and_endpoint():
    growth = grow_log([*events(3), UnchargedCall(NOW + 86400, "5xx", "/api/pro/0", 5)], 0, {})
    assert growth.sums == [
        DaySum("2027-01-15", "5xx", "/api/pro/0", 2, 6),
        DaySum("2027-01-15", "5xx", "/api/pro/1", 1, 3),
        DaySum("2027-01-16", "5xx", "/api/pro/0", 1, 5),
    ]
    assert [leaf.day for leaf in growth.leaves] == ["2027-01-15"] * 3 + ["2027-01-16"]


@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_a_checkpoint_signs_the_root_of_the_whole_log(size):
    signed = SIGN.on(size, None, nodes_of(size))
    assert signed.root == mth([entry_of(event, seq) for seq, event in enumerate(events(size))])
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
