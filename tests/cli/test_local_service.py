"""The service in the process of a command: who calls it, and which data directories it takes."""

import json

import click
import pytest

from tests.garbage import garbage_found_afterwards
from toolserver.cli.local_service import has_data, local_caller, local_service, open_conversation
from toolserver.mcp.messages import read_message
from toolserver.serving.money import MARKER, keeps_books
from toolserver.settings import LedgerSettings, PaymentSettings, Settings


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


def test_an_answer_has_data_unless_its_data_is_null():
    assert [has_data(payload) for payload in ({"credits": 3}, {"data": []}, {"data": None})] == [True, True, False]


@pytest.fixture
def thawed():
    """What the service froze at its start is found by garbage collection again once the test has ended."""
    with garbage_found_afterwards():
        yield


async def test_a_conversation_has_the_free_tools_that_were_chosen_and_writes_no_ledger(tmp_path, thawed):
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    async with open_conversation({"data_dir": tmp_path}, toolset="core", tools=["forex", "weather"]) as conversation:
        answer = json.loads(await conversation.answer(line, read_message(line)))
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["forex", "weather"]
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite3"]
