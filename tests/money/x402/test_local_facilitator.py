"""The official facilitator as an ASGI callable, and the key file that it is given."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from x402.schemas import (
    PaymentPayload,
    PaymentRequirements,
    SchemeNotFoundError,
    SettleResponse,
    SupportedResponse,
    VerifyResponse,
)

from tests.money.x402.chain import FEES_KEY
from tests.money.x402.parts import payload
from toolserver.money.purchases.offline_key import KeyRefused
from toolserver.money.x402 import local_facilitator


def test_a_key_file_that_is_taken(tmp_path):
    path = tmp_path / "fees.key"
    path.write_text(f"0x{FEES_KEY}\n")
    path.chmod(0o600)
    assert local_facilitator.key_from(path) == f"0x{FEES_KEY}"
    with pytest.raises(KeyRefused):
        local_facilitator.key_from(tmp_path / "none")


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
    transport = httpx.ASGITransport(local_facilitator.LocalFacilitator(official))
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

    app = local_facilitator.LocalFacilitator(Official())
    await app({"type": "lifespan"}, receive, send)
    await app({"type": "websocket"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_the_official_facilitator_is_made_with_a_key_and_no_connection():
    made = local_facilitator.official("http://127.0.0.1:1", f"0x{FEES_KEY}")
    assert [kind.network for kind in made.get_supported().kinds] == ["eip155:8453"]


@pytest.mark.parametrize(("text", "mode"), [("0x12", 0o600), ("zz" * 32, 0o600), (FEES_KEY, 0o644), (FEES_KEY, 0o606)])
def test_a_key_file_that_holds_no_key_or_is_open_to_others_is_refused_without_its_text(tmp_path, text, mode):
    path = Path(tmp_path) / "fees.key"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(KeyRefused) as refused:
        local_facilitator.key_from(path)
    assert text not in str(refused.value)
