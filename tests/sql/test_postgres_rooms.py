"""A group has one transaction for each of its rooms, and each operation gets its own outcome."""

import asyncio

import pytest

from toolserver.sql.group_commit import TOGETHER, PendingOperation
from toolserver.sql.postgres_group_commit import enter_room, serve_rooms


class Server:
    """Remembers what it was asked."""

    shared = True

    def __init__(self):
        self.asked = []

    def execute(self, sql, parameters=()):
        self.asked.append((sql, parameters))


@pytest.fixture
def asked():
    loop = asyncio.new_event_loop()

    def make(argument, room=""):
        return PendingOperation(print, argument, loop.create_future(), room)

    yield make
    loop.close()


def test_operations_are_served_by_room_and_answered_in_their_places(asked):
    group = [asked(1, "b"), asked(2), asked(3, "a"), asked(4, "b"), asked(5)]
    served = []

    def serve(part):
        served.append([each.argument for each in part])
        return [each.argument * 10 for each in part]

    assert serve_rooms(group, serve) == [10, 20, 30, 40, 50]
    assert served == [[2, 5], [3], [1, 4]]


def test_a_room_is_held_alone_and_the_ledger_holds_none(asked):
    server = Server()
    enter_room(server, [asked(1)])
    assert server.asked == []
    enter_room(server, [asked(1, "purchases"), asked(2, "purchases")])
    enter_room(server, [asked(1, "x402")])
    (first, one), (second, other) = server.asked
    assert first == second == "SELECT pg_advisory_xact_lock(?, ?)"
    assert one != other


def test_a_room_is_shared_by_operations_that_lock_their_rows(asked):
    server = Server()
    enter_room(server, [asked(1, "webhooks")])
    enter_room(server, [asked(1, "webhooks" + TOGETHER)])
    (alone, one), (shared, other) = server.asked
    assert (alone, shared) == ("SELECT pg_advisory_xact_lock(?, ?)", "SELECT pg_advisory_xact_lock_shared(?, ?)")
    assert one == other
