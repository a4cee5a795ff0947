"""The Python client against a real server: every tool, a purchase, receipts, and the examples of its page."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.live.inbox import Inbox
from tests.live.model import Model, order_of_calls
from tests.live.processes import ROOT, UNLIMITED, Program, control, started
from toolserver.client import AsyncToolClient, ToolClient
from toolserver.errors import InsufficientCredits, InvalidToken
from toolserver.registry.registry import Registry

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

PAGE = ROOT / "docs" / "python-client.md"
WALLET = """
import httpx

def send_usdc(wallet: str, amount_atomic: int) -> str:
    sent = {{"to": wallet, "amount_usd": amount_atomic / 1_000_000}}
    httpx.put("{world}/_sim/clock", json={{"speed": 30}}).raise_for_status()
    answer = httpx.post("{world}/_sim/chain/transfer", json=sent).raise_for_status()
    return str(answer.json()["tx_hash"])
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **UNLIMITED) as program:
        yield program


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.close()


def test_every_tool_is_a_method_that_answers(program: Program, inbox: Inbox) -> None:
    model = Model({"webhook_url": inbox.url, "endpoint": "world-deltas"})
    registry = Registry.load("tools").unlist(["payment_topup"])
    with (
        ToolClient(program.url, token=program.ready["token"], timeout_s=60) as client,
        control(program.ready["world_url"]) as sim,
    ):
        for operation in sorted(registry.listed, key=lambda o: order_of_calls(o.method, o.path)):
            if operation.name == "payment_confirm":
                quote = client.payment_buy_credits(amount_usd=2).payload
                sim.put("clock", {"speed": 30})
                client.confirm(sim.paid(quote["wallet"], 2), quote["memo"])
                sim.put("clock", {"speed": 1})
                continue
            arguments = model.choose_arguments(operation.input_schema)
            if operation.name == "webhook_resend":  # only a delivery that was accepted
                arguments["delivery_id"] = client.webhook_test(id=arguments["id"]).payload["id"]
            answer = getattr(client, operation.name)(**arguments)
            model.hear(answer.receipt or "", answer.payload)
            assert isinstance(answer.payload, dict), operation.name
            if operation.credits:
                verdict = client.check_receipt(answer)
                assert verdict["valid"], (operation.name, verdict)
                assert verdict["core"]["id"] == answer.receipt_id
                assert client.check_receipt(type(answer)({}, b"{}", answer.headers))["checks"]["body"] is False


def test_a_purchase_a_paid_call_and_an_empty_purse_awaited(program: Program) -> None:
    async def run() -> None:
        async with AsyncToolClient(program.url) as client:
            with control(program.ready["world_url"]) as sim:

                async def pay(quote: "object") -> str:
                    sim.put("clock", {"speed": 30})
                    return sim.paid(quote["wallet"], 1)  # type: ignore[index]

                bought = await client.buy(1, pay)
                sim.put("clock", {"speed": 1})
            assert client.token == bought.payload["token"]
            given = await client.allowance_create(name="small", credits=1)
            async with AsyncToolClient(program.url, token=given.payload["token"]) as agent:
                with pytest.raises(InsufficientCredits) as poor:
                    await agent.premium_macro()
                assert poor.value.extra["cap"]
            first = await client.call("premium_briefing", idempotency_key="one")
            again = await client.call("premium_briefing", idempotency_key="one")
            assert (first.body, first.receipt) == (again.body, again.receipt)
            assert (await client.payment_balance()).payload["credits"] == 49
            assert (await client.check_receipt(first))["valid"]

    anyio.run(run)
    with ToolClient(program.url, token="svc_live_" + "0" * 64) as stranger, pytest.raises(InvalidToken):
        stranger.payment_balance()


def test_the_examples_of_its_page_run_and_are_typed(program: Program, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    text = "\n".join(blocks).replace("https://data.example", program.url)
    (tmp_path / "example.py").write_text(text.replace("svc_live_…", program.ready["token"]), encoding="utf-8")
    (tmp_path / "my_wallet.py").write_text(WALLET.format(world=program.ready["world_url"]), encoding="utf-8")

    environment = os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "['place']" in lines[2]
    assert lines[3].startswith("250 svc_live_")
    assert lines[4] == "True 1 249"
    assert lines[5] == "10"

    checked = ["mypy", "--strict", "--cache-dir", str(tmp_path / ".mypy"), "--follow-imports", "silent"]
    wrong = text + '\nbad = AsyncToolClient("").weather(town="Paris")\nlen(answer.payload["date"])\n'
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    for name, errors in (("example.py", 0), ("wrong.py", 2)):
        done = subprocess.run(
            [sys.executable, "-m", *checked, name], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.stdout.count("error:") == errors, done.stdout
