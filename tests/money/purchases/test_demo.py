"""The simulated Base on a loopback port: everything that buying credits takes, without a chain."""

import time
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
from eth_account import Account
from eth_keys.datatypes import PrivateKey

import tools.simulated.base_chain
import tools.simulated.x402_facilitator
from tests.money.purchases.wallet import address, private_key
from tests.money.x402.official import signed
from tests.money.x402.parts import TERMS
from toolserver.errors import ChainUnavailable, InvalidArguments, PaymentPending, PaymentRequired
from toolserver.money.ledger.store import SqlLedger, open_ledger
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.node import ChainNode, NodeFacts
from toolserver.money.purchases.chain.relay import RelayedTransfer, open_relay
from toolserver.money.purchases.chain.rpc_pool import REST_S
from toolserver.money.purchases.credit_sales import Claim, CreditSales
from toolserver.money.purchases.demo import HOSTS, chain_url, demo_payments, demo_x402, pay_by_demo_wallet
from toolserver.money.purchases.offline_key import read_private_key
from toolserver.money.purchases.service import open_purchases
from toolserver.money.purchases.transfer_authorization import Authorization
from toolserver.money.purchases.units import USDC_TEXT
from toolserver.money.x402.facilitator import Facilitator
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


# --- signed transactions, and payments by x402 ---

BUYER_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"  # every local chain publishes it
RELAY = read_private_key("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6")
PAYEE = bytes([0x77]) * 20


async def submit(demo: Demo, one: Authorization, signature: bytes) -> RelayedTransfer:
    async def note(tx: bytes) -> None:
        demo.state.clock.run(20)
        demo.state.clock.thaw()  # a block is mined every tenth of a second

    clock = SharedSimClock(demo.state.clock)
    async with open_relay(demo.url, clock) as relay:
        return await relay.submit(one, signature, RELAY, note)


async def held(demo: Demo, *addresses: bytes) -> list[int]:
    node = ChainNode(demo.url)
    try:
        return await node.balances_at(addresses, int(await rpc(demo, "eth_blockNumber"), 16))
    finally:
        await node.aclose()


async def test_a_deposit_is_swept_by_a_signed_authorisation_once(demo):
    key = PrivateKey(private_key(0))
    deposit = key.public_key.to_canonical_address()
    await demo.pay(f"0x{deposit.hex()}", 5)
    demo.state.clock.advance(2)
    one = Authorization(deposit, PAYEE, 5_000_000, int(T) + 86_400, bytes([1]) * 32)

    sent = await submit(demo, one, one.sign(key))
    again = await submit(demo, one, one.sign(key))
    more = one._replace(nonce=bytes([2]) * 32)

    assert (sent.outcome, again.outcome) == ("sent", "used before")
    assert (await submit(demo, more, more.sign(key))).outcome == "refused"  # nothing is left there
    assert await held(demo, deposit, PAYEE) == [0, 5_000_000]
    receipt = await rpc(demo, "eth_getTransactionReceipt", f"0x{sent.tx.hex()}")
    assert [entry["topics"][0][:10] for entry in receipt["logs"]] == ["0x98de5035", "0xddf252ad"]
    assert receipt["from"] == RELAY.public_key.to_address()


@pytest.mark.parametrize(
    "changed",
    [{"valid_before": int(T) - 1}, {"amount": 4_999_999}, {"payee": bytes([0x78]) * 20}, {"nonce": bytes([3]) * 32}],
    ids=lambda changed: next(iter(changed)),
)
async def test_an_authorisation_that_was_changed_or_has_ended_moves_nothing(demo, changed):
    key = PrivateKey(private_key(0))
    deposit = key.public_key.to_canonical_address()
    await demo.pay(f"0x{deposit.hex()}", 5)
    demo.state.clock.advance(2)
    one = Authorization(deposit, PAYEE, 5_000_000, int(T) + 86_400, bytes([1]) * 32)
    other = one._replace(**changed)
    signature = other.sign(key) if "valid_before" in changed else one.sign(key)

    assert (await submit(demo, other, signature)).outcome == "refused"
    assert len(demo.state.edits.events) == 1


async def test_a_plain_transfer_in_a_signed_transaction_moves_what_its_sender_has(demo):
    buyer = Account.from_key(BUYER_KEY)

    async def send(amount: int, nonce: int) -> Any:
        data = f"0xa9059cbb{PAYEE.hex():0>64}{amount:064x}"
        fees = {"gas": 80_000, "maxFeePerGas": 10**7, "maxPriorityFeePerGas": 10**6, "value": 0}
        call = {"chainId": 8453, "to": USDC_TEXT, "data": data, "nonce": nonce, **fees}
        raw = bytes(buyer.sign_transaction(call).raw_transaction)
        return await said(demo, "eth_sendRawTransaction", f"0x{raw.hex()}")

    first = await send(3_000_000, 0)
    demo.state.clock.advance(2)
    assert (await rpc(demo, "eth_getTransactionReceipt", first["result"]))["status"] == "0x1"
    assert "already known" in (await send(3_000_000, 0))["error"]["message"]
    assert "nonce too high" in (await send(1, 2))["error"]["message"]
    assert "exceeds balance" in (await send(10**12, 1))["error"]["message"]


async def test_the_simulated_facilitator_settles_what_the_official_client_signed_once(demo):
    demo.state.clock.set(time.time())  # the client signs by the clock of this machine
    facilitator = Facilitator(str(demo_x402(str(demo.client.base_url).rstrip("/")).facilitator_url))
    requirement = TERMS.requirement(40_000)
    offer = {"x402Version": 2, "accepts": [requirement], "resource": TERMS.resource("/x", "x")}
    payment = await signed(offer)
    payer = payment["payload"]["authorization"]["from"]

    assert await facilitator.supported()
    assert await facilitator.verify(payment, requirement, payer) is None
    other = requirement | {"payTo": f"0x{PAYEE.hex()}"}
    assert await facilitator.verify(payment, other, payer) == "invalid_exact_evm_recipient_mismatch"
    done = await facilitator.settle(payment, requirement, payer)
    demo.state.clock.advance(2)
    again = await facilitator.settle(payment, requirement, payer)
    poor = await signed(
        {"x402Version": 2, "accepts": [requirement], "resource": TERMS.resource("/x", "x")}, "0x" + "44" * 32
    )
    poor_payer = poor["payload"]["authorization"]["from"]
    await facilitator.aclose()

    assert done.state == "settled"
    assert done.tx is not None
    assert (await rpc(demo, "eth_getTransactionReceipt", f"0x{done.tx.hex()}"))["status"] == "0x1"
    assert (again.state, again.reason) == ("failed", "invalid_exact_evm_nonce_already_used")
    facilitator = Facilitator(str(demo_x402(str(demo.client.base_url).rstrip("/")).facilitator_url))
    assert await facilitator.verify(poor, requirement, poor_payer) == "insufficient_funds"
    await facilitator.aclose()


async def test_a_payment_through_a_contract_and_one_of_another_token_are_told_apart(demo):
    wallet, contract = "0x" + "d0" * 20, "0x" + "c0" * 20
    body = {"to": wallet, "amount_usd": 2}
    by_contract = (await demo.client.post("/_sim/chain/transfer", json=body | {"via": contract})).json()
    foreign = (await demo.client.post("/_sim/chain/transfer", json=body | {"token": contract})).json()
    demo.state.clock.advance(2)
    assert (await rpc(demo, "eth_getTransactionByHash", by_contract["tx_hash"]))["to"] == contract
    receipt = await rpc(demo, "eth_getTransactionReceipt", foreign["tx_hash"])
    assert [entry["address"] for entry in receipt["logs"]] == [contract]
    assert await held(demo, bytes.fromhex(wallet[2:])) == [2_000_000]


async def test_a_payment_that_one_server_invents_is_in_the_answers_of_that_server_alone(demo):
    body = {"to": "0x" + "d0" * 20, "amount_usd": 5, "known_to": HOSTS[1]}
    invented = (await demo.client.post("/_sim/chain/transfer", json=body)).json()["tx_hash"]
    demo.state.clock.advance(2)
    said = {}
    for host in HOSTS:
        call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionReceipt", "params": [invented]}
        said[host] = (await demo.client.post(f"/u/{host}/", json=call)).json()["result"]
    assert said[HOSTS[0]] is None
    assert said[HOSTS[1]]["status"] == "0x1"


async def test_a_server_of_another_chain_has_another_number_and_none_of_our_blocks(demo):
    demo.state.faults.add({"match": HOSTS[0], "kind": "drift", "form": "other_chain"}, demo.state.world())
    assert await rpc(demo, "eth_chainId") == "0x1"
    assert await rpc(demo, "eth_getBlockByNumber", "latest", False) is None


async def test_a_signature_that_is_no_accounts_is_refused_by_the_simulated_chain(demo):
    payment = {"from": "0x" + "11" * 20, "to": "0x" + "22" * 20, "value": 5, "validAfter": 0, "validBefore": 2**40}
    for length in (0, 64, 161):
        words = (payment["from"], payment["to"], 5, 0, 2**40, "0x" + "33" * 32, "44" * length)
        with pytest.raises(tools.simulated.base_chain.BaseRpcError, match="invalid signature"):
            tools.simulated.base_chain.authorize(demo.state.world(), *words)
