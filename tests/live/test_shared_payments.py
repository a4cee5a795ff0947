"""One signed payment (x402) that real servers on one database are sent at once is made once, and buys one answer."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from tests.hostile.payable_chain import PayableChain, payable_chain
from tests.live.processes import UNLIMITED, Program, control, started
from tests.live.test_shared_database import BRIEFING, Shop, instances
from tests.money.x402.parts import PAY_TO, payload
from tests.postgres import url_of
from toolserver.money.x402 import wire

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

PRICE, USD, VALID_S = 20_000, 2, 120  # the price in millionths of a dollar
ROUNDS = 5


@pytest.fixture
def chain() -> Iterator[PayableChain]:
    """A chain with a facilitator, on a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(payable_chain()) as found:
        yield found


@pytest.fixture
def shop(tmp_path: Path, chain: PayableChain) -> Iterator[Shop]:
    with started("world", folder=tmp_path) as world, control(world.url) as sim:
        sim.put("clock", {"now": chain.now})
        servers = json.dumps([f"{chain.url}/one", f"{chain.url}/two"])
        sells = {"X402__ENABLED": "true", "X402__FACILITATOR_URL": f"{chain.url}/x402"}
        sells |= {"X402__PAY_TO": f"0x{PAY_TO.hex()}", "PAYMENTS__RPC_URLS": servers, "PAYMENTS__WAIT_S": "0"}
        sells |= {"UPSTREAM__VIA": world.url, "SOURCES__LICENCE_POLICY": "any", "DATABASE_URL": url_of(tmp_path)}
        yield Shop(tmp_path, world, UNLIMITED | {f"TOOLSERVER_{name}": value for name, value in sells.items()})


def signed(chain: PayableChain, amount: int) -> dict[str, str]:
    """The header of a payment that nobody has sent before."""
    return {"payment-signature": wire.header(payload(amount, validBefore=str(int(chain.now) + VALID_S)))}


def send_to_all(servers: list[Program], method: str, path: str, headers: dict[str, str], **more: Any) -> list[Any]:
    """The answers of all servers to one payment, twice each, all at once; who has to wait asks again."""

    def send(at: Program) -> httpx.Response:
        with httpx.Client(base_url=at.url, headers=headers, timeout=60, trust_env=False) as client:
            for _ in range(20):
                answer = client.request(method, path, **more)
                if answer.status_code != 503:
                    break
                time.sleep(0.5)
            return answer

    with ThreadPoolExecutor(2 * len(servers)) as threads:
        return list(threads.map(send, servers * 2))


def test_a_payment_sent_to_all_at_once_is_made_once_and_buys_one_answer(shop: Shop, chain: PayableChain) -> None:
    with instances(shop, 3) as servers:
        for round in range(1, ROUNDS + 1):
            answers = send_to_all(servers, "GET", BRIEFING, signed(chain, PRICE))
            assert {each.status_code for each in answers} == {200}, [each.text[:300] for each in answers]
            assert len({each.content for each in answers}) == 1
            assert len({each.headers["x-service-receipt-id"] for each in answers}) == 1
            assert len(chain.events) == round
        ((count, sold),) = shop.rows("SELECT count(*), count(answered_at) FROM x402_payment WHERE state = 'settled'")
        assert (count, sold) == (ROUNDS, ROUNDS)
        shop.require_right_books()


def test_a_payment_for_credits_sent_to_all_at_once_credits_them_once(shop: Shop, chain: PayableChain) -> None:
    with instances(shop, 3) as servers:
        headers = signed(chain, USD * 10**6) | {"idempotency-key": "a" * 32}
        answers = send_to_all(servers, "POST", "/api/payment/topup", headers, json={"amount_usd": USD})
        assert {each.status_code for each in answers} == {200}, [each.text[:300] for each in answers]
        assert len({each.json()["token"] for each in answers}) == 1
        assert len(chain.events) == 1
        ((minted,),) = shop.rows("SELECT sum(credits) FROM account WHERE kind = 'token'")
        assert minted == 50 * USD
