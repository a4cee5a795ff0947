"""A recording answers what was recorded, as it was then; and says of everything else that it was not."""

import json

import anyio
import httpx
import pytest

from toolserver.core.recorded_exchange import (
    FORMAT,
    REMOVED,
    SUMMARY,
    NoRecording,
    RecordedExchange,
    write_exchange,
)
from toolserver.world.model import Ask, World
from toolserver.world.recorded_routes import RecordedRoutes
from toolserver.world.server import serve_world
from toolserver.world.state import SimClock, WorldState

AT = 1_800_000_000.0
HOST = "api.toy.example"
JSON = [("content-type", "application/json")]


def exchange(url, body=b"{}", **parts):
    settings = {"method": "GET", "sent_at": AT, "status": 200, "headers": JSON, "body": body}
    return RecordedExchange(source="Toy.quote", url=url, **(settings | parts))


@pytest.fixture
def recording(tmp_path):
    """Makes the routes of a recording of these exchanges."""

    def make(*exchanges):
        for number, each in enumerate(exchanges, 1):
            write_exchange(tmp_path, number, each)
        (tmp_path / SUMMARY).write_text(json.dumps({"format": FORMAT, "recorded_at": AT}))
        return RecordedRoutes(tmp_path)

    return make


def answered(routes, path, query="", *, method="GET", body=None):
    """The body of the answer, or None."""
    sent = b"" if body is None else json.dumps(body).encode()
    match = routes.find(Ask(method, HOST, path, query, {}, sent))
    return None if match is None else match[0].handler(World(1, AT), match[1]).body


def test_only_the_recorded_request_is_answered(recording):
    routes = recording(exchange(f"https://{HOST}/v1/a?x=1&y=b+c", b"one"))
    assert answered(routes, "/v1/a", "x=1&y=b%20c") == b"one"
    for path, query, method in (("/v1/a", "x=2&y=b+c", "GET"), ("/v1/b", "x=1&y=b+c", "GET"), ("/v1/a", "", "GET")):
        assert answered(routes, path, query, method=method) is None
    assert answered(routes, "/v1/a", "x=1&y=b+c", method="POST") is None


def test_a_posted_question_is_told_from_another(recording):
    first = exchange(f"https://{HOST}/rpc", b"one", method="POST", sent_json={"m": "a", "p": [1]})
    second = exchange(f"https://{HOST}/rpc", b"two", method="POST", sent_json={"m": "b", "p": [1]})
    routes = recording(first, second)
    assert answered(routes, "/rpc", method="POST", body={"p": [1], "m": "b"}) == b"two"
    assert answered(routes, "/rpc", method="POST", body={"m": "c", "p": [1]}) is None


def test_any_key_opens_what_was_recorded_with_one(recording):
    routes = recording(exchange(f"https://{HOST}/csv/{REMOVED}/x?key={REMOVED}&n=1", b"one"))
    assert answered(routes, "/csv/sim-mine/x", "key=sim-other&n=1") == b"one"
    assert answered(routes, "/csv/sim-mine/x", "key=sim-other&n=2") is None


@pytest.mark.parametrize(
    ("recorded", "question"),
    [
        ("from=2027-01-14&to=2027-01-15", "from=2027-01-15&to=2027-01-16"),
        ("until=2027-01-15T08:00:00Z", "until=2027-01-15T08:01:30Z"),
        ("filter=created%3E1800000000,points%3E2", "filter=created%3E1800000300,points%3E2"),
    ],
)
def test_a_question_that_moves_with_the_clock_is_answered_at_another_time(recording, recorded, question):
    routes = recording(exchange(f"https://{HOST}/x?{recorded}", b"one"))
    assert answered(routes, "/x", question) == b"one"


def test_numbers_that_are_no_times_must_agree(recording):
    routes = recording(exchange(f"https://{HOST}/x?id=123456&lat=1.8000000001", b"one"))
    assert answered(routes, "/x", "id=123457&lat=1.8000000001") is None
    assert answered(routes, "/x", "id=123456&lat=1.8000000002") is None


def test_of_several_answers_the_newest_is_given_and_the_very_question_goes_first(recording):
    old = exchange(f"https://{HOST}/x?day=2027-01-14", b"old", sent_at=AT - 9)
    new = exchange(f"https://{HOST}/x?day=2027-01-15", b"new")
    again = exchange(f"https://{HOST}/x?day=2027-01-14", b"again", sent_at=AT - 5)
    routes = recording(old, new, again)
    assert answered(routes, "/x", "day=2027-01-14") == b"again"
    assert answered(routes, "/x", "day=2027-01-13") == b"new"


def test_the_answer_is_as_it_was_but_for_the_headers_of_the_connection(recording):
    headers = [
        ("content-type", "text/csv"),
        ("sunset", "soon"),
        ("content-encoding", "gzip"),
        ("content-length", "3"),
        ("date", "then"),
        ("last-modified", "Fri, 15 Jan 2027 07:00:00 GMT"),
    ]
    routes = recording(exchange(f"https://{HOST}/x", b"a,b\n1,", status=429, headers=headers, is_cut=True))
    route, ask = routes.find(Ask("GET", HOST, "/x"))
    reply = route.handler(World(1, AT), ask)
    assert (reply.status, reply.content_type, dict(reply.headers)) == (429, "text/csv", {"sunset": "soon"})
    assert reply.body == b"a,b\n"  # the line that was cut was not read then, and is not now
    assert reply.last_modified == AT - 3600


def test_a_request_that_got_no_answer_gets_502(recording):
    routes = recording(exchange(f"https://{HOST}/x", status=None, failure="ConnectError", headers=[]))
    route, ask = routes.find(Ask("GET", HOST, "/x"))
    reply = route.handler(World(1, AT), ask)
    assert (reply.status, json.loads(reply.body)["failure"]) == (502, "ConnectError")


def test_a_folder_that_is_no_recording_is_refused(tmp_path):
    with pytest.raises(NoRecording):
        RecordedRoutes(tmp_path)


async def test_a_recording_is_served_like_a_world_and_its_clock_stands(recording):
    probe = exchange("tcp://near.example:443", b'{"latency_ms": 5}', method="CONNECT")
    far = exchange("tcp://far.example:443", method="CONNECT", status=None)
    routes = recording(exchange(f"https://{HOST}/x?a=1", b'{"v":1}'), probe, far)
    state = WorldState(clock=SimClock(routes.recorded_at, frozen=True))
    async with anyio.create_task_group() as group:
        port = await group.start(serve_world, state, routes)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
            good = await client.get(f"/u/{HOST}/x?a=1")
            other = await client.get(f"/u/{HOST}/x?a=2")
            near, away, unknown = [await client.get(f"/probe/{host}.example") for host in ("near", "far", "elsewhere")]
            clock, missed = (await client.get("/_sim/clock")).json(), (await client.get("/_sim/unmatched")).json()
            overview = (await client.get("/_sim")).json()
        group.cancel_scope.cancel()
    assert (good.json(), good.headers["date"]) == ({"v": 1}, "Fri, 15 Jan 2027 08:00:00 GMT")
    assert (other.status_code, other.json()["error"]) == (501, "not recorded")
    assert (near.json(), away.json()) == ({"latency_ms": 5}, {"unreachable": True})
    assert (unknown.status_code, unknown.json()["error"]) == (501, "not recorded")
    assert (clock["now"], clock["frozen"]) == (AT, True)
    assert [each["reason"] for each in missed] == ["not recorded", "not recorded"]
    assert (overview["sources"], overview["unmatched"]) == (["Toy.quote"], 2)
