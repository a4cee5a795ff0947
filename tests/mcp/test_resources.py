"""Resources as clients see them: what is offered, listed and read in both eras, and who is told the views of tools."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.calls.parts import POOR, RICH
from tests.calls.shop import shop
from tests.mcp.service import TOKEN, Word, asked, headers_for, running
from tests.requirements import proves
from tests.webhooks.served_hooks import hooked
from toolserver.context.context import ToolContext
from toolserver.core.caller import Caller
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


async def read(client: httpx.AsyncClient, uri: str, *, modern: bool = True, token: str = "") -> Any:
    """The answer to `resources/read`: its one content, or the error."""
    message = asked("resources/read", {"uri": uri}, modern=modern)
    headers = headers_for(message, messages.MODERN if modern else None) | {"mcp-name": uri}
    if token:
        headers["authorization"] = f"Bearer {token}"
    answer = (await client.post("/api/mcp", json=message, headers=headers)).json()
    if "error" in answer:
        return answer["error"]
    (content,) = answer["result"]["contents"]
    return content | {"scope": answer["result"].get("cacheScope")}


@proves("resources.answers")
async def test_answers_of_free_tools_are_read_within_the_limits_of_the_tool_and_nothing_is_sold() -> None:
    async with running(limited=True) as service, service.client() as client:
        content = await read(client, "toolserver://answers/echo?text=a&times=2")
        assert json.loads(content["text"])["data"] == {"text": "a", "times": 2}
        assert (content["mimeType"], content["scope"]) == ("application/json", "private")
        call = asked("tools/call", {"name": "echo", "arguments": {"text": "b"}})
        called = (await client.post("/api/mcp", json=call, headers=headers_for(call))).json()["result"]
        assert json.loads(called["content"][0]["text"])["error"] == "rate_limited"
        limited = await read(client, "toolserver://answers/echo?text=c")
        assert (limited["code"], limited["data"]["retry_after_seconds"]) == (messages.INVALID_REQUEST, 30)
        wrong = await read(client, "toolserver://answers/word?nonsense=1")
        assert (wrong["code"], wrong["data"]["error"]) == (-32602, "invalid_arguments")
        for name in ("oracle", "none", "", "../word", "word/"):
            assert (await read(client, f"toolserver://answers/{name}", token=TOKEN))["code"] == -32602
        assert await service.ledger.balance(TOKEN) == 100


@proves("resources.receipts")
async def test_a_receipt_is_read_only_by_the_token_that_paid(tmp_path: Path) -> None:
    async with shop(tmp_path) as s:
        meta = (await s.tell("premium_report"))["_meta"]
        uri = f"toolserver://receipts/{meta['receipt_id']}"
        content = await read(s.mcp, uri, token=RICH)
        assert json.loads(content["text"])["jws"] == meta["receipt"]
        assert content["scope"] == "private"
        for other in (POOR, "", "svc_live_" + "0" * 64, "no token"):
            assert (await read(s.mcp, uri, token=other))["code"] == -32602
        assert (await read(s.mcp, "toolserver://receipts/rcpt_0", token=RICH))["code"] == -32602
        listed = (await post(s.mcp, "skills/list", modern=True)).json()["result"]["skills"]
        assert [one["frontmatter"]["name"] for one in listed] == ["verify-a-receipt"]


@proves("resources.receipts", "resources.stdio")
async def test_the_owner_of_the_machine_reads_receipts_without_limits_and_others_within_them(tmp_path: Path) -> None:
    async with shop(tmp_path, limited=True) as s:
        uri = f"toolserver://receipts/{(await s.tell('premium_report'))['_meta']['receipt_id']}"
        resources = s.service.mcp_resources(has_events=False)
        owner = Caller(client="local", limited=False, transport="stdio", token=RICH)
        for _ in range(61):
            await resources.answer("resources/read", {"uri": uri}, owner, modern=True)
        for _ in range(60):
            await resources.answer("resources/read", {"uri": uri}, replace(owner, limited=True), modern=True)
        with pytest.raises(messages.MessageRefusal, match="60"):
            await resources.answer("resources/read", {"uri": uri}, replace(owner, limited=True), modern=True)


async def test_documents_are_read_and_nothing_outside_their_folder() -> None:
    async with running() as service, service.client() as client:
        content = await read(client, "toolserver://docs/receipts")
        assert content["text"].startswith("# Receipts")
        assert (content["mimeType"], content["scope"]) == ("text/markdown", "public")
        for name in ("../CHANGELOG", "none", "", "tools/weather", "receipts.md", "a" * 300):
            assert (await read(client, f"toolserver://docs/{name}"))["code"] == -32602


@proves("resources.skills")
async def test_skills_are_listed_with_digests_of_what_is_read() -> None:
    async with hooked() as served:
        offered = await post(served.client, "server/discover", modern=True)
        assert messages.SKILLS_KEY in offered.json()["result"]["capabilities"]["extensions"]
        listed = (await post(served.client, "skills/list", modern=True)).json()["result"]
        assert [one["frontmatter"]["name"] for one in listed["skills"]] == ["watch-something"]
        resources = (await post(served.client, "resources/list", modern=True)).json()["result"]["resources"]
        for skill in listed["skills"]:
            (file,) = skill["resources"]
            content = await read(served.client, file["uri"])
            written = content["text"].encode()
            assert (file["digest"], file["size"]) == (f"sha256:{sha256(written).hexdigest()}", len(written))
            assert yaml.safe_load(content["text"].split("---\n")[1]) == skill["frontmatter"]
            assert skill["uri"] == file["uri"] == f"skill://{skill['frontmatter']['name']}/SKILL.md"
            assert any(one["uri"] == file["uri"] and one["name"] in file["uri"] for one in resources)
            one = (await post(served.client, "skills/get", modern=True, uri=skill["uri"])).json()["result"]
            assert one["skill"] == skill
        unknown = await post(served.client, "skills/get", modern=True, uri="skill://none/SKILL.md")
        assert unknown.json()["error"]["code"] == -32602


async def test_templates_say_what_can_be_read_by_parts() -> None:
    async with running() as service, service.client() as client:
        listed = (await post(client, "resources/templates/list", modern=False)).json()["result"]
        assert [one["name"] for one in listed["resourceTemplates"]] == ["answers", "receipts", "docs"]
