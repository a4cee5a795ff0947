import pytest

from toolserver.registry.registry import Registry
from toolserver.webhooks.conditions import check_path

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


@pytest.mark.parametrize(
    "path", ["price", "maybe", "maybe.value", "list", "list.0.value", "free.x.y", "rates.EUR", "any.thing.0"]
)
def test_a_path_that_can_lead_to_a_value_is_taken(path):
    assert check_path(path, SCHEMA) is None


def test_a_path_that_leads_nowhere_is_told_what_is_there():
    assert check_path("prise", SCHEMA) == (
        "The payload has no member prise; it has: any, free, list, maybe, price, rates. Did you mean price?"
    )
    assert check_path("maybe.valu", SCHEMA) == "maybe has no member valu; it has: value. Did you mean value?"
    assert check_path("price.x", SCHEMA) == "price has no member x."
    assert check_path("list.first", SCHEMA) == "list has no member first."
    assert check_path("rates.EUR.x", SCHEMA) == "rates.EUR has no member x."


def test_a_schema_that_refers_to_itself_ends():
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert check_path("a", schema) is not None


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
    assert check_path(path, Registry.load("tools")[tool].data_schema) is None
    assert check_path(path + "x", Registry.load("tools")[tool].data_schema) is not None or path.endswith("EUR")
