"""The server card and the AI catalogue, judged by the rules of their texts, and that one leads to the other."""

import json
import re

import pytest

from catalog.server_card import CARD_TYPE, CATALOG_TYPE, SCHEMA, documents
from tests.arranged import client_of
from tests.calls.parts import engine
from tests.calls.toy import REGISTRY
from tests.catalog.tiny import FACTS, FREE, TINY
from tests.requirements import proves
from tests.served import all_tools
from toolserver.mcp.messages import LEGACY, MODERN

VERSIONS = [*LEGACY, MODERN]
CARD, CATALOG = "/api/mcp/server-card", "/.well-known/ai-catalog.json"


@proves("discovery.card")
@pytest.mark.parametrize("registry", [TINY, FREE, all_tools()], ids=["tiny", "free", "all"])
def test_a_card_keeps_the_rules_of_its_schema_and_names_no_tool(registry):
    card = json.loads(documents(registry, FACTS, VERSIONS)[CARD].body)
    assert card["$schema"] == SCHEMA == "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", card["name"])
    assert 3 <= len(card["name"]) <= 200
    assert max(len(card["title"]), len(card["description"])) <= 100
    assert re.fullmatch(r"\d+\.\d+\.\d+", card["version"])
    (remote,) = card["remotes"]
    assert (remote["type"], remote["url"]) == ("streamable-http", FACTS.url("/api/mcp"))
    assert remote["supportedProtocolVersions"] == VERSIONS
    assert not card.keys() & {"tools", "packages"}


@proves("discovery.card")
async def test_the_catalogue_leads_to_the_card_and_the_card_to_the_endpoint():
    async with engine(REGISTRY) as e, client_of(e.service.web_app()) as client:
        found = await client.get(CATALOG)
        assert found.headers["content-type"] == CATALOG_TYPE
        assert found.headers["access-control-allow-origin"] == "*"
        assert "public" in found.headers["cache-control"]
        (entry,) = found.json()["entries"]
        assert re.fullmatch(r"urn:air:[\w.-]+:mcp:\w+", entry["identifier"])
        card = await client.get(entry["url"])
        assert card.headers["content-type"] == entry["type"] == CARD_TYPE
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        message["params"] = {"protocolVersion": "x", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        said = (await client.post(card.json()["remotes"][0]["url"], json=message)).json()["result"]
        assert said["serverInfo"]["version"] == card.json()["version"]
        assert said["protocolVersion"] in card.json()["remotes"][0]["supportedProtocolVersions"]
