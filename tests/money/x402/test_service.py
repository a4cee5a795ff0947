"""From settings to a desk that takes payments, and the command that runs a facilitator."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from pydantic import SecretStr

from tests.live.processes import ROOT
from tests.money.x402.parts import PAY_TO, REGISTRY
from tests.money.x402.parts import desk as paying
from toolserver.clock import Clock, ManualClock, SystemClock
from toolserver.money.ledger.store import open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402 import service
from toolserver.settings import PaymentSettings, X402Settings

ON: dict[str, Any] = {
    "enabled": True,
    "facilitator_url": "https://pay.example/x402",
    "pay_to": checksum_address(PAY_TO),
    "facilitator_token": "secret-token",
}


async def opened(
    folder: Path,
    settings: X402Settings,
    *,
    rpc: tuple[str, ...] = (),
    clock: Clock | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Any:
    clock = clock or SystemClock()
    payments = PaymentSettings(rpc_urls=[SecretStr(url) for url in rpc])
    async with (
        open_ledger(folder / "ledger.sqlite3", clock) as ledger,
        service.open_x402(
            settings,
            payments,
            ledger.file,
            clock=clock,
            base_url="https://data.example",
            host="data.example",
            transport=transport,
        ) as settling,
    ):
        await anyio.wait_all_tasks_blocked()
        return settling


async def test_off_is_off(tmp_path):
    assert await opened(tmp_path, X402Settings()) is None


@pytest.mark.parametrize(
    ("network", "logged"),
    [
        (NETWORK, "x402 payments are taken"),
        ("eip155:1", "does not make exact payments"),
        (None, "cannot be made"),
    ],
)
async def test_on_is_on_and_the_log_says_whether_it_works(tmp_path, caplog, network, logged):
    def facilitator(request: httpx.Request) -> httpx.Response:
        if network is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"kinds": [{"x402Version": 2, "scheme": "exact", "network": network}]})

    class Patient(ManualClock):
        async def sleep(self, seconds: float) -> None:
            await anyio.sleep(60)

    caplog.set_level(logging.INFO)
    settling = await opened(
        tmp_path,
        X402Settings(**ON),
        rpc=("http://127.0.0.1:1",),
        clock=Patient(SystemClock().now()),
        transport=httpx.MockTransport(facilitator),
    )
    assert settling is not None
    assert settling.terms.pay_to == PAY_TO
    assert settling.terms.find_most() == 999_000_000  # one server cannot agree with another
    assert logged in caplog.text
    assert "secret-token" not in caplog.text


def test_a_start_loads_no_library_of_a_chain():
    libraries = (
        "eth_utils",
        "eth_hash",
        "eth_keys",
        "eth_account",
        "hexbytes",
        "web3",
        "cryptography",
        "nacl",
        "httpx",
    )
    script = (
        "import sys, toolserver.app, rest_bridge.x402, toolserver.money.x402.service\n"
        f"print(*sorted(set({libraries}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- toolserver facilitator ---


# --- the facilitator as an ASGI callable ---


def test_what_is_sold_where_nothing_is_taken():
    nothing: Any = None
    assert service.topups_of(None, nothing) is None
    parts: Any = dict.fromkeys(("answers", "idempotency", "metrics", "receipts", "uncharged"))
    assert service.exact_of(None, **parts) is None


async def test_what_is_sold_where_payments_are_taken(tmp_path):
    async with paying(tmp_path) as d:
        exact = service.exact_of(
            d.settling,
            answers=d.engine.answers,
            idempotency=nothing(),
            metrics=d.engine.pipeline.metrics,
            receipts=None,
            uncharged=nothing(),
        )
        topups = service.topups_of(d.settling, d.ledger)
        assert exact is not None
        assert exact.offer(REGISTRY["premium_report"]).requirement["amount"] == "40000"
        assert topups is not None
        assert topups.offer(2_000_000).requirement["amount"] == "2000000"


def nothing() -> Any:
    return None
