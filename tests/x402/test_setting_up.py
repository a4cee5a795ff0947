"""From settings to a desk that takes payments, and the command that runs a facilitator."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from click.testing import CliRunner
from pydantic import SecretStr, ValidationError
from x402.schemas import (
    PaymentPayload,
    PaymentRequirements,
    SchemeNotFoundError,
    SettleResponse,
    SupportedResponse,
    VerifyResponse,
)

from tests.live.processes import ROOT
from tests.x402.chain import FEES_KEY
from tests.x402.parts import PAY_TO, REGISTRY, payload
from tests.x402.parts import desk as paying
from toolserver.billing.sqlite import opened_ledger
from toolserver.clock import Clock, ManualClock, SystemClock
from toolserver.payments.deposit import checksummed
from toolserver.payments.x402 import desk, local
from toolserver.payments.x402.commands import facilitator
from toolserver.payments.x402.facilitator import Facilitator, FacilitatorDown
from toolserver.settings import X402, Payments

ON: dict[str, Any] = {
    "enabled": True,
    "facilitator_url": "https://pay.example/x402",
    "pay_to": checksummed(PAY_TO),
    "facilitator_token": "secret-token",
}


@pytest.mark.parametrize(
    "changed",
    [
        {"facilitator_url": None},
        {"pay_to": None},
        {"pay_to": "0x12"},
        {"facilitator_url": "http://pay.example"},
        {"facilitator_url": "ftp://pay.example"},
        {"facilitator_url": "https://a:b@pay.example"},
        {"facilitator_url": "https://pay.example/?key=1"},
        {"facilitator_url": "https://"},
        {"max_timeout_seconds": 5},
    ],
)
def test_settings_that_cannot_work(changed):
    with pytest.raises(ValidationError):
        X402(**(ON | changed))


def test_settings_that_work():
    assert X402().enabled is False
    assert X402(**(ON | {"facilitator_url": "https://pay.example/x/"})).facilitator_url == "https://pay.example/x"
    assert X402(**(ON | {"facilitator_url": "http://127.0.0.1:8402"})).enabled
    assert "secret-token" not in repr(X402(**ON))


async def opened(folder: Path, settings: X402, *, rpc: tuple[str, ...] = (), clock: Clock | None = None) -> Any:
    clock = clock or SystemClock()
    payments = Payments(rpc_urls=[SecretStr(url) for url in rpc])
    async with (
        opened_ledger(folder / "ledger.sqlite3", clock) as ledger,
        desk.opened_x402(
            settings, payments, ledger=ledger, clock=clock, base_url="https://data.example", host="data.example"
        ) as settling,
    ):
        await anyio.sleep(0.05)
        return settling


async def test_off_is_off(tmp_path):
    assert await opened(tmp_path, X402()) is None


@pytest.mark.parametrize("said", [True, False, FacilitatorDown("ConnectError")])
async def test_on_is_on_and_the_log_says_whether_it_works(tmp_path, monkeypatch, caplog, said):
    async def supported(self: Facilitator) -> bool:
        if isinstance(said, Exception):
            raise said
        return said

    class Patient(ManualClock):
        async def sleep(self, seconds: float) -> None:
            await anyio.sleep(60)

    monkeypatch.setattr(Facilitator, "supported", supported)
    caplog.set_level(logging.INFO)
    settling = await opened(tmp_path, X402(**ON), rpc=("http://127.0.0.1:1",), clock=Patient(SystemClock().now()))
    assert settling is not None
    assert settling.terms.pay_to == PAY_TO
    assert settling.terms.most == 1_000_000_000
    wanted = {True: "x402 payments are taken", False: "does not make exact payments"}.get(said, "cannot be made")  # type: ignore[call-overload]
    assert wanted in caplog.text
    assert "secret-token" not in caplog.text


def test_a_start_without_x402_loads_nothing_of_it():
    script = (
        "import sys, toolserver.app, rest_bridge.x402, toolserver.payments.x402.desk\n"
        "print(*[m for m in sys.modules if m.startswith('toolserver.payments.x402.') or m == 'eth_utils'])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split(), reverse=True) == [
        "toolserver.payments.x402.headers",
        "toolserver.payments.x402.desk",
    ]


# --- toolserver facilitator ---


@pytest.mark.parametrize(
    ("text", "mode"), [("", 0o600), ("0x12", 0o600), ("zz" * 32, 0o600), (FEES_KEY, 0o644), ("é", 0o600)]
)
def test_a_key_file_that_is_refused(tmp_path, text, mode):
    path = tmp_path / "fees.key"
    path.write_text(text)
    path.chmod(mode)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(path)])
    assert done.exit_code == 1
    assert str(path) in done.output
    assert not text or text not in done.output


def test_a_key_file_that_is_taken(tmp_path):
    path = tmp_path / "fees.key"
    path.write_text(f"0x{FEES_KEY}\n")
    path.chmod(0o600)
    assert local.key_from(path) == f"0x{FEES_KEY}"
    with pytest.raises(local.KeyRefused):
        local.key_from(tmp_path / "none")


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "fees.key"
    path.write_text(FEES_KEY)
    path.chmod(0o600)
    monkeypatch.setitem(sys.modules, "x402", None)
    done = CliRunner().invoke(facilitator, ["--rpc", "http://127.0.0.1:1", "--key-file", str(path)])
    assert done.exit_code == 1
    assert "toolserver[x402]" in done.output


# --- the facilitator as an ASGI callable ---


class Official:
    """In the place of the official code."""

    def __init__(self) -> None:
        self.fails: Exception | None = None

    def get_supported(self) -> SupportedResponse:
        return SupportedResponse(kinds=[])

    def verify(self, payment: PaymentPayload, requirement: PaymentRequirements) -> VerifyResponse:
        if self.fails is not None:
            raise self.fails
        return VerifyResponse(is_valid=requirement.amount == "40000")

    def settle(self, payment: PaymentPayload, requirement: PaymentRequirements) -> SettleResponse:
        return SettleResponse(success=True, transaction="0x12", network="eip155:8453")


async def test_a_facilitator_of_ones_own():
    official = Official()
    transport = httpx.ASGITransport(local.LocalFacilitator(official))
    said = {"x402Version": 2, "paymentPayload": payload(), "paymentRequirements": payload()["accepted"]}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/supported")).json()["kinds"] == []
        assert (await client.post("/verify", json=said)).json() == {"isValid": True}
        assert (await client.post("/settle", json=said)).json()["transaction"] == "0x12"
        assert (await client.get("/settle")).status_code == 404
        for body in (b"", b"{}", b"[]", b"1", b" " * 70_000):
            assert (await client.post("/settle", content=body)).status_code == 400
        official.fails = SchemeNotFoundError("exact", "eip155:1")
        assert (await client.post("/verify", json=said)).status_code == 400
        official.fails = RuntimeError("the inside must not be seen")
        failed = await client.post("/verify", json=said)
        assert (failed.status_code, "inside" in failed.text) == (500, False)


async def test_it_lives_as_long_as_its_server():
    sent = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    app = local.LocalFacilitator(Official())
    await app({"type": "lifespan"}, receive, send)
    await app({"type": "websocket"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_the_official_facilitator_is_made_with_a_key_and_no_connection():
    made = local.official("http://127.0.0.1:1", f"0x{FEES_KEY}")
    assert [kind.network for kind in made.get_supported().kinds] == ["eip155:8453"]


def test_what_is_sold_where_nothing_is_taken():
    nothing: Any = None
    assert desk.topups_of(None, nothing) is None
    assert desk.exact_of(None, answers=nothing, idempotency=nothing, metrics=nothing, receipts=None) is None


async def test_what_is_sold_where_payments_are_taken(tmp_path):
    async with paying(tmp_path) as d:
        exact = desk.exact_of(
            d.settling,
            answers=d.engine.answers,
            idempotency=nothing(),
            metrics=d.engine.pipeline.metrics,
            receipts=None,
        )
        topups = desk.topups_of(d.settling, d.ledger)
        assert exact is not None
        assert exact.offer(REGISTRY["premium_report"]).requirement["amount"] == "40000"
        assert topups is not None
        assert topups.offer(2_000_000).requirement["amount"] == "2000000"


def nothing() -> Any:
    return None
