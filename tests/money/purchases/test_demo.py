"""The simulated Base on a loopback port: everything that buying credits takes, without a chain."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

import tools.simulated.base_chain
from tests.money.purchases.wallet import address
from toolserver.errors import ChainUnavailable, InvalidArguments, PaymentPending, PaymentRequired
from toolserver.money.ledger.store import SqlLedger, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.node import ChainNode, NodeFacts
from toolserver.money.purchases.chain.rpc_pool import REST_S
from toolserver.money.purchases.credit_sales import Claim, CreditSales
from toolserver.money.purchases.demo import chain_url, demo_payments, pay_by_demo_wallet
from toolserver.money.purchases.service import open_purchases
from toolserver.world.model import ROUTES
from toolserver.world.server import serve_world
from toolserver.world.state import SharedSimClock, SimClock, WorldState

T = 1_800_000_000.0


@dataclass
class Demo:
    """A world, its chain, and a desk on it."""

    state: WorldState
    client: httpx.AsyncClient
    url: str
    ledger: SqlLedger
    payments: CreditSales

    async def pay(self, to: str, usd: Any, *, status: int = 200) -> Any:
        answer = await self.client.post("/_sim/chain/transfer", json={"to": to, "amount_usd": usd})
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Demo]:
    """With the clock stopped at T; whoever sleeps by it sleeps a hundredth of a second for a minute."""
    state = WorldState(clock=SimClock(T, frozen=True, speed=6000))
    clock = SharedSimClock(state.clock)
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(serve_world, state, ROUTES)
        base = f"http://127.0.0.1:{port}"
        settings = demo_payments(base).model_copy(update={"wait_s": 0})
        async with (
            httpx.AsyncClient(base_url=base, timeout=10) as client,
            open_ledger(tmp_path / "ledger.sqlite3", clock) as ledger,
            open_purchases(
                settings,
                ledger.file,
                ledger=ledger,
                clock=clock,
                host="h",
            ) as payments,
        ):
            yield Demo(state, client, chain_url(base), ledger, payments)
        tasks.cancel_scope.cancel()


async def test_the_chain_has_a_block_every_two_seconds(demo):
    node = ChainNode(demo.url)
    assert await node.facts() == NodeFacts(8453, 6, True)
    head = int((await rpc(demo, "eth_blockNumber")), 16)
    demo.state.clock.advance(10)
    assert int((await rpc(demo, "eth_blockNumber")), 16) == head + 5
    assert await node.block_hash(head) != await node.block_hash(head + 1)
    block = await rpc(demo, "eth_getBlockByNumber", hex(head + 1), False)
    assert block["parentHash"] == f"0x{(await node.block_hash(head)).hex()}"
    await node.aclose()


async def said(demo: Demo, method: str, *params: Any) -> Any:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await demo.client.post("/u/mainnet.base.org/", json=asked)).json()


async def rpc(demo: Demo, method: str, *params: Any) -> Any:
    return (await said(demo, method, *params))["result"]


async def test_the_chain_tells_what_wallets_and_nodes_ask_for(demo):
    wallet = "0x" + "d0" * 20
    sent = await demo.pay(wallet, 2.5)
    again = await demo.pay(wallet, "1.000001")
    demo.state.clock.advance(4)
    number = (await rpc(demo, "eth_getTransactionReceipt", sent["tx_hash"]))["blockNumber"]
    block = await rpc(demo, "eth_getBlockByNumber", number, True)
    assert [each["hash"] for each in block["transactions"]] == [sent["tx_hash"], again["tx_hash"]]
    call = {"to": tools.simulated.base_chain.USDC, "data": f"0x70a08231{wallet[2:]:0>64}"}
    assert int(await rpc(demo, "eth_call", call, "latest"), 16) == 3_500_001
    assert int(await rpc(demo, "eth_call", call, "safe"), 16) == 0
    assert await rpc(demo, "eth_call", {"to": wallet, "data": "0x"}, "latest") == "0x"
    assert await rpc(demo, "eth_getCode", wallet, "latest") == "0x"
    assert await rpc(demo, "eth_getTransactionByHash", "0x" + "0" * 64) is None
    assert await rpc(demo, "eth_getBlockByNumber", hex(2**40), False) is None
    assert await rpc(demo, "net_version") == "8453"
    for asked in (("eth_call", call | {"data": "0x12345678"}, "latest"), ("eth_mining",), ("eth_call", 5)):
        assert "error" in await said(demo, *asked)
    many = [{"jsonrpc": "2.0", "id": i, "method": "eth_chainId"} for i in range(2)]
    answer = await demo.client.post("/u/mainnet.base.org/", json=many)
    assert [each["result"] for each in answer.json()] == ["0x2105", "0x2105"]


async def test_credits_are_bought_with_a_payment_made_by_hand(demo):
    quote = await demo.payments.quote(Decimal("5"))
    assert quote.wallet == checksum_address(address(0))
    sent = await demo.pay(quote.wallet, 5)
    claim = Claim(sent["tx_hash"], quote.memo)
    with pytest.raises(PaymentPending):
        await demo.payments.confirm(claim)
    demo.state.clock.advance(6)
    with pytest.raises(PaymentPending):
        await demo.payments.confirm(claim)
    demo.state.clock.advance(3)
    bought = await demo.payments.confirm(claim)
    assert bought.credits == 250
    balance = await demo.payments.balance(bought.token)
    assert balance.credits == 250
    assert quote.expires_at - balance.issued_at == timedelta(minutes=30, seconds=-9)


async def test_a_large_payment_waits_for_a_safe_block_and_both_servers(demo):
    quote = await demo.payments.quote(Decimal("2000"))
    claim = Claim((await demo.pay(quote.wallet, "2000"))["tx_hash"], quote.memo)
    demo.state.clock.advance(110)
    with pytest.raises(PaymentPending) as pending:
        await demo.payments.confirm(claim)
    assert pending.value.extra["required"] == 60
    demo.state.clock.advance(15)
    assert (await demo.payments.confirm(claim)).credits == 100_000


async def test_faults_of_the_servers_are_what_buyers_are_told(demo):
    quote = await demo.payments.quote(Decimal("5"))
    claim = Claim((await demo.pay(quote.wallet, 5))["tx_hash"], quote.memo)
    demo.state.clock.advance(20)
    faults = {"status": ChainUnavailable, "html200": ChainUnavailable, "empty": PaymentPending}
    for kind, error in (faults | {"rate_limit": ChainUnavailable}).items():
        more = {"n": 0} if kind == "rate_limit" else {}
        await demo.client.post("/_sim/faults", json={"match": "Base.rpc", "kind": kind} | more)
        with pytest.raises(error):
            await demo.payments.confirm(claim)
        await demo.client.delete("/_sim/faults")
        demo.state.clock.advance(REST_S + 1)  # the look at the start may have been a server's third failure in a row
    assert (await demo.payments.confirm(claim)).credits == 250


async def test_a_payment_that_is_undone_is_taken_back(demo):
    quote = await demo.payments.quote(Decimal("5"))
    sent = await demo.pay(quote.wallet, 5)
    demo.state.clock.advance(20)
    token = (await demo.payments.confirm(Claim(sent["tx_hash"], quote.memo))).token
    assert (await demo.client.delete(f"/_sim/chain/{sent['tx_hash']}")).status_code == 200
    with anyio.fail_after(20):  # the watch looks once a minute of the world's time
        while not (await demo.ledger.standing(token)).revoked:
            demo.state.clock.advance(60)
            await anyio.lowlevel.checkpoint()
    with pytest.raises(PaymentRequired) as refused:
        await demo.ledger.balance(token)
    assert refused.value.code == "expired"


async def test_payments_survive_a_scenario_and_not_a_reset(demo):
    await demo.pay("0x" + "d0" * 20, 5)
    await demo.client.put("/_sim/scenario", json={"name": "quiet"})
    assert len((await demo.client.get("/_sim/chain")).json()) == 1
    await demo.client.post("/_sim/reset")
    assert (await demo.client.get("/_sim/chain")).json() == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"to": "0x12", "amount_usd": 5},
        {"to": "0x" + "d0" * 20},
        {"to": "0x" + "d0" * 20, "amount_usd": 0},
        {"to": "0x" + "d0" * 20, "amount_usd": "1e400"},
        {"to": "0x" + "d0" * 20, "amount_usd": "NaN"},
        {"to": "0x" + "d0" * 20, "amount_usd": "five"},
        {"to": "0x" + "d0" * 20, "amount_usd": 0.0000001},
        {"to": "0x" + "d0" * 20, "amount_usd": True},
        {"to": "0x" + "d0" * 20, "amount_usd": 5, "memo": "x"},
    ],
)
async def test_a_transfer_that_makes_no_sense_is_refused(demo, body):
    answer = await demo.client.post("/_sim/chain/transfer", json=body)
    assert answer.status_code == 400
    assert (await demo.client.get("/_sim/chain")).json() == []


async def test_a_world_that_is_full_takes_no_more_payments(demo):
    demo.state.edits_most = 1
    await demo.pay("0x" + "d0" * 20, 5)
    assert "too many" in (await demo.pay("0x" + "d0" * 20, 5, status=400))["error"]


async def test_what_is_not_there_cannot_be_undone(demo):
    assert (await demo.client.delete(f"/_sim/chain/0x{'1' * 64}")).status_code == 404
    assert (await demo.client.post("/_sim/chain/faucet", json={})).status_code == 404


async def test_the_demo_wallet_pays_on_the_simulated_chain_and_passes_on_what_the_world_refuses(demo):
    world, wallet = demo.url.removesuffix("/u/mainnet.base.org/"), "0x" + "d2" * 20
    tx_hash = await pay_by_demo_wallet(world, wallet, 2.5)
    demo.state.clock.advance(4)
    assert (await rpc(demo, "eth_getTransactionReceipt", tx_hash))["status"] == "0x1"
    with pytest.raises(InvalidArguments, match="The simulated world says: to must be an address"):
        await pay_by_demo_wallet(world, "somewhere", 2.5)


async def test_the_demo_wallet_says_when_the_world_is_away(free_tcp_port):
    with pytest.raises(ChainUnavailable):
        await pay_by_demo_wallet(f"http://127.0.0.1:{free_tcp_port}", "0x" + "d2" * 20, 1)


async def test_a_transfer_is_found_by_its_recipient_but_dust_and_what_came_before_are_not(demo):
    node, wallet = ChainNode(demo.url), "0x" + "d3" * 20
    await demo.pay(wallet, 4)
    demo.state.clock.advance(600)
    quoted = int(T) + 600
    await demo.pay(wallet, 0.5)
    demo.state.clock.advance(4)
    assert await node.find_transfer(bytes.fromhex(wallet[2:]), quoted) is None
    sent = await demo.pay(wallet, 1)
    await demo.pay(wallet, 3)
    await demo.pay("0x" + "d4" * 20, 3)
    demo.state.clock.advance(4)
    assert await node.find_transfer(bytes.fromhex(wallet[2:]), quoted) == bytes.fromhex(sent["tx_hash"][2:])
    assert await node.find_transfer(bytes(20), quoted) is None
    await node.aclose()
