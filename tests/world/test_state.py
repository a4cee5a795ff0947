"""The state of a world: edits, scenarios and the way back."""

from datetime import UTC, datetime

import pytest

from toolserver.world.faults import KINDS
from toolserver.world.model import PAID
from toolserver.world.state import (
    EDITS_MOST,
    PRIMARIES,
    LoggedRequest,
    SimClock,
    WorldState,
    next_weekend,
    scenarios,
)

T = datetime(2027, 1, 15, 8, tzinfo=UTC).timestamp()  # a Friday


def world_state() -> WorldState:
    return WorldState(seed=7, clock=SimClock(T, frozen=True))


def test_a_pin_holds_from_its_start_to_before_its_end_and_the_newest_wins():
    state = world_state()
    state.pin("x", T - 10, T + 10, 1.0)
    state.pin("x", T, T + 5, 2.0)
    world = state.world()

    assert [world.pinned("x", T + at) for at in (-11, -10, 0, 5, 10)] == [None, 1.0, 2.0, 1.0, None]


def test_a_world_handed_out_stays_as_it_was():
    state = world_state()
    before = state.world()
    state.pin("x", T, T + 5, 2.0)
    state.inject({"kind": "quake", "at": T})

    assert before.pinned("x") is None
    assert before.injected("quake") == []
    assert state.world().pinned("x") == 2.0
    state.unpin("x")
    assert state.world().pinned("x") is None


def test_a_scenario_takes_the_place_of_everything_but_what_was_paid():
    state = world_state()
    state.pin("x", T, T + 5, 2.0)
    state.inject({"kind": "quake", "at": T})
    state.inject({"kind": PAID, "at": T})
    state.faults.add({"match": "*", "kind": "timeout"}, state.world())
    state.play("normal")

    assert [event["kind"] for event in state.edits.events] == [PAID]
    assert state.edits.pins == {}
    assert state.faults.rules == []


def test_the_weekend_scenario_moves_the_clock_to_saturday_afternoon():
    state = world_state()
    state.play("weekend")

    assert state.world().time == datetime(2027, 1, 16, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "weekend"),
    [
        (datetime(2027, 1, 11, 0), datetime(2027, 1, 16, 15)),
        (datetime(2027, 1, 16, 14, 59), datetime(2027, 1, 16, 15)),
        (datetime(2027, 1, 16, 15, 1), datetime(2027, 1, 16, 15, 1)),
        (datetime(2027, 1, 17, 23), datetime(2027, 1, 17, 23)),
    ],
)
def test_the_next_weekend_is_now_when_it_has_begun(now, weekend):
    assert next_weekend(now.replace(tzinfo=UTC).timestamp()) == weekend.replace(tzinfo=UTC).timestamp()


def test_edits_are_bounded():
    state = world_state()
    state.edits.events.extend({"kind": "x", "at": T} for _ in range(EDITS_MOST - 1))
    assert not state.full
    state.edits.events.append({"kind": "x", "at": T})
    assert state.full


def test_a_reset_leads_back_to_the_start():
    state = world_state()
    state.play("busy")
    state.seed = 9
    state.log.miss(LoggedRequest(T, "GET", "u"), "r")
    state.reset()

    assert (state.seed, state.scenario, state.log.unmatched_count) == (7, "normal", 0)
    assert (state.edits.pins, state.edits.events, state.faults.rules) == ({}, [], [])


@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_says_what_it_does_and_its_rules_are_faults_that_exist(name):
    scenario = scenarios()[name]

    assert scenario.text.endswith(".")
    assert {rule["kind"] for rule in scenario.rules} <= set(KINDS)


@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_can_be_played(name):
    state = WorldState()
    state.play(name)

    assert state.scenario == name
    assert len(state.faults.rules) == len(scenarios()[name].rules)


def test_the_first_sources_go_down_by_the_names_a_world_is_given():
    down = scenarios(["A.one", "B.*"])["primary_down"]

    assert [rule["match"] for rule in down.rules] == ["A.one", "B.*"]
    assert len(scenarios()["primary_down"].rules) == len(PRIMARIES)


def test_a_world_goes_on_while_the_disk_takes_nothing(tmp_path, caplog):
    (tmp_path / "in the way").touch()
    state = WorldState(file=tmp_path / "in the way" / "world.json")
    state.clock.advance(60)
    state.keep()
    assert [record.message for record in caplog.records] == ["the simulated chain and clock cannot be kept"]


def test_payments_and_the_clock_are_kept_for_the_next_world(tmp_path):
    file = tmp_path / "world.json"
    first = WorldState(file=file)
    first.clock.advance(86_400)
    payment = {"kind": PAID, "at": 1.0, "hash": "0x1", "from": "0xa", "to": "0xb", "amount": 5, "nonce": "0x9"}
    first.inject({"kind": "incident", "at": 1.0})
    first.record([payment, payment | {"at": 2.0}])
    first.record([payment, payment | {"hash": "0x2"}])  # the same authorisation in another transaction

    second = WorldState(file=file)

    assert second.edits.events == [payment]
    assert second.clock.offset_s == pytest.approx(86_400, abs=5)
    assert file.stat().st_mode & 0o077 == 0
