"""Who is next, who has a budget, and what is left of it."""

import pytest

from toolserver.upstream.host_lane import ChosenShare, HostLane, Ticket


def lane_of(parallel=1, gap_s=2.0, budget=10, reserve=0.5):
    return HostLane(parallel, gap_s, budget, 60.0, reserve)


def test_callers_come_after_all_others_and_each_lane_keeps_its_order():
    lane = lane_of()
    chosen, first, second = Ticket(True), Ticket(False), Ticket(False)
    for ticket in (chosen, first, second):
        lane.enqueue(ticket)
    assert [lane.is_next(ticket) for ticket in (chosen, first, second)] == [False, True, False]
    lane.take(first, 0)
    assert not lane.is_next(second)
    lane.leave(first)
    assert [lane.is_next(ticket) for ticket in (chosen, second)] == [False, True]
    lane.withdraw(second)
    assert lane.is_next(chosen)


def test_a_wait_is_foreseen_from_the_distance_and_those_ahead():
    lane = lane_of()
    assert lane.foresee_wait(Ticket(False), 0) == 0
    lane.enqueue(first := Ticket(False))
    lane.take(first, 100)
    assert lane.foresee_wait(Ticket(False), 101) == 1
    lane.enqueue(Ticket(False))
    lane.enqueue(Ticket(True))
    assert lane.foresee_wait(Ticket(False), 101) == 3
    assert lane.foresee_wait(Ticket(True), 101) == 5


def test_each_change_wakes_those_who_wait():
    lane, ticket = lane_of(), Ticket(False)
    for change in (
        lambda: (lane.enqueue(ticket), lane.take(ticket, 0)),
        lambda: lane.leave(ticket),
        lambda: lane.withdraw(ticket),
    ):
        before = lane.changed
        change()
        assert before.is_set()
        assert not lane.changed.is_set()


def test_those_who_wait_are_counted_against_the_budget():
    lane = lane_of(budget=2)
    lane.enqueue(Ticket(False))
    assert lane.has_budget(Ticket(False), 0, waiting=True)
    lane.enqueue(Ticket(False))
    assert not lane.has_budget(Ticket(False), 0, waiting=True)
    assert lane.has_budget(Ticket(False), 0, waiting=False)


@pytest.mark.parametrize("share", [1, 2, 7, 30, 2500])
def test_a_share_is_never_exceeded_by_more_than_one_request_in_a_period(share):
    chosen, taken, now = ChosenShare(share, 3600), 0, 1000.0
    while now < 1000 + 3600:
        if chosen.count_left(now) >= 1:
            chosen.take(now)
            taken += 1
        now += 0.5
    assert share - 1 <= taken <= share + 1
