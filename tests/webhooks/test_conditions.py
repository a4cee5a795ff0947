import pytest
from pydantic import ValidationError

from toolserver.webhooks.conditions import (
    MISSING,
    ConditionInput,
    condition_of,
    decode_condition,
    encode_condition,
    find_value,
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
    "given",
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
def test_a_condition_asks_one_question_with_thresholds_in_their_order(given):
    with pytest.raises(ValidationError):
        ConditionInput.model_validate(given)


def test_a_condition_is_the_same_after_it_was_stored():
    given = ConditionInput(path="a.b", above=2, clear_below=1, for_s=300, name="n")
    condition = condition_of(given)
    assert decode_condition(encode_condition(condition)) == condition
    assert (condition.label, condition.above, condition.clear_below, condition.for_s) == ("n", 2.0, 1.0, 300)


def test_a_condition_without_a_name_is_called_by_its_path():
    assert condition_of(ConditionInput(path="a.b", changed=True)).label == "a.b"
