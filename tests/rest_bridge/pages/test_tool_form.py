"""Forms from input schemas: a field for each argument, with its kind, bounds and choices."""

import json

from rest_bridge.pages.tool_form import form_fields
from tests.catalog.tiny import TINY
from tests.rest_bridge.made import PROJECT


def fields(name, registry=TINY):
    return {field.name: field for field in form_fields(registry[name])}


def test_each_argument_has_a_field_of_its_kind():
    inputs = fields("sights")
    assert list(inputs) == list(TINY["sights"].input_schema["properties"])
    assert (inputs["lat"].control.kind, inputs["lat"].control.minimum, inputs["lat"].control.maximum) == (
        "number",
        -90,
        90,
    )
    assert inputs["lat"].required
    assert (inputs["kind"].control.kind, inputs["kind"].control.choices, inputs["kind"].hint) == (
        "choice",
        ("tower", "bridge"),
        "tower",
    )
    assert inputs["lat"].description == "Latitude"


def test_an_example_is_filled_in_and_an_address_of_the_caller_is_not():
    assert fields("webhook_subscribe", PROJECT)["endpoint"].initial == "world-deltas"
    assert fields("webhook_subscribe", PROJECT)["webhook_url"].initial == ""


def test_whole_numbers_step_by_one_and_what_has_no_simple_form_is_json():
    assert fields("earthquakes", PROJECT)["limit"].control.step == "1"
    assert fields("weather", PROJECT)["lat"].control.step == "any"
    assert fields("webhook_subscribe", PROJECT)["when"].control.kind == "json"


def test_every_argument_of_the_project_has_a_field_that_says_what_it_is_for():
    for operation in PROJECT:
        for field in form_fields(operation):
            control = field.control
            assert control.kind in ("choice", "flag", "number", "text", "json")
            assert bool(control.choices) == (control.kind in ("choice", "flag")), (operation.name, field.name)


def test_a_required_number_is_given_its_least_value_and_an_optional_one_shows_its_default():
    inputs = fields("sights")
    assert (inputs["lat"].initial, inputs["lat"].hint) == ("-90", "-90")
    assert (inputs["kind"].initial, inputs["period"].hint, inputs["names"].hint) == ("", "", "")
    bought = fields("payment_buy_credits")["amount_usd"]
    bounds = bought.control
    assert (bought.initial, bounds.minimum, bounds.maximum, bounds.step) == ("1", 1, None, "any")


def test_what_has_no_example_is_asked_for_and_not_filled_in():
    field = fields("webhook_unsubscribe")["id"]
    assert (field.control.kind, field.required, field.initial, field.hint) == ("text", True, "", "…")
    url = fields("webhook_subscribe", PROJECT)["webhook_url"]
    assert (url.initial, url.hint) == ("", "…")


def test_a_default_is_shown_rather_than_an_example():
    shown = fields("webhook_subscribe", PROJECT)
    assert (shown["endpoint"].hint, shown["description"].hint) == ("world-deltas", "")
    for operation in PROJECT:
        for field in form_fields(operation):
            default = operation.input_schema["properties"][field.name].get("default")
            if default is not None:
                assert field.hint == (default if isinstance(default, str) else json.dumps(default)), operation.name
            assert not (field.initial and not field.required)


def test_a_flag_is_chosen_from_two_words():
    flags = [field for operation in PROJECT for field in form_fields(operation) if field.control.kind == "flag"]
    assert flags
    assert {field.control.choices for field in flags} == {("true", "false")}
