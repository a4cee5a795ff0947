"""Who is next, who has a budget, and what is left of it."""

import pytest

from toolserver.upstream.throttle import BURST, LONGEST_QUEUE, ChosenShare, HostLane, Ticket


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


def send(lane, now, *, is_chosen):
    lane.enqueue(ticket := Ticket(is_chosen))
    lane.take(ticket, now)
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
    assert not lane.has_budget(Ticket(True), 0, waiting=False)
    assert lane.terms["chosen_seats"] == 2


def test_the_terms_for_all_instances_are_those_of_the_lane():
    assert lane_of(parallel=3, gap_s=2.0, budget=40).terms == {
        "budget": 40,
        "period": 60.0,
        "gap": 2.0,
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
    assert (lane.count_left(0), lane.count_chosen_left(0), lane.next_at) == (9, 0, 8.0)
    lane.is_alone = False
    assert (lane.count_left(0), lane.count_chosen_left(0)) == (39, 4)
    send(lane, 10, is_chosen=False)
    assert lane.next_at == 12.0


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
    lane.enqueue(Ticket(True))
    assert not lane.has_budget(Ticket(True), 0, waiting=True)
    assert lane.has_budget(Ticket(True), 0, waiting=False)
    assert lane.has_budget(Ticket(False), 0, waiting=True)


def test_a_closure_of_callers_closes_their_queue_and_any_other_closes_both():
    lane = lane_of()
    lane.close(30.0, is_chosen=True)
    assert (lane.closed_until(Ticket(True)), lane.closed_until(Ticket(False))) == (30, 0)
    lane.close(20.0, is_chosen=False)
    assert (lane.closed_until(Ticket(True)), lane.closed_until(Ticket(False))) == (30, 20)


def test_the_queue_of_callers_is_crowded_from_thirty_two_on():
    lane = lane_of()
    for _ in range(LONGEST_QUEUE - 1):
        lane.enqueue(Ticket(True))
        lane.enqueue(Ticket(False))
    assert not lane.is_crowded
    lane.enqueue(Ticket(True))
    assert lane.is_crowded
    assert (LONGEST_QUEUE, BURST) == (32, 0.25)


def test_of_two_seats_callers_take_one():
    lane = lane_of(parallel=2)
    first, second, other = Ticket(True), Ticket(True), Ticket(False)
    lane.enqueue(first)
    lane.take(first, 0)
    lane.enqueue(second)
    assert not lane.is_next(second)
    lane.enqueue(other)
    assert lane.is_next(other)
    lane.take(other, 0)
    lane.leave(first)
    assert lane.is_next(second)
