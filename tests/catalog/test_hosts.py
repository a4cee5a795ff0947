"""What people paste into their MCP hosts."""

import base64
import json
import shlex
import sys
import tomllib
from dataclasses import replace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from catalog.hosts import snippets
from tests.catalog.tiny import FACTS
from toolserver.core.caller import bearer
from toolserver.registry.site_facts import SiteFacts

MCP = "https://data.example/api/mcp"
DEFERRING = ("Claude Code", "Claude Desktop", "Codex")  # they show a model the tools that it searched for
CONNECTORS = ("Claude Desktop", "ChatGPT")  # over HTTP they take an address alone
MEMBER = {"VS Code": "servers", "Zed": "context_servers", "OpenCode": "mcp"}

with_and_without_token = pytest.mark.parametrize("token", [True, False])


def server(snippet):
    """The entry that the snippet adds to the host."""
    if snippet.host == "Claude Code":
        *command, name, entry = shlex.split(snippet.text)
        assert (command, name) == (["claude", "mcp", "add-json"], "toolserver")
        return json.loads(entry)
    if snippet.host == "Codex":
        return tomllib.loads(snippet.text)["mcp_servers"]["toolserver"]
    if snippet.host == "Goose":
        return yaml.safe_load(snippet.text)["extensions"]["toolserver"]
    return json.loads(snippet.text)[MEMBER.get(snippet.host, "mcpServers")]["toolserver"]


def started(entry):
    """The program that a host starts, with its arguments."""
    command = entry.get("command", entry.get("cmd"))
    return command if isinstance(command, list) else [command, *entry["args"]]


def test_every_host_has_a_snippet_for_both_transports():
    listed = [(s.host, s.transport) for s in snippets(FACTS) if s.host != "ChatGPT"]  # which starts no programs
    hosts = ("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Gemini CLI", "Codex", "Goose", "Windsurf", "Zed")
    hosts = (*hosts, "OpenCode")
    assert listed == [(host, transport) for host in hosts for transport in ("http", "stdio")]


@with_and_without_token
def test_remote_entries_lead_to_the_mcp_address(token):
    for snippet in snippets(FACTS, token=token):
        if snippet.transport == "http" and snippet.host not in CONNECTORS:
            entry = server(snippet)
            (address,) = (entry[key] for key in ("url", "httpUrl", "serverUrl", "uri") if key in entry)
            assert address == MCP + ("?toolset=all" if snippet.host in DEFERRING else "")
            says_where = "headers" in entry or "bearer_token_env_var" in entry
            assert says_where is (token and snippet.host != "Zed")  # which replaces no variables


@with_and_without_token
def test_local_entries_start_the_installed_server_on_stdio(token):
    for snippet in snippets(FACTS, token=token):
        if snippet.transport == "stdio":
            entry = server(snippet)
            bridge = ["--server", "https://data.example"] if token else []
            choice = ["--toolset", "all"] if snippet.host in DEFERRING else []
            assert started(entry) == ["toolserver", "stdio", *bridge, *choice]
            has_token = token and snippet.host not in ("Claude Desktop", "Zed")  # which replace no variables
            assert ("TOOLSERVER_TOKEN" in json.dumps({k: v for k, v in entry.items() if k != "args"})) is has_token


def test_a_token_is_sent_as_a_bearer_from_where_the_host_finds_it():
    listed = {s.host: s for s in snippets(FACTS, token=True) if s.transport == "http" and s.host not in CONNECTORS}
    headers = {host: server(snippet).get("headers", {}).get("Authorization") for host, snippet in listed.items()}
    assert headers == {
        "Claude Code": "Bearer ${TOOLSERVER_TOKEN:-}",
        "Cursor": "Bearer ${env:TOOLSERVER_TOKEN}",
        "VS Code": "Bearer ${input:token}",
        "Gemini CLI": "Bearer $TOOLSERVER_TOKEN",
        "Codex": None,
        "Goose": "Bearer ${TOOLSERVER_TOKEN}",
        "Windsurf": "Bearer ${env:TOOLSERVER_TOKEN}",
        "Zed": None,
        "OpenCode": "Bearer {env:TOOLSERVER_TOKEN}",
    }
    assert server(listed["Codex"])["bearer_token_env_var"] == "TOOLSERVER_TOKEN"
    assert server(listed["OpenCode"])["oauth"] is False  # otherwise it signs in before it sends a header
    assert json.loads(listed["VS Code"].text)["inputs"][0]["password"] is True


@with_and_without_token
def test_no_snippet_or_link_holds_a_token_or_a_placeholder_that_counts_as_one(token):
    for snippet in snippets(FACTS, token=token):
        assert "svc_live" not in snippet.text.replace("Token (svc_live_…)", "")
        if snippet.host not in CONNECTORS and snippet.transport == "http":
            assert bearer(server(snippet).get("headers", {}).get("Authorization")) is None
        linked = unquote(snippet.link or "")
        config = parse_qs(urlsplit(snippet.link or "").query).get("config", [""])[0]
        assert "TOKEN" not in linked.upper()
        assert "Authorization" not in base64.b64decode(config).decode()


def test_without_a_token_no_snippet_mentions_one():
    assert not any("svc_live" in s.text or "Authorization" in s.text for s in snippets(FACTS))


@with_and_without_token
def test_one_click_links_carry_the_same_entry_without_a_token(token):
    for snippet in snippets(FACTS, token=token):
        bare = {k: v for k, v in server(snippet).items() if k not in ("headers", "env")} if snippet.link else {}
        if snippet.host == "Cursor":
            query = parse_qs(urlsplit(snippet.link).query)
            assert json.loads(base64.b64decode(query["config"][0])) == bare
        if snippet.host == "VS Code":
            entry = json.loads(unquote(snippet.link.partition("?")[2]))
            assert {k: v for k, v in entry.items() if k != "name"} == bare


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "http://localhost:9000", "http://[::1]:8080"])
def test_read_on_the_machine_itself_local_entries_have_the_path_of_the_program(address):
    for snippet in snippets(SiteFacts(address, "localhost")):
        if snippet.transport == "stdio":
            assert started(server(snippet))[:4] == [sys.executable, "-m", "toolserver", "stdio"]


def test_a_connector_signs_in_where_that_is_possible():
    for host in CONNECTORS:
        listed = [snippets(facts) for facts in (FACTS, replace(FACTS, oauth=True))]
        open_, signed = (s for each in listed for s in each if (s.host, s.transport) == (host, "http"))
        assert open_.text == f"{MCP}?toolset=all"
        assert signed.text == f"{MCP}/auth?toolset=all"
        assert "sign in" in signed.where
