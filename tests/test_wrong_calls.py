"""Test calls in which models use wrong argument names: every face refuses them and names the right argument.

`wrong_calls.json` has the tool, the arguments, and the argument that was meant, null where the tool has none.
"""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.requirements import proves
from tests.tools.premium.store import BEARER, FUNDS, store
from toolserver.cli.call import print_outcome
from toolserver.cli.local_service import local_caller
from toolserver.settings import LimitSettings, Settings

CALLS = json.loads((Path(__file__).parent / "wrong_calls.json").read_text(encoding="utf-8"))


@pytest.fixture
async def shop(tmp_path):
    async with store(tmp_path, limits=LimitSettings(enabled=False)) as s:
        yield s


def judge(shop, wrong, said):
    """The refusal names every valid argument, the one that was meant, and a call that is valid."""
    names = list(shop.service.registry[wrong["tool"]].arguments.model_fields)
    text = said["detail"]
    assert said["error"] == "invalid_arguments", wrong
    assert said["valid_arguments"] == names, wrong
    assert all(name in text for name in names), (wrong, text)
    if wrong["meant"] is not None:
        assert f"did you mean '{wrong['meant']}'?" in text, (wrong, text)
        assert wrong["meant"] in said["did_you_mean"], wrong
    assert said["example"]["name"] == wrong["tool"]
    assert said["example"]["arguments"].keys() <= set(names)


def test_the_list_has_200_calls_and_both_cases():
    assert len(CALLS) >= 200
    assert {wrong["meant"] is None for wrong in CALLS} == {True, False}


@proves("arguments.closed")
async def test_over_mcp_none_is_silently_ignored(shop):
    for wrong in CALLS:
        result = await shop.tell(wrong["tool"], wrong["arguments"])
        assert result["isError"] is True, wrong
        judge(shop, wrong, json.loads(result["content"][0]["text"]))
    assert await shop.balance() == FUNDS
    assert shop.upstreams.bodies == []


@proves("arguments.closed")
async def test_over_rest_none_is_silently_ignored(shop):
    for wrong in CALLS:
        operation = shop.service.registry[wrong["tool"]]
        if operation.method == "POST":
            refused = await shop.client.post(operation.path, json=wrong["arguments"], headers=BEARER)
        else:
            written = {
                name: value if isinstance(value, str) else json.dumps(value)
                for name, value in wrong["arguments"].items()
            }
            refused = await shop.client.get(f"{operation.path}?{urlencode(written)}", headers=BEARER)
        assert refused.status_code == 400, wrong
        judge(shop, wrong, refused.json())
    assert await shop.balance() == FUNDS


@proves("arguments.closed")
@pytest.mark.slow("every wrong call once more, on the command line")
async def test_on_the_command_line_none_is_silently_ignored(shop, capsys):
    caller = local_caller(Settings(), "cli")
    for wrong in CALLS:
        operation = shop.service.registry[wrong["tool"]]
        assert await print_outcome(shop.service, operation, wrong["arguments"], caller, "json") == 1, wrong
        judge(shop, wrong, json.loads(capsys.readouterr().out))
