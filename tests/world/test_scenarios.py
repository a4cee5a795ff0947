"""The presets: what each of them does to the world."""

import pytest

from toolserver.world.faults import KINDS
from toolserver.world.scenarios import PRIMARIES, scenarios
from toolserver.world.state import WorldState


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
