"""Forms from input schemas: a field for each argument, with its kind, bounds and choices."""

from rest_bridge.pages.tool_form import example_arguments, form_fields
from tests.catalog.tiny import TINY
from tests.rest_bridge.made import PROJECT


def fields(name, registry=TINY):
    return {field.name: field for field in form_fields(registry[name])}


def test_each_argument_has_a_field_of_its_kind():
    found = fields("sights")
    assert list(found) == list(TINY["sights"].input_schema["properties"])
    assert (found["lat"].kind, found["lat"].minimum, found["lat"].maximum) == ("number", -90, 90)
    assert found["lat"].required
    assert (found["kind"].kind, found["kind"].choices, found["kind"].hint) == ("choice", ("tower", "bridge"), "tower")
    assert found["lat"].description == "Latitude"


def test_a_call_needs_what_is_required_and_an_example_of_it():
    assert example_arguments(TINY["sights"]).keys() == {"lat"}
    assert example_arguments(TINY["digest"]) == {}
    assert fields("webhook_subscribe", PROJECT)["endpoint"].given == "world-deltas"
    assert fields("webhook_subscribe", PROJECT)["webhook_url"].given == ""


def test_whole_numbers_step_by_one_and_what_has_no_simple_form_is_json():
    assert fields("earthquakes", PROJECT)["limit"].step == "1"
    assert fields("weather", PROJECT)["lat"].step == "any"
    assert fields("webhook_subscribe", PROJECT)["when"].kind == "json"


def test_every_argument_of_the_project_has_a_field_that_says_what_it_is_for():
    for operation in PROJECT:
        for field in form_fields(operation):
            assert field.kind in ("choice", "flag", "number", "text", "json")
            assert bool(field.choices) == (field.kind in ("choice", "flag")), (operation.name, field.name)
