"""What the command line does in its own process: one call, the list of tools, the OpenAPI document."""

import json
from contextlib import asynccontextmanager

import click
import pytest

from tests.calls.toy import REGISTRY
from toolserver.cli import in_process
from toolserver.cli.in_process import call_command, local_caller, local_service, openapi_document, tools_listing
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import MARKER, keeps_books
from toolserver.settings import LedgerSettings, PaymentSettings, Settings, UpstreamSettings

FACTS = SiteFacts("https://data.example", "data.example")


def test_the_owner_of_the_machine_has_no_limits_and_pays_with_the_token_of_the_settings():
    caller = local_caller(Settings(token="svc_live_x"), "cli")
    assert (caller.limited, caller.token, caller.transport, caller.agent) == (
        False,
        "svc_live_x",
        "cli",
        "toolserver-cli",
    )
    assert local_caller(Settings(), "stdio").token is None


async def test_a_data_directory_of_the_simulated_world_is_refused_in_a_sentence(tmp_path):
    (tmp_path / MARKER).touch()
    (tmp_path / "ledger.sqlite3").touch()
    with pytest.raises(click.ClickException) as refused:
        async with local_service(Settings(data_dir=tmp_path)):
            pytest.fail("it was opened")
    assert str(tmp_path) in refused.value.message


async def test_a_process_that_sells_nothing_keeps_no_books_and_has_the_free_tools(tmp_path, caplog):
    settings = Settings(data_dir=tmp_path / "new")
    assert not keeps_books(settings)
    async with local_service(settings, books=False, background=False) as service:
        names = {operation.name for operation in service.registry}
        assert {"weather", "health"} < names
        assert names.isdisjoint({"premium_briefing", "payment_balance", "receipt_verify", "webhook_list"})
        assert service.money.file is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["answers.sqlite3"]
    assert caplog.messages == []


@pytest.mark.parametrize(
    "change",
    [
        {"payments": PaymentSettings(enabled=True, rpc_urls=["https://rpc.example"], xpub="xpub")},
        {"ledger": LedgerSettings(url="https://owner.example", key_id="a", secret="s" * 32)},
        {"ledger": LedgerSettings(port=0, keys={"a": "k" * 32}, services={"a": ["b"]})},
    ],
)
def test_books_are_kept_where_something_is_sold_shared_or_followed_or_there_are_some(tmp_path, change):
    assert keeps_books(Settings(data_dir=tmp_path, **change))
    (tmp_path / "ledger.sqlite3").touch()
    assert keeps_books(Settings(data_dir=tmp_path))


async def test_a_paid_call_without_books_says_where_it_can_be_made(local, tmp_path):
    made = local(Outcome)
    with pytest.raises(click.ClickException, match="--server"):
        await call_command(Settings(data_dir=tmp_path), "premium_report", {}, as_json=True)
    assert made.calls == []


class Outcome:
    class rendered:
        payload = b'{"value":3}'


class Local:
    """A service in which a call has the outcome of the test."""

    facts = FACTS

    def __init__(self, outcome):
        self.calls, self._outcome = [], outcome
        self.pipeline = self

    async def call(self, operation, given, caller):
        self.calls.append((operation.name, given, caller.transport))
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.fixture
def local(monkeypatch):
    def use(outcome):
        made = Local(outcome)

        @asynccontextmanager
        async def local_service(settings, registry=None, *, books):
            yield made

        monkeypatch.setattr(in_process, "local_service", local_service)
        monkeypatch.setattr(Registry, "load", lambda *packages: REGISTRY)
        return made

    return use


async def test_a_call_prints_the_answer_as_it_is_or_indented(local, capsys):
    made = local(Outcome)
    assert await call_command(Settings(), "number", {"a": 1}, as_json=True) == 0
    assert capsys.readouterr().out == '{"value":3}\n'
    assert await call_command(Settings(), "number", {}, as_json=False) == 0
    assert capsys.readouterr().out == '{\n  "value": 3\n}\n'
    assert made.calls == [("number", {"a": 1}, "cli"), ("number", {}, "cli")]


async def test_a_refused_call_is_a_problem_document_and_status_1(local, capsys):
    local(InvalidArguments("lat: must be a number", errors=[]))
    assert await call_command(Settings(), "number", {}, as_json=True) == 1
    captured = capsys.readouterr()
    problem = json.loads(captured.out)
    assert (problem["error"], problem["detail"]) == ("invalid_arguments", "lat: must be a number")
    assert await call_command(Settings(), "number", {}, as_json=False) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == problem


async def test_an_unknown_tool_is_named_and_nothing_is_called(local):
    made = local(Outcome)
    with pytest.raises(click.ClickException, match="there is no tool called nubmer"):
        await call_command(Settings(), "nubmer", {}, as_json=True)
    assert made.calls == []


def test_the_list_of_tools_is_a_table_with_prices_and_paths():
    lines = tools_listing(Settings(), "all", as_json=False).splitlines()
    assert lines[0].split()[:3] == ["tool", "price", "path"]
    rows = {line.split()[0]: line.split()[1:4] for line in lines[1:]}
    assert rows["forex"] == ["free", "GET", "/api/forex"]
    assert rows["premium_macro"] == ["2", "GET", "/api/pro/macro"]
    assert len(rows) == len(Registry.load("tools"))


def test_as_json_the_list_is_that_of_mcp_and_a_toolset_narrows_it():
    listed = json.loads(tools_listing(Settings(), "core", as_json=True))
    assert 0 < len(listed) < len(Registry.load("tools"))
    assert all({"name", "inputSchema"} <= tool.keys() for tool in listed)


def test_the_openapi_document_has_the_public_address_and_says_whether_the_world_is_simulated():
    document = json.loads(openapi_document(Settings(), "https://a.example"))
    simulated = openapi_document(Settings(upstream=UpstreamSettings(via="http://world")), "https://a.example")
    assert document["servers"] == [{"url": "https://a.example"}]
    assert "invented" in simulated
