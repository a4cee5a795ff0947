"""Who is next, who has a budget, and what is left of it."""

import pytest

from toolserver.upstream.host_lane import BURST, LONGEST_QUEUE, ChosenShare, HostLane, RequestWithheld, Unit


def lane_of(parallel=1, gap_s=2.0, budget=10, reserve=0.5, burst=1):
    return HostLane(parallel, gap_s, budget, 60.0, reserve, burst=burst)


def queued(lane, *, is_chosen=False):
    """A request that waits on its own."""
    ticket = lane.join(None, is_chosen=is_chosen)
    lane.enqueue(ticket.unit)
    return ticket


def unit_of(size=1, *, is_chosen=False):
    """So many requests that want their turns together."""
    unit = Unit(is_chosen)
    for _ in range(size):
        unit.add()
    return unit


def test_callers_come_after_all_others_and_each_lane_keeps_its_order():
    lane = lane_of()
    chosen, first, second = queued(lane, is_chosen=True), queued(lane), queued(lane)
    assert [lane.is_next(ticket) for ticket in (chosen, first, second)] == [False, True, False]
    lane.take(first, 0)
    assert not lane.is_next(second)
    lane.leave(first)
    assert [lane.is_next(ticket) for ticket in (chosen, second)] == [False, True]
    lane.withdraw(second)
    assert lane.is_next(chosen)


def test_a_wait_is_foreseen_from_the_distance_and_those_ahead():
    lane = lane_of()
    assert lane.foresee_wait(unit_of(), 0) == 0
    lane.take(queued(lane), 100)
    assert lane.foresee_wait(unit_of(), 101) == 1
    queued(lane)
    queued(lane, is_chosen=True)
    assert lane.foresee_wait(unit_of(), 101) == 3
    assert lane.foresee_wait(unit_of(is_chosen=True), 101) == 5


def test_a_wait_is_foreseen_from_what_is_left_of_a_burst():
    lane = lane_of(burst=3)
    assert [lane.foresee_wait(unit_of(size), 100) for size in (1, 3, 4)] == [0, 0, 2]
    lane.take(queued(lane), 100)
    assert [lane.foresee_wait(unit_of(size), 100) for size in (2, 3)] == [0, 2]
    assert [lane.foresee_wait(unit_of(size), 101) for size in (2, 3)] == [0, 1]
    assert lane.foresee_wait(unit_of(3), 102) == 0


def test_as_many_get_their_turns_together_as_a_burst_and_the_budgets_ever_allow():
    assert lane_of(burst=3, budget=100).size_of(unit_of(5)) == 3
    assert lane_of(gap_s=0, budget=4).size_of(unit_of(5)) == 4
    assert lane_of(gap_s=0, budget=100).size_of(unit_of(20, is_chosen=True)) == 12
    lane = HostLane(1, 2.0, 40, 60.0, 0.5, instances=4, burst=8)
    assert lane.size_of(unit_of(9)) == 8
    lane.is_alone = True
    assert lane.size_of(unit_of(9)) == 2
    assert lane.next_at(2, 0) == 0
    assert lane.next_at(3, 0) == 8


def test_a_unit_fits_the_budget_as_a_whole():
    lane = lane_of(budget=5, burst=5)
    assert lane.has_budget(unit_of(5), 0, waiting=True)
    lane.take(queued(lane), 0)
    assert lane.has_budget(unit_of(4), 0, waiting=True)
    assert not lane.has_budget(unit_of(5), 0, waiting=True)
    assert lane.count_left(0) == 4


def test_a_request_in_a_burst_ahead_of_its_distance_is_paid_back_later():
    lane = lane_of(burst=2)
    unit = unit_of(2)
    lane.enqueue(unit)
    first, second = unit.waiting
    lane.take(first, 0)
    assert (unit.turns, lane.next_at(1, 0), lane.count_left(0)) == (1, 2, 8)
    lane.leave(first)
    lane.take(second, 0)
    assert (unit.turns, lane.next_at(1, 0), lane.next_at(2, 0), lane.count_left(0)) == (0, 2, 4, 8)


def test_each_change_wakes_those_who_wait():
    lane, ticket = lane_of(), unit_of().waiting[0]
    for change in (
        lambda: (lane.enqueue(ticket.unit), lane.take(ticket, 0)),
        lambda: lane.leave(ticket),
        lambda: lane.withdraw(ticket),
        lambda: lane.refuse(ticket.unit, RequestWithheld()),
    ):
        before = lane.changed
        change()
        assert before.is_set()
        assert not lane.changed.is_set()


def test_those_who_wait_are_counted_against_the_budget():
    lane = lane_of(budget=2)
    queued(lane)
    assert lane.has_budget(unit_of(), 0, waiting=True)
    queued(lane)
    assert not lane.has_budget(unit_of(), 0, waiting=True)
    assert lane.has_budget(unit_of(), 0, waiting=False)


@pytest.mark.parametrize("share", [1, 2, 7, 30, 2500])
def test_a_share_is_never_exceeded_by_more_than_one_request_in_a_period(share):
    chosen, taken, now = ChosenShare(share, 3600), 0, 1000.0
    while now < 1000 + 3600:
        if chosen.count_left(now) >= 1:
            chosen.take(1, now)
            taken += 1
        now += 0.5
    assert share - 1 <= taken <= share + 1


def send(lane, now, *, is_chosen):
    lane.take(ticket := queued(lane, is_chosen=is_chosen), now)
    lane.leave(ticket)


def test_callers_use_up_their_share_and_all_requests_the_budget():
    lane = lane_of(budget=40)
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (40, 5)
    send(lane, 0, is_chosen=True)
    send(lane, 0, is_chosen=True)
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (38, 3)
    send(lane, 0, is_chosen=False)
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (37, 3)
    assert lane.count_chosen_left(4) == 4  # fifteen grow back in a minute
    assert (lane.count_left(59.9), lane.count_left(60)) == (37, 40)


def test_callers_alone_use_the_whole_budget_of_a_group_without_a_reserve():
    lane = lane_of(parallel=2, budget=4, reserve=0)
    for left in (4, 3, 2, 1):
        assert (lane.count_left(0), lane.count_chosen_left(0)) == (left, left)
        send(lane, 0, is_chosen=True)
    assert not lane.has_budget(unit_of(is_chosen=True), 0, waiting=False)
    assert lane.terms["chosen_seats"] == 2


def test_the_terms_for_all_instances_are_those_of_the_lane():
    assert lane_of(parallel=3, gap_s=2.0, budget=40).terms == {
        "budget": 40,
        "period": 60.0,
        "gap": 2.0,
        "at_once": 1,
        "seats": 3,
        "chosen_seats": 2,
        "interval": 4.0,
        "burst": 5.0,
    }
    assert lane_of(parallel=1, reserve=0).terms.items() >= {("interval", 0), ("burst", 0), ("chosen_seats", 1)}
    assert lane_of(parallel=1).terms["chosen_seats"] == 1


def test_without_contact_an_instance_uses_its_part_of_the_budget_and_keeps_the_distance_of_all():
    lane = HostLane(1, 2.0, 40, 60.0, 0.5, instances=4)
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (40, 5)
    lane.is_alone = True
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (10, 1)
    send(lane, 0, is_chosen=True)
    assert (lane.count_left(0), lane.count_chosen_left(0), lane.next_at(1, 0)) == (9, 0, 8.0)
    lane.is_alone = False
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (39, 4)
    send(lane, 10, is_chosen=False)
    assert lane.next_at(1, 10) == 12.0


def test_a_budget_smaller_than_the_number_of_instances_is_one_request_in_a_longer_period():
    lane = HostLane(1, 0, 2, 60.0, 0.5, instances=4)
    lane.is_alone = True
    send(lane, 0, is_chosen=False)
    assert [lane.count_left(now) for now in (0, 60, 119, 120)] == [0, 0, 0, 1]
    lane = HostLane(1, 0, 2, 60.0, 0.5, instances=4)
    send(lane, 0, is_chosen=False)
    assert [lane.count_left(now) for now in (0, 59, 60)] == [1, 1, 2]


def test_one_who_waits_for_a_caller_is_counted_against_the_share_of_callers_only():
    lane = lane_of(budget=8)  # one of callers at once
    queued(lane, is_chosen=True)
    assert not lane.has_budget(unit_of(is_chosen=True), 0, waiting=True)
    assert lane.has_budget(unit_of(is_chosen=True), 0, waiting=False)
    assert lane.has_budget(unit_of(), 0, waiting=True)


def test_a_closure_of_callers_closes_their_queue_and_any_other_closes_both():
    lane = lane_of()
    lane.close(30.0, is_chosen=True)
    assert (lane.closed_until(is_chosen=True), lane.closed_until(is_chosen=False)) == (30, 0)
    lane.close(20.0, is_chosen=False)
    assert (lane.closed_until(is_chosen=True), lane.closed_until(is_chosen=False)) == (30, 20)


def test_the_queue_of_callers_has_thirty_two_places():
    assert lane_of().room.limits.most == LONGEST_QUEUE
    assert (LONGEST_QUEUE, BURST) == (32, 0.25)


def test_of_two_seats_callers_take_one():
    lane = lane_of(parallel=2)
    lane.take(first := queued(lane, is_chosen=True), 0)
    second = queued(lane, is_chosen=True)
    assert not lane.is_next(second)
    other = queued(lane)
    assert lane.is_next(other)
    lane.take(other, 0)
    lane.leave(first)
    assert lane.is_next(second)
