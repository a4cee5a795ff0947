"""`toolserver call`: what is printed of an answer from this process or a service elsewhere, and the exit status."""

import json
from contextlib import asynccontextmanager

import click
import pytest
from click.testing import CliRunner

from tests.calls.toy import REGISTRY
from tests.requirements import proves
from toolserver.cli.call import Words, call_command, call_server, print_outcome, print_remote_answer
from toolserver.cli.main import main
from toolserver.core.caller import Caller
from toolserver.errors import InvalidArguments
from toolserver.registry.site_facts import SiteFacts
from toolserver.settings import Settings

FACTS = SiteFacts("https://data.example", "data.example")
CALLER = Caller(client="local", token=None, transport="cli", limited=False, agent="test")


class LocalService:
    """A service in which a call has the outcome of the test."""

    facts = FACTS

    def __init__(self, outcome):
        self.calls, self._outcome = [], outcome
        self.pipeline = self

    async def call(self, operation, arguments, caller):
        self.calls.append((operation.name, arguments, caller))
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Outcome:
    class rendered:
        payload = b'{"value":3}'


async def test_a_paid_call_without_books_says_where_it_can_be_made(tmp_path):
    with pytest.raises(click.ClickException, match="premium_macro needs a service that sells: add --server"):
        await call_command(Settings(data_dir=tmp_path), Words("premium_macro", {}), "json")
    assert list(tmp_path.iterdir()) == []


async def test_an_unknown_tool_is_named_and_nothing_is_called(tmp_path):
    with pytest.raises(click.ClickException, match="there is no tool called wether; did you mean weather"):
        await call_command(Settings(data_dir=tmp_path), Words("wether", {}), "json")
    assert list(tmp_path.iterdir()) == []


async def test_a_call_prints_the_answer_as_it_is_or_indented(capsys):
    service = LocalService(Outcome)
    assert await print_outcome(service, REGISTRY["number"], {"a": 1}, CALLER, "json") == 0
    assert capsys.readouterr().out == '{"value":3}\n'
    assert await print_outcome(service, REGISTRY["number"], {}, CALLER, "indented") == 0
    assert capsys.readouterr().out == '{\n  "value": 3\n}\n'
    assert service.calls == [("number", {"a": 1}, CALLER), ("number", {}, CALLER)]


@proves("operating.call-status")
async def test_a_refused_call_is_a_problem_document_and_status_1(capsys):
    service = LocalService(InvalidArguments("lat: must be a number", errors=[]))
    assert await print_outcome(service, REGISTRY["number"], {}, CALLER, "json") == 1
    captured = capsys.readouterr()
    problem = json.loads(captured.out)
    assert (problem["error"], problem["detail"]) == ("invalid_arguments", "lat: must be a number")
    assert await print_outcome(service, REGISTRY["number"], {}, CALLER, "indented") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == problem


class Bridge:
    """A service elsewhere that answers every message in this way."""

    def __init__(self, **members):
        self.messages, self._members = [], members

    async def answer(self, line, message):
        self.messages.append(json.loads(line))
        return json.dumps({"jsonrpc": "2.0", "id": 1, **self._members}).encode()


def text(payload, *, failed=False):
    content = [{"type": "text", "text": json.dumps(payload)}]
    return {"content": content, "isError": failed} | ({} if failed else {"structuredContent": payload})


async def test_an_answer_from_elsewhere_is_printed_and_the_status_is_0(capsys):
    bridge = Bridge(result=text({"data": {"price": 3}}))
    assert await print_remote_answer(bridge, "gas", {"chain": "base"}, "indented") == 0
    assert bridge.messages[0]["params"] == {"name": "gas", "arguments": {"chain": "base"}}
    assert capsys.readouterr().out == '{\n  "data": {\n    "price": 3\n  }\n}\n'
    assert await print_remote_answer(bridge, "gas", {}, "json") == 0
    assert capsys.readouterr().out == '{"data": {"price": 3}}\n'


async def test_a_refusal_from_elsewhere_goes_to_standard_error_and_the_status_is_1(capsys):
    bridge = Bridge(result=text({"error": "missing_token"}, failed=True))
    assert await print_remote_answer(bridge, "premium_macro", {}, "indented") == 1
    printed = capsys.readouterr()
    assert (printed.out, "missing_token" in printed.err) == ("", True)


@proves("operating.call-status")
async def test_without_data_the_status_is_1():
    assert await print_remote_answer(Bridge(result=text({"data": None})), "gas", {}, "json") == 1


async def test_an_error_of_the_protocol_ends_the_program_with_its_sentence():
    bridge = Bridge(error={"code": -32602, "message": "there is no tool called gass; did you mean gas?"})
    with pytest.raises(click.ClickException, match="did you mean gas"):
        await print_remote_answer(bridge, "gass", {}, "indented")


async def test_flags_are_read_by_the_schema_that_the_service_elsewhere_lists(monkeypatch):
    tool = {"name": "gas", "inputSchema": {"properties": {"limit": {"type": "integer"}}}, "description": "Fees."}
    bridge = ScriptedBridge({"tools/list": {"tools": [tool]}, "tools/call": text({"data": 1})})
    monkeypatch.setattr("toolserver.cli.call.open_bridge", bridge.opened)
    assert await call_server("https://data.example", Words("gas", {"chain": "base"}, ("--limit", "3")), {}, "json") == 0
    assert bridge.asked[-1]["params"] == {"name": "gas", "arguments": {"chain": "base", "limit": 3}}
    assert await call_server("https://data.example", Words("gas", {"chain": "base"}), {}, "json") == 0
    assert [each["method"] for each in bridge.asked] == ["tools/list", "tools/call", "tools/call"]
    with pytest.raises(click.ClickException, match="no tool called gass; did you mean gas"):
        await call_server("https://data.example", Words("gass", {}, ("--limit", "3")), {}, "json")


class ScriptedBridge:
    """A service elsewhere with one result for each method."""

    def __init__(self, results):
        self.asked, self._results = [], results

    @asynccontextmanager
    async def opened(self, server, flags, tools):
        yield self

    async def answer(self, line, message):
        self.asked.append(json.loads(line))
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": self._results[message.method]}).encode()


async def test_an_argument_given_twice_is_refused():
    words = Words("gas", {"limit": 1}, ("--limit", "3"))
    with pytest.raises(click.UsageError, match="limit: given both by --args and by a flag"):
        words.read({"properties": {"limit": {"type": "integer"}}})


async def test_on_a_terminal_an_answer_and_a_refusal_are_plain_lines(capsys):
    assert await print_outcome(LocalService(Outcome), REGISTRY["number"], {}, CALLER, "lines") == 0
    assert capsys.readouterr().out == "value: 3\n"
    refused = LocalService(InvalidArguments("lat: must be a number", errors=[]))
    assert await print_outcome(refused, REGISTRY["number"], {}, CALLER, "lines") == 1
    printed = capsys.readouterr()
    assert (printed.out, "detail: lat: must be a number\n" in printed.err) == ("", True)


def run(*words):
    return CliRunner().invoke(main, ["call", *words])


def test_help_after_a_name_lists_the_arguments_of_the_tool(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    done = run("weather", "--help")
    assert done.exit_code == 0
    assert "toolserver call weather" in done.stdout
    assert "--place TEXT" in done.stdout
    assert "--city" not in done.stdout


def test_an_unknown_flag_ends_the_program_before_anything_is_called(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_DATA_DIR", str(tmp_path))
    done = run("weather", "--plcae", "Paris")
    assert (done.exit_code, "did you mean --place?" in done.stderr) == (2, True)
    done = run("--place", "Paris", "weather")
    assert (done.exit_code, "before its arguments" in done.stderr) == (2, True)
    assert run().exit_code == 2
