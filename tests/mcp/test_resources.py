"""Resources as clients see them: what is offered, listed and read in both eras, and who is told the views of tools."""

from typing import Any

import httpx
import pytest

from tests.mcp.service import Word, asked, headers_for, running
from tests.requirements import proves
from toolserver.context.context import ToolContext
from toolserver.mcp import messages
from toolserver.registry.display import CardValue
from toolserver.registry.registry import tool

SHOWS = {messages.VIEWS_KEY: {"mimeTypes": [messages.VIEW_TYPE]}}
ABOUT = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "1"}}


@tool(path="/api/drawn", title="<Drawn>", toolset="core", headline=CardValue("length"))
async def drawn(ctx: ToolContext) -> Word:
    """A word that has a view. Use word for the word of the day."""
    return Word(word="seen", meaning=None, length=4)


async def post(
    client: httpx.AsyncClient, method: str, *, modern: bool, query: str = "", session: str = "", **params: Any
) -> httpx.Response:
    message = asked(method, params, modern=modern)
    headers = headers_for(message, messages.MODERN if modern else None)
    if "uri" in params:
        headers["mcp-name"] = str(params["uri"])
    if session:
        headers["mcp-session-id"] = session
    return await client.post(f"/api/mcp{query}", json=message, headers=headers)


async def list_tools(client: httpx.AsyncClient, **how: Any) -> dict[str, Any]:
    """The `_meta` of each listed tool."""
    answer = await post(client, "tools/list", **how)
    return {entry["name"]: entry.get("_meta", {}) for entry in answer.json()["result"]["tools"]}


def knows_views(about: dict[str, Any]) -> bool:
    """True if the `_meta` of the drawn tool has the same URI in both places, and no other tool has one."""
    flat = about["drawn"].get("ui/resourceUri")
    assert about["drawn"].get("ui", {}).get("resourceUri") == flat
    assert not any("ui" in meta or "ui/resourceUri" in meta for name, meta in about.items() if name != "drawn")
    return flat is not None


@proves("apps.views")
async def test_a_client_that_shows_views_is_told_them_and_others_are_not() -> None:
    async with running(more=(drawn,)) as service, service.client() as client:
        shows = {messages.CAPABILITIES_KEY: {"extensions": SHOWS}}
        others = {messages.CAPABILITIES_KEY: {"extensions": {messages.VIEWS_KEY: {"mimeTypes": None}}}}
        assert knows_views(await list_tools(client, modern=True, _meta=shows))
        assert not knows_views(await list_tools(client, modern=True, _meta=others))
        assert not knows_views(await list_tools(client, modern=True))
        assert not knows_views(await list_tools(client, modern=False))
        assert knows_views(await list_tools(client, modern=False, query="?views=on"))

        greeting = await post(client, "initialize", modern=False, capabilities={"extensions": SHOWS}, **ABOUT)
        session = greeting.headers["mcp-session-id"]
        assert session.isascii()
        assert knows_views(await list_tools(client, modern=False, session=session))
        assert not knows_views(await list_tools(client, modern=False, session="another"))
        plain = await post(client, "initialize", modern=False, capabilities={}, **ABOUT)
        assert "mcp-session-id" not in plain.headers


@proves("apps.views")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_view_is_listed_read_and_has_the_digest_of_its_text(modern: bool) -> None:
    async with running(more=(drawn,)) as service, service.client() as client:
        listed = (await post(client, "resources/list", modern=modern)).json()["result"]
        (view,) = (one for one in listed["resources"] if one["uri"].startswith("ui://"))
        assert view["mimeType"] == messages.VIEW_TYPE
        told = await list_tools(client, modern=modern, query="?views=on")
        assert told["drawn"]["ui"]["resourceUri"] == view["uri"]
        read = (await post(client, "resources/read", modern=modern, uri=view["uri"])).json()["result"]
        (shown,) = read["contents"]
        assert (shown["uri"], shown["mimeType"]) == (view["uri"], messages.VIEW_TYPE)
        assert shown["text"].startswith("<!doctype html>")
        assert "<title>&lt;Drawn&gt;</title>" in shown["text"]
        for result in (listed, read):
            assert result.get("resultType") == ("complete" if modern else None)
            assert ("ttlMs" in result, "cacheScope" in result) == (modern, modern)
        older = view["uri"].rpartition(".")[0].rpartition(".")[0] + ".0123456789ab.html"
        again = (await post(client, "resources/read", modern=modern, uri=older)).json()["result"]
        assert again["contents"][0]["text"] == shown["text"]


@proves("resources.read")
@pytest.mark.parametrize(("modern", "unknown"), [(False, -32002), (True, -32602)])
async def test_what_is_not_there_is_refused_with_the_code_of_the_era(modern: bool, unknown: int) -> None:
    async with running() as service, service.client() as client:

        async def refuse(method: str, **params: Any) -> tuple[int, int]:
            answer = await post(client, method, modern=modern, **params)
            return answer.status_code, answer.json()["error"]["code"]

        wrong = 400 if modern else 200
        for uri in ("ui://toolserver/none.0.html", "ui://toolserver/word.0.html", "http://[", "", "x" * 9000):
            assert await refuse("resources/read", uri=uri) == (wrong, unknown)
        assert await refuse("resources/list", cursor="2") == (wrong, -32602)
        if not modern:
            assert await refuse("resources/read", uri=7) == (200, -32602)
            assert await refuse("resources/read") == (200, -32602)


async def test_a_uri_in_base64_is_the_same_in_the_header() -> None:
    async with running(more=(drawn,)) as service, service.client() as client:
        message = asked("resources/read", {"uri": "ui://toolserver/drawn.0.html"}, modern=True)
        headers = headers_for(message, messages.MODERN)
        for name, status in (("=?base64?dWk6Ly90b29sc2VydmVyL2RyYXduLjAuaHRtbA==?=", 200), ("=?base64?!?=", 400)):
            answer = await client.post("/api/mcp", json=message, headers=headers | {"mcp-name": name})
            assert answer.status_code == status
