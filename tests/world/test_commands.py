"""The control requests by themselves: what each reads, refuses and changes, without a listener."""

import json

import pytest

from tests.world.toy import T, toy
from toolserver.world.control import COMMANDS, EVENT_MOST, ControlRequest
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import SimClock, WorldState


@pytest.fixture
def state(tmp_path):
    return WorldState(clock=SimClock(T, frozen=True), samples=tmp_path, primaries=["Toy.quote"])


async def ask(state, method, name, body=None, *, rest="", params=None, raw=None):
    """The answer to a control request."""
    sent = json.dumps(body).encode() if raw is None else raw
    return await COMMANDS[method, name](ControlRequest(state, toy().routes, rest, params or {}, sent))


@pytest.mark.parametrize("raw", [b"", b"{", b'{"now": NaN}', b"\xff"])
async def test_a_body_that_is_no_json_is_refused(state, raw):
    with pytest.raises(ControlRefused, match="must be JSON"):
        await ask(state, "PUT", "clock", raw=raw)


async def test_nothing_of_a_clock_request_takes_effect_when_one_member_is_wrong(state):
    before = await ask(state, "GET", "clock")
    with pytest.raises(ControlRefused):
        await ask(state, "PUT", "clock", {"freeze": False, "now": T + 60, "speed": -1})
    after = await ask(state, "GET", "clock")
    assert [(each["now"], each["speed"], each["frozen"]) for each in (before, after)] == [(T, 1, True)] * 2


async def test_a_pin_without_end_is_shown_without_end_and_null_takes_it_away(state):
    assert await ask(state, "PUT", "values", {"key": "a", "value": 5}) == {
        "key": "a", "value": 5.0, "from": None, "to": None,
    }  # fmt: skip
    assert await ask(state, "GET", "values") == {"a": [{"value": 5.0, "from": None, "to": None}]}
    await ask(state, "PUT", "values", {"key": "a", "value": None})
    assert await ask(state, "GET", "values") == {}


async def test_a_pin_that_ends_before_it_begins_is_refused(state):
    with pytest.raises(ControlRefused, match="from must be before to"):
        await ask(state, "PUT", "values", {"key": "a", "value": 5, "from": T, "to": T})


async def test_an_event_happens_now_unless_it_says_when(state):
    now = await ask(state, "POST", "events", {"kind": "fire"})
    later = await ask(state, "POST", "events", {"kind": "fire", "at": T + 5})

    assert (now["at"], later["at"]) == (T, T + 5)
    assert await ask(state, "GET", "events") == [now, later]


async def test_an_event_has_a_known_kind_and_a_bound(state):
    with pytest.raises(ControlRefused, match="kind"):
        await ask(state, "POST", "events", {"kind": "rain"})
    with pytest.raises(ControlRefused, match="at most"):
        await ask(state, "POST", "events", {"kind": "fire", "text": "x" * EVENT_MOST})
    assert await ask(state, "GET", "events") == []


async def test_an_expectation_that_cannot_read_its_parameter_says_why(state):
    expected = await ask(state, "GET", "expect", rest="toy/price", params={"limit": "3"})
    assert (expected["price"], expected["limit"]) == (None, 3)
    with pytest.raises(ControlRefused, match="ValueError"):
        await ask(state, "GET", "expect", rest="toy/price", params={"limit": "many"})


async def test_what_is_not_there_cannot_be_removed(state):
    for name, rest in (("faults", "f1"), ("replay", "Toy.quote")):
        with pytest.raises(ControlRefused) as refused:
            await ask(state, "DELETE", name, rest=rest)
        assert refused.value.status == 404
