"""Of a bounded wait every client has a share: who has most makes room, and who leaves gives it back."""

import anyio
import pytest

from tests.requirements import proves
from toolserver.core.metrics import Metrics
from toolserver.core.waiting_room import WaitingRoom, WaitLimits, WaitRefused, waiting_client

NETWORK = [f"2001:db8:1:{n}::/64" for n in range(9)]


def room_of(most=6, share=3, crowd_share=4, longest_s=60.0):
    return WaitingRoom("well", WaitLimits(most, share, crowd_share, longest_s))


def fill(room, *clients):
    """Take places that cannot end, and return whose were ended."""
    ended = []
    for number, client in enumerate(clients):
        room.take(client, lambda name=f"{client} {number}": ended.append(name))
    return ended


def refusal_of(room, client):
    with pytest.raises(WaitRefused) as refused:
        room.take(client, lambda: None)
    return refused.value.reason


@proves("waits.share")
def test_a_client_and_a_network_have_a_share_and_others_are_let_in():
    room = room_of()
    fill(room, "192.0.2.1", "192.0.2.1", "192.0.2.1")
    assert refusal_of(room, "192.0.2.1") == "share"
    room.take("192.0.2.2", lambda: None)
    wide = room_of()
    fill(wide, *NETWORK[:4])
    assert refusal_of(wide, NETWORK[5]) == "share"
    wide.take("192.0.2.2", lambda: None)
    assert (len(wide), wide.refused) == (5, {"share": 1})


@proves("waits.share")
def test_when_all_places_are_taken_the_oldest_of_the_greediest_makes_room_and_never_work_of_ours():
    room = room_of()
    ended = fill(room, None, None, "192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3")
    room.take("192.0.2.4", lambda: None)
    assert ended == ["192.0.2.2 3"]
    room.take(None, lambda: None)
    assert (ended, len(room)) == (["192.0.2.2 3", "192.0.2.1 2"], 6)
    ours = room_of(most=2)
    fill(ours, None, None)
    assert [refusal_of(ours, client) for client in (None, "192.0.2.1")] == ["full", "full"]


@proves("waits.leave")
async def test_who_leaves_gives_the_place_back_and_nothing_is_remembered_of_anybody():
    room, started = room_of(most=1, share=1), anyio.Event()

    async def stay():
        async with room.wait("192.0.2.1"):
            started.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stay)
        await started.wait()
        assert refusal_of(room, "192.0.2.1") == "share"
        tasks.cancel_scope.cancel()
    async with room.wait("192.0.2.1"):
        pass
    assert (len(room), room._clients, room._crowds) == (0, {}, {})


@proves("waits.deadline")
async def test_a_wait_ends_with_its_time_and_one_that_makes_room_is_told_so():
    room = room_of(longest_s=0.01)
    with pytest.raises(WaitRefused) as refused:
        async with room.wait("192.0.2.1"):
            await anyio.sleep_forever()
    assert (refused.value.reason, str(refused.value)) == ("late", "well: late")

    room, started, reasons = room_of(most=1), anyio.Event(), []

    async def stay():
        try:
            async with room.wait("192.0.2.1"):
                started.set()
                await anyio.sleep_forever()
        except WaitRefused as refusal:
            reasons.append(refusal.reason)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stay)
        await started.wait()
        async with room.wait("192.0.2.2"):
            await anyio.wait_all_tasks_blocked()
    assert (reasons, len(room)) == (["share"], 0)


async def test_a_failure_of_what_is_waited_for_is_raised_as_it_is():
    room = room_of()
    with pytest.raises(LookupError):
        async with room.wait():
            raise LookupError
    assert (len(room), room.refused) == (0, {})


async def test_without_a_client_the_place_is_of_the_one_whose_call_it_is():
    room = room_of(share=1)
    waiting_client.set("192.0.2.1")
    async with room.wait():
        assert refusal_of(room, "192.0.2.1") == "share"


def test_rooms_of_one_name_are_one_metric():
    metrics = Metrics()
    rooms = [room_of(), room_of(), WaitingRoom("other", WaitLimits(1, 1, 1))]
    for room in rooms:
        fill(room, "192.0.2.1")
        metrics.follow_waits(room.count)
    refusal_of(rooms[2], "192.0.2.1")
    said = metrics.registry.get_sample_value
    assert said("toolserver_waiting", {"wait": "well"}) == 2
    assert said("toolserver_waiting_limit", {"wait": "well"}) == 12
    assert said("toolserver_waits_refused_total", {"wait": "other", "reason": "share"}) == 1
    assert said("toolserver_waits_refused_total", {"wait": "well", "reason": "late"}) == 0
