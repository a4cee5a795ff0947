"""`toolserver serve` with x402 on: an official client pays the whole service, and gets real tools for it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from x402.http.clients import x402HttpxClient

from tests.live.processes import UNLIMITED, Program, started
from tests.money.x402.chain import PAYER_KEY, anvil, facilitating
from tests.money.x402.parts import PAY_TO
from tests.money.x402.test_live import wallet
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.x402 import wire

pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The service on the simulated world, paid on a local chain."""
    folder: Path = tmp_path_factory.mktemp("served")
    with anvil() as chain, facilitating(chain.url, folder) as url, started("world", folder=folder) as world:
        settings = {
            "TOOLSERVER_UPSTREAM__VIA": world.url,
            "TOOLSERVER_SOURCES__LICENCE_POLICY": "any",
            "TOOLSERVER_X402__ENABLED": "true",
            "TOOLSERVER_X402__FACILITATOR_URL": url,
            "TOOLSERVER_X402__PAY_TO": checksum_address(PAY_TO),
            "TOOLSERVER_PAYMENTS__RPC_URLS": f'["{chain.url}"]',
        }
        with started("serve", folder=folder, **UNLIMITED, **settings) as program:
            yield program


async def test_a_call_and_a_top_up_are_paid_for(served):
    async with x402HttpxClient(wallet(PAYER_KEY), base_url=served.url, timeout=30) as client:
        call = await client.get("/api/pro/macro")
        assert call.status_code == 200, call.text
        assert call.json()["economic"]
        assert wire.unheader(call.headers["payment-response"])["success"] is True
        verdict = await client.post("/api/receipt/verify", json={"receipt": call.headers["x-service-receipt"]})
        assert verdict.json()["valid"] is True

        bought = await client.post("/api/payment/topup", json={"amount_usd": 1})
        assert bought.status_code == 200, bought.text
        bearer = {"authorization": f"Bearer {bought.json()['token']}"}
        assert (await client.get("/api/payment/balance", headers=bearer)).json()["credits"] == 50
        paid = await client.get("/api/pro/macro", headers=bearer)
        assert (paid.status_code, paid.headers["x-credits-remaining"]) == (200, "48")


def test_what_is_offered(served):
    with httpx.Client(base_url=served.url, timeout=30) as client:
        listed = client.get("/.well-known/x402.json").json()["resources"]
        assert {"/api/pro/macro", "/api/payment/topup"} <= {httpx.URL(each["resource"]).path for each in listed}
        for path in [httpx.URL(each["resource"]).path for each in listed if each["method"] == "GET"]:
            unpaid = client.get(path)
            assert (unpaid.status_code, "payment-required" in unpaid.headers) == (402, True), path
        assert "x402 payments are taken" in served.said
