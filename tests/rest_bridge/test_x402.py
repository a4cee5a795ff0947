"""/.well-known/x402.json: everything that a payment can buy, with its price."""

import json

from rest_bridge.asgi import parse_request
from rest_bridge.x402 import PATH, pages
from tests.catalog.tiny import TINY
from tests.requirements import proves
from toolserver.money.x402.offers import X402Terms
from toolserver.money.x402.wire import TOPUP_PATH

TERMS = X402Terms(bytes([7]) * 20, 120, 1000, "https://data.example", "data.example")
SCOPE = {"headers": [], "query_string": b""}


async def listed(registry=TINY, terms=TERMS):
    reply = await pages(terms, registry)[PATH](SCOPE, parse_request(SCOPE))
    return reply, json.loads(reply.body)


@proves("discovery.x402")
async def test_every_paid_tool_and_the_top_up_are_listed_with_their_prices_in_millionths_of_a_dollar():
    reply, document = await listed()
    prices = {entry["resource"]: (entry["method"], entry["accepts"][0]["amount"]) for entry in document["resources"]}
    assert prices == {
        "https://data.example/api/pro/deep": ("GET", "40000"),
        f"https://data.example{TOPUP_PATH}": ("POST", "1000000"),
    }
    assert dict(reply.headers)[b"content-type"] == b"application/json"


async def test_the_document_is_written_once_and_validated_by_its_tag():
    handler = pages(TERMS, TINY)[PATH]
    first = await handler(SCOPE, parse_request(SCOPE))
    again = {**SCOPE, "headers": [(b"if-none-match", dict(first.headers)[b"etag"])]}
    assert (await handler(again, parse_request(again))).status == 304
