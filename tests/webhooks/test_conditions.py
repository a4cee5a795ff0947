"""Conditions: what their owners may write, where their paths lead, and when they fire, clear and lack data."""

import itertools
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.work import counted
from toolserver.registry.registry import Registry
from toolserver.webhooks.conditions import (
    MISSING,
    QUIET_S,
    REMEMBERED,
    ConditionInput,
    ConditionState,
    WebhookCondition,
    check_path,
    condition_of,
    decode_condition,
    encode_condition,
    evaluate,
    find_value,
    is_same_json,
)

PAYLOAD = {"context": {"markets": {"btc": {"price_usd": 5.0}, "vix": None}}, "list": [{"a": 1}, {"a": 2}], "zero": 0}


@pytest.mark.parametrize(
    ("path", "value"),
    [("context.markets.btc.price_usd", 5.0), ("list.1.a", 2), ("zero", 0), ("list.0", {"a": 1})],
)
def test_a_path_leads_through_names_and_positions(path, value):
    assert find_value(PAYLOAD, path) == value


@pytest.mark.parametrize(
    "path", ["context.markets.vix", "nothing", "list.2.a", "list.a", "zero.a", "list.²", "list.-1"]
)
def test_null_and_a_path_that_leads_nowhere_are_missing(path):
    assert find_value(PAYLOAD, path) is MISSING


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "a"},
        {"path": "a", "above": 1, "below": 1},
        {"path": "a", "above": 1, "changed": True},
        {"path": "a", "above": 1, "clear_below": 2},
        {"path": "a", "below": 1, "clear_above": 0},
        {"path": "a", "clear_below": 2, "changed": True},
        {"path": "a", "any_new": True, "for_s": 60},
        {"path": "a", "above": float("nan")},
        {"path": "a", "above": 1, "for_s": -1},
        {"path": "", "above": 1},
        {"path": "a..b", "above": 1},
        {"path": "a", "above": 1, "over": 1},
    ],
)
def test_a_condition_asks_one_question_with_thresholds_in_their_order(fields):
    with pytest.raises(ValidationError):
        ConditionInput.model_validate(fields)


def test_a_condition_is_the_same_after_it_was_stored():
    condition_input = ConditionInput(path="a.b", above=2, clear_below=1, for_s=300, name="n")
    condition = condition_of(condition_input)
    assert decode_condition(encode_condition(condition)) == condition
    assert (condition.label, condition.above, condition.clear_below, condition.for_s) == ("n", 2.0, 1.0, 300)


def test_a_condition_without_a_name_is_called_by_its_path():
    assert condition_of(ConditionInput(path="a.b", changed=True)).label == "a.b"


SCHEMA = {
    "type": "object",
    "properties": {
        "price": {"type": "number"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
        "free": {"type": "object"},
        "rates": {"type": "object", "additionalProperties": {"type": "number"}},
        "any": {},
    },
    "$defs": {"Inner": {"type": "object", "properties": {"value": {"type": "number"}}}},
}


def watched(path, trigger="changed"):
    return WebhookCondition(path=path, **{trigger: 1.0 if trigger in ("above", "below") else True})


@pytest.mark.parametrize(
    "path", ["price", "maybe", "maybe.value", "list", "list.0.value", "free.x.y", "rates.EUR", "any.thing.0"]
)
def test_a_path_that_can_lead_to_a_value_is_taken(path):
    assert check_path(watched(path), SCHEMA) is None


def test_a_path_that_leads_nowhere_is_told_what_is_there():
    assert check_path(watched("prise"), SCHEMA) == (
        "The payload has no member prise; it has: any, free, list, maybe, price, rates. Did you mean price?"
    )
    assert check_path(watched("maybe.valu"), SCHEMA) == "maybe has no member valu; it has: value. Did you mean value?"
    assert check_path(watched("price.x"), SCHEMA) == "price has no member x."
    assert check_path(watched("list.first"), SCHEMA) == "list has no member first."
    assert check_path(watched("rates.EUR.x"), SCHEMA) == "rates.EUR has no member x."


@pytest.mark.parametrize(
    ("path", "trigger", "wrong"),
    [
        ("list", "any_new", None),
        ("any", "any_new", None),
        ("price", "any_new", "price is no list; any_new watches the items of a list."),
        ("maybe", "any_new", "maybe is no list; any_new watches the items of a list."),
        ("rates.EUR", "above", None),
        ("any.thing", "below", None),
        ("list", "above", "list is no number; above and below compare numbers."),
        ("maybe", "below", "maybe is no number; above and below compare numbers."),
    ],
)
def test_a_condition_watches_a_value_of_the_kind_that_it_judges(path, trigger, wrong):
    assert check_path(watched(path, trigger), SCHEMA) == wrong


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        ({"a": [True]}, {"a": [1]}, False),
        ({"a": [True]}, {"a": [True]}, True),
        ([1], [1, 2], False),
        ("1", 1, False),
        (None, False, False),
    ],
)
def test_values_are_compared_as_json_where_true_is_not_1(one, other, same):
    assert is_same_json(one, other) is is_same_json(other, one) is same


def test_a_value_that_turns_from_true_to_1_has_changed():
    condition, state = WebhookCondition(path="a", changed=True), ConditionState()
    state, _ = evaluate(condition, state, {"a": True}, 1.0)
    assert evaluate(condition, state, {"a": 1}, 2.0)[1] is not None


@pytest.mark.parametrize("bound", ["above", "below"])
def test_a_bound_is_a_number(bound):
    with pytest.raises(ValidationError, match="must be a number"):
        ConditionInput.model_validate({"path": "a", bound: True})


def test_a_schema_that_refers_to_itself_ends():
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert check_path(watched("a"), schema) is not None


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("premium_agent_context", "context.markets.btc.price_usd"),
        ("premium_world_deltas", "events"),
        ("premium_macro", "economic.fed_rate.value"),
        ("premium_macro", "forex.rates.EUR"),
        ("premium_exchange_flows", "aggregate.net_flow_eth"),
    ],
)
def test_the_paths_of_the_documents_lead_somewhere(tool, path):
    assert check_path(watched(path), Registry.load("tools")[tool].data_schema) is None
    assert check_path(watched(path + "x"), Registry.load("tools")[tool].data_schema) is not None or path.endswith("EUR")


PRICE = WebhookCondition("price", above=100, clear_below=99)


def follow(condition, values, *, step_s=300, restart=False):
    """What is told of a sequence of values, each five minutes after the one before; None stands for stale data."""
    state, reports = ConditionState(), []
    for number, value in enumerate(values):
        if restart:
            state = msgspec.json.decode(msgspec.json.encode(state), type=ConditionState)
        payload = None if value is None else {condition.path: value}
        state, transition = evaluate(condition, state, payload, number * step_s)
        if transition:
            reports.append((number, transition.state, transition.old, transition.new))
    return reports


def test_a_condition_fires_once_above_and_clears_once_below():
    assert follow(PRICE, [98, 101, 105, 99.5, 101, 98.9, 98, 101]) == [
        (1, "fired", None, 101),
        (5, "cleared", 101, 98.9),
        (7, "fired", 98.9, 101),
    ]


def test_exactly_at_a_threshold_nothing_happens():
    assert follow(PRICE, [100, 100, 100.1, 99, 99, 98.9]) == [(2, "fired", None, 100.1), (5, "cleared", 100.1, 98.9)]


def test_without_a_clear_threshold_it_clears_where_it_fired():
    assert follow(WebhookCondition("v", above=10), [11, 10.5, 10]) == [(0, "fired", None, 11), (2, "cleared", 11, 10)]
    assert follow(WebhookCondition("v", below=10), [9, 9.5, 10]) == [(0, "fired", None, 9), (2, "cleared", 9, 10)]


def test_below_is_the_mirror_of_above():
    assert follow(WebhookCondition("v", below=10, clear_above=11), [12, 9, 10.5, 11.1]) == [
        (1, "fired", None, 9),
        (3, "cleared", 9, 11.1),
    ]


def test_a_value_that_swings_around_its_threshold_for_a_day_is_told_once():
    swings = [100 + 0.9 * math.sin(i) for i in range(286)]
    assert [t[1] for t in follow(PRICE, [90, *swings, 90])] == ["fired", "cleared"]
    assert follow(PRICE, [90, *swings, 90]) == follow(PRICE, [90, *swings, 90], restart=True)


def test_it_fires_only_once_it_has_held_for_long_enough():
    held = WebhookCondition("v", above=10, for_s=600)
    assert follow(held, [11, 11, 9, 11, 11, 11]) == [(5, "fired", None, 11)]
    assert follow(held, [11, None, 11, 11, 11]) == [(1, "no_data", None, None), (4, "fired", None, 11)]
    assert follow(held, [11, 11, 11], restart=True) == [(2, "fired", None, 11)]


def test_missing_data_are_a_state_of_their_own_told_once_and_never_a_fire_or_a_clear():
    assert follow(PRICE, [101, None, None, None, 101, 98]) == [
        (0, "fired", None, 101),
        (1, "no_data", 101, None),
        (5, "cleared", 101, 98),
    ]


def test_a_source_that_comes_and_goes_is_told_of_once_an_hour():
    reports = follow(PRICE, [50, None] * 24)
    assert [state for _, state, _, _ in reports] == ["no_data"] * 4
    assert {b[0] - a[0] for a, b in itertools.pairwise(reports)} == {QUIET_S // 300}


def test_an_outage_of_a_day_is_told_once():
    assert [t[1] for t in follow(PRICE, [50, *[None] * 288, 50])] == ["no_data"]


def test_what_is_no_number_is_missing_for_a_threshold():
    for value in ("101", True, [101], {"v": 101}):
        assert [t[1] for t in follow(PRICE, [value])] == ["no_data"]


def test_a_change_is_told_with_the_value_before_and_the_first_value_is_no_change():
    changed = WebhookCondition("v", changed=True)
    assert follow(changed, ["up", "up", "down", None, "down", "up"]) == [
        (2, "fired", "up", "down"),
        (3, "no_data", "down", None),
        (5, "fired", "down", "up"),
    ]


def item(id, updated=None, type="earthquake"):
    return {"type": type, "timestamp": "t", "data": {"id": id, "updated": updated}}


NEW = WebhookCondition("events", any_new=True)


def test_each_item_of_a_list_is_told_once_and_a_revision_is_an_item():
    lists = [[item("a")], [item("b"), item("a")], [item("b")], [item("b", "2"), item("c")], [item("c")]]
    reports = follow(NEW, lists)
    assert [(number, new) for number, _, _, new in reports] == [
        (1, [{"type": "earthquake", "id": "b"}]),
        (3, [{"type": "earthquake", "id": "b", "revision": "2"}, {"type": "earthquake", "id": "c"}]),
    ]
    assert reports == follow(NEW, lists, restart=True)


def test_an_item_that_leaves_the_list_and_comes_back_is_not_new():
    assert follow(NEW, [[item("a"), item("b")], [item("a")], [item("a"), item("b")], []]) == []


def test_the_same_id_of_another_kind_is_another_item():
    assert len(follow(NEW, [[item("1")], [item("1"), item("1", type="space_launch")]])) == 1


def test_items_without_an_id_stand_for_themselves():
    assert [t[3] for t in follow(NEW, [["a"], ["a", "b"], [{"x": 1}]])] == [["b"], [{"x": 1}]]


def test_an_empty_list_is_data_and_a_missing_one_is_not():
    assert follow(NEW, [[], [item("a")]]) == [(1, "fired", None, [{"type": "earthquake", "id": "a"}])]
    assert [t[1] for t in follow(NEW, [[item("a")], None, [item("a")]])] == ["no_data"]


def test_what_is_remembered_of_a_list_stays_bounded():
    state = ConditionState()
    for number in range(2 * REMEMBERED):
        state, _ = evaluate(NEW, state, {"events": [item(number), item(number + 1)]}, number)
    assert len(state.seen) == REMEMBERED + 2


@given(st.lists(st.one_of(st.none(), st.floats(0, 200)), max_size=60))
def test_fired_and_cleared_alternate_whatever_the_values_do(values):
    reports = [state for _, state, _, _ in follow(PRICE, values) if state != "no_data"]
    assert reports == ["fired", "cleared"] * (len(reports) // 2) + ["fired"] * (len(reports) % 2)


@given(st.lists(st.one_of(st.none(), st.floats(0, 200)), max_size=40))
def test_a_restart_before_every_value_changes_nothing(values):
    assert follow(PRICE, values) == follow(PRICE, values, restart=True)


def test_a_state_that_does_not_change_is_the_same_object():
    state, _ = evaluate(PRICE, ConditionState(), {"price": 5}, 0)
    assert evaluate(PRICE, state, {"price": 6}, 300)[0] is state


def test_a_condition_is_judged_with_few_calls_of_functions():
    """Ten thousand on one payload then take less than 50 ms of CPU."""
    condition, state = encode_condition(PRICE), msgspec.json.encode(ConditionState())
    decode_state = msgspec.json.Decoder(ConditionState).decode
    with counted() as work:
        for _ in range(100):
            evaluate(decode_condition(condition), decode_state(state), {"price": 98}, 0)
    print(f"{work.calls / 100} calls of functions for each")
    assert work.calls / 100 <= 12
