"""What official clients paid for, sent again: later, after a restart, after a reorganisation, and by a stranger."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.money.x402.chain import Pay, anvil, facilitating
from tests.money.x402.official import OFFICIAL, LaterClock, Running, paid, running
from tests.money.x402.parts import REPORT, TERMS
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.chain.reorg_watch import MISSING_S
from toolserver.money.x402 import wire

pytestmark = [pytest.mark.live, pytest.mark.timeout(90)]

PATH, BODY = "/api/pro/report?history=30d", {"amount_usd": 1}
TOPUP, USD = "/api/payment/topup", 1_000_000
# Seconds since the payment, and whether its call is still answered: for ten minutes, as no key came with it.
LATER = ((1, True), (180, True), (480, True), (3600, False), (100_000, False))


@pytest.fixture
def pay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pay]:
    """A chain of the test's own, whose blocks may be undone, and a facilitator."""
    with anvil() as chain, facilitating(chain.url, tmp_path_factory.mktemp("fees")) as url:
        yield Pay(chain, url)


async def rebuilt(pay: Pay, paid_for: dict[str, Any]) -> tuple[str, str]:
    """The payment as a stranger writes it who sees nothing but the chain: in version 2, and in version 1."""
    tx = pay.chain.rpc("eth_getTransactionByHash", paid_for["transaction"])
    words = bytes.fromhex(tx["input"][10:])
    payer, payee, value, after, before, nonce, *rest = (words[n : n + 32] for n in range(0, 32 * 9, 32))
    v, r, s = rest  # or the place of the signature, its length, and its beginning
    signature = r + s + v[-1:] if v[-1] in (27, 28) else words[32 * 8 : 32 * 8 + 65]
    assert int.from_bytes(value, "big") == paid_for["amount"]
    v = words[32 * 6 : 32 * 7]
    authorization = {
        "from": checksum_address(payer[12:]),
        "to": checksum_address(payee[12:]),
        "value": str(int.from_bytes(value, "big")),
        "validAfter": str(int.from_bytes(after, "big")),
        "validBefore": str(int.from_bytes(before, "big")),
        "nonce": f"0x{nonce.hex()}",
    }
    given = {"signature": f"0x{signature.hex()}", "authorization": authorization}
    two = {"x402Version": 2, "payload": given, "accepted": TERMS.requirement(paid_for["amount"])}
    one = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": given}
    return wire.header(two), wire.header(one)


async def call_again(
    client: httpx.AsyncClient, header: dict[str, str], call: dict[str, Any], *, answered: bool
) -> None:
    answer = await client.get(PATH, headers=header)
    assert "payment-required" not in answer.headers
    if answered:
        assert (answer.status_code, answer.json()) == (200, call["body"])
        assert answer.headers["x-service-receipt"] == call["receipt"]
    else:
        assert (answer.status_code, answer.json()["error"]) == (409, "payment_used")


async def top_up_again(client: httpx.AsyncClient, header: dict[str, str], topup: dict[str, Any], why: str) -> None:
    """The credits stand; whoever shows the payment and knows nothing else gets no token and no offer."""
    answer = await client.post(TOPUP, json=BODY, headers=header)
    assert (answer.status_code, answer.json()["error"]) == (409, why), answer.text
    assert "payment-required" not in answer.headers
    assert topup["body"]["token"] not in answer.text


async def send_again(s: Running, pay: Pay, found: dict[str, Any], *, answered: bool, why: str) -> None:
    """Every payment, as it was sent and as a stranger rebuilds it, in both versions."""
    call, topup = found["call"], found["topup"]
    names = ("payment-signature", "x-payment")
    async with httpx.AsyncClient(base_url=s.url, timeout=30, trust_env=False) as client:
        for name in names:
            await call_again(client, {name: call["payment"]}, call, answered=answered)
            await top_up_again(client, {name: topup["payment"]}, topup, why)
        for name, *texts in zip(names, *found["rebuilt"], strict=True):
            await call_again(client, {name: texts[0]}, call, answered=answered)
            await top_up_again(client, {name: texts[1]}, topup, why)


async def note_chain(pay: Pay, found: dict[str, Any]) -> dict[str, Any]:
    """The same with the transactions, and the payments as they can be read from them."""
    hashes = [found["call"]["response"]["transaction"], found["topup"]["body"]["transaction"]]
    facts = ({"transaction": tx, "amount": amount} for tx, amount in zip(hashes, (REPORT, USD), strict=True))
    return found | {"transactions": hashes, "rebuilt": [await rebuilt(pay, fact) for fact in facts]}


@pytest.mark.parametrize("client", OFFICIAL)
async def test_a_payment_that_is_sent_again_is_one_payment_and_one_credit(tmp_path, pay, client):
    """After 1 s, 3 minutes, an hour; each time by its sender and by a stranger; and all of it again after a restart."""
    clock, before = LaterClock(), paid(pay)
    async with running(tmp_path, pay, clock=clock) as s:
        found = await note_chain(pay, await client(s, pay))
        for ahead_s, answered in LATER:
            clock.ahead_s = ahead_s
            await send_again(s, pay, found, answered=answered, why="payer_proof_required")
        assert await s.doors.desk.minted() == 50
    for ahead_s, answered in LATER:
        clock.ahead_s = ahead_s
        async with running(tmp_path, pay, clock=clock) as s:
            await send_again(s, pay, found, answered=answered, why="payer_proof_required")
            assert await s.doors.desk.minted() == 50
    assert paid(pay) - before == REPORT + USD


@pytest.mark.parametrize("client", OFFICIAL)
async def test_after_a_reorganisation_nothing_is_offered_anew_and_nothing_credited_twice(tmp_path, pay, client):
    """First both payments move to other blocks, where they count; then they are gone, and the credits with them."""
    clock, before = LaterClock(), paid(pay)
    nodes = [ChainNode(pay.chain.url, timeout_s=15)]
    async with running(tmp_path, pay, clock=clock, servers=nodes) as s:
        found = await note_chain(pay, await client(s, pay))
        pay.chain.reorganise(2, *((tx, n) for n, tx in enumerate(found["transactions"])))
        await look(s, clock)
        await send_again(s, pay, found, answered=True, why="payer_proof_required")
        assert (await s.doors.desk.minted(), paid(pay) - before) == (50, REPORT + USD)
        pay.chain.reorganise(2)
        await look(s, clock)
        assert (await s.doors.desk.minted(), paid(pay) - before) == (0, 0)
        await send_again(s, pay, found, answered=True, why="already_credited")
        assert (await s.doors.desk.minted(), paid(pay) - before) == (0, 0)


async def look(s: Running, clock: LaterClock) -> None:
    """Two looks of the watch, far enough from one another that what is missing counts as gone."""
    assert s.doors.desk.settling.finality is not None
    for _ in range(2):
        await s.doors.desk.settling.finality.look()
        clock.ahead_s += MISSING_S + 1
