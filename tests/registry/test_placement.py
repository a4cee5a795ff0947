"""Where the arguments of a tool go in a request."""

from tests.catalog.tiny import TINY
from toolserver.registry.placement import has_placeholders, names_in, place_arguments
from toolserver.registry.registry import Registry


def test_arguments_go_to_the_query_of_a_get_and_to_the_body_of_a_post():
    assert set(place_arguments(TINY["sights"]).values()) == {"query"}
    assert place_arguments(TINY["payment_buy_credits"]) == {"amount_usd": "body"}


def test_what_the_path_names_goes_there_and_the_rest_where_it_else_would():
    project = Registry.load("tools")
    assert place_arguments(project["webhook_deliveries"]) == {"id": "path", "limit": "query", "cursor": "query"}
    placed = place_arguments(project["allowance_update"])
    assert (placed["id"], placed["credits"]) == ("path", "body")
    assert names_in(placed, "path") == ["id"]


def test_placeholders_are_seen():
    assert has_placeholders("/api/pro/subscribe/{id}")
    assert not has_placeholders("/api/sights")


def test_every_argument_in_a_query_is_a_plain_value_or_a_list_of_them():
    for operation in Registry.load("tools"):
        for name in names_in(place_arguments(operation), "query", "path"):
            assert operation.input_schema["properties"][name].get("type") != "object", (operation.name, name)
