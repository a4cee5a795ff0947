"""Which rule fires for which request, how often and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.toy import T
from toolserver.world.faults import KINDS, Faults
from toolserver.world.model import Ask, World
from toolserver.world.request_checks import ControlRefused

WORLD = World(1, T)
ASK = Ask("GET", "api.toy.example", "/v1/quote/ABC")


def rules(*bodies: dict[str, object]) -> Faults:
    faults = Faults()
    for body in bodies:
        faults.add({"kind": "html200", "match": "*"} | body, WORLD)
    return faults


def fired(faults: Faults, count: int, ask: Ask = ASK) -> list[bool]:
    return [faults.fire("Toy.quote", ask, WORLD) is not None for _ in range(count)]


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        ("Toy.quote", True),
        ("Toy.*", True),
        ("*", True),
        ("api.toy.example", True),
        ("api.toy.example/v1/", True),
        ("api.toy.example/v1/quote/ABC", True),
        ("Toy", False),
        ("toy.example", False),
        ("api.toy.example/v2", False),
        ("other.example", False),
    ],
)
def test_a_rule_matches_a_source_a_host_or_a_host_with_the_start_of_a_path(match, hit):
    assert fired(rules({"match": match}), 1) == [hit]


def test_the_first_rule_that_fires_decides_and_one_that_does_not_fire_steps_aside():
    faults = rules({"kind": "auth", "count": 1}, {"kind": "geo"})
    assert [faults.fire("Toy.quote", ASK, WORLD).kind for _ in range(3)] == ["auth", "geo", "geo"]


def test_after_and_count_bound_how_often_a_rule_fires():
    assert fired(rules({"after": 2, "count": 3}), 7) == [False, False, True, True, True, False, False]


def test_for_s_ends_a_rule_in_simulated_time():
    faults = rules({"for_s": 60})
    assert faults.fire("Toy.quote", ASK, WORLD.at(T + 59)) is not None
    assert faults.fire("Toy.quote", ASK, WORLD.at(T + 60)) is None


def test_probability_follows_the_seed_and_not_chance():
    first, again = (fired(rules({"probability": 0.3}), 400) for _ in range(2))
    assert first == again
    assert 80 < sum(first) < 160
    assert fired(rules({"probability": 0}), 5) == [False] * 5


def test_a_stuck_validator_answers_only_conditional_requests():
    faults = rules({"kind": "conditional_stuck"})
    assert fired(faults, 1) == [False]
    assert fired(faults, 1, Ask("GET", ASK.host, ASK.path, headers={"if-none-match": '"x"'})) == [True]


def test_a_rate_limit_counts_per_host_in_a_sliding_window_and_says_when_to_come_back():
    faults = rules({"kind": "rate_limit", "n": 2, "window_s": 60})
    other = Ask("GET", "other.example", "/")

    def ask(at: float, what: Ask = ASK) -> bool:
        return faults.fire("Toy.quote", what, WORLD.at(T + at)) is not None

    assert [ask(0), ask(10), ask(20), ask(20, other)] == [False, False, True, False]
    assert faults.rules[0].uses.retry_after_s == 40
    assert [ask(59), ask(60), ask(65), ask(70)] == [True, False, True, False]


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(0, 4), st.integers(1, 20))
def test_a_rate_limit_equals_counting_by_hand(gaps, n, window):
    faults = rules({"kind": "rate_limit", "n": n, "window_s": window})
    now, let_through = T, []
    for gap in gaps:
        now += gap
        allowed = sum(now - window < at for at in let_through) < n
        assert (faults.fire("Toy.quote", ASK, WORLD.at(now)) is None) == allowed
        let_through += [now] if allowed else []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"kind": "nonsense"}, "kind must be one of"),
        ({"match": ""}, "match must be a text"),
        ({"match": None}, "match must be a text"),
        ({"probability": 2}, "probability must be between 0 and 1"),
        ({"count": 1.5}, "count must be a whole number"),
        ({"after": -1}, "after must be between"),
        ({"for_s": "long"}, "for_s must be a number"),
        ({"for_s": True}, "for_s must be a number"),
        ({"factor": 2}, "has no member 'factor'"),
        ({"kind": "status", "code": 99}, "code must be between"),
        ({"kind": "reset", "at": "tail"}, "at must be one of body, headers"),
        ({"kind": "oversize", "mib": 1e9}, "mib must be between"),
        ({"id": "a b"}, "id may contain"),
    ],
)
def test_a_rule_that_is_not_understood_is_refused_with_the_reason(wrong, text):
    with pytest.raises(ControlRefused, match=text):
        rules(wrong)


def test_rules_are_numbered_and_one_with_a_known_id_takes_the_place_of_the_old():
    faults = rules({"id": "f1"}, {}, {"id": "mine"}, {"id": "mine", "kind": "geo"})
    assert [(rule.id, rule.kind) for rule in faults.rules] == [("f1", "html200"), ("f2", "html200"), ("mine", "geo")]
    assert faults.remove("f2")
    assert not faults.remove("f2")


def test_every_kind_can_be_set_without_parameters_and_tells_what_it_took():
    for kind, parameters in KINDS.items():
        terms = rules({"kind": kind}).rules[0].describe()
        assert set(parameters) <= set(terms)
        assert terms["kind"] == kind
