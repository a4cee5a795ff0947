"""One address for all purchases, on a real chain: what shows whose payment it is; and how deposits are collected."""

import json

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data

from tests.money.purchases.anvil import ALICE, MALLORY, RELAY, START, transfer_call
from tests.money.purchases.onchain import confirmed, execute, wallet
from tests.money.purchases.parts import KEY, desk
from tests.money.purchases.wallet import private_key
from toolserver.errors import (
    PayerProofRequired,
)
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.service import Rules
from toolserver.money.purchases.sweep import find_funded, plan
from toolserver.money.purchases.transfer_authorization import Authorization, read_document
from toolserver.money.purchases.units import USDC

pytestmark = pytest.mark.live

# --- one address for all


SHARED = bytes([0xD0]) * 20


@pytest.fixture
async def sharing(anvil, chain_clock, tmp_path):
    rules = Rules(wait_s=0, shared=True, host="data.example")
    async with desk(
        tmp_path, [ChainNode(anvil.url, timeout_s=15)], clock=chain_clock, rules=rules, wallet=SHARED
    ) as made:
        yield made


def signature(index: int, memo: str, tx: str) -> str:
    text = f"data.example confirm {memo} {tx} chain 8453"
    signed = Account.from_key(private_key(index, 0)).sign_message(encode_defunct(text=text))
    return "0x" + bytes(signed.signature).hex()


async def test_the_commitment_behind_a_call_binds_it_to_its_purchase(sharing, anvil):
    quote, thief = await sharing.quote(), await sharing.quote()
    tx = anvil.pay(SHARED, 5, tail=bytes.fromhex(quote.commitment[2:]))
    with pytest.raises(PayerProofRequired):
        await confirmed(sharing, anvil, tx, thief.memo)
    assert (await sharing.confirm(tx, quote.memo)).credits == 250


def authorization(index: int, to: bytes, amount: int, nonce: str):
    """What a payer signs, and the call that anybody may submit."""
    account = Account.from_key(private_key(index, 0))
    payer = bytes.fromhex(account.address[2:])
    made = Authorization(payer, to, amount, START + 10**6, bytes.fromhex(nonce.removeprefix("0x")))
    return made.call(bytes(account.sign_message(encode_typed_data(full_message=made.typed_data)).signature))


async def test_an_authorization_under_the_commitment_binds_whoever_submits_it(sharing, anvil):
    quote, thief = await sharing.quote(), await sharing.quote()
    call = authorization(0, SHARED, 5_000_000, quote.commitment)
    tx = anvil.send(MALLORY, USDC, call)
    with pytest.raises(PayerProofRequired):
        await confirmed(sharing, anvil, tx, thief.memo)
    assert (await sharing.confirm(tx, quote.memo)).credits == 250
    anvil.send(MALLORY, USDC, call, fails=True)  # it cannot be used again


async def test_the_payers_signature_binds_and_a_thiefs_does_not(sharing, anvil):
    quote, thief = await sharing.quote(), await sharing.quote()
    tx = anvil.pay(SHARED, 5)  # from ALICE, whose key is number 0
    for memo, signed in (
        (quote.memo, None),
        (thief.memo, signature(2, thief.memo, tx)),
        (thief.memo, signature(0, quote.memo, tx)),
    ):
        with pytest.raises(PayerProofRequired):
            await confirmed(sharing, anvil, tx, memo, signature=signed)
    assert (await sharing.confirm(tx, quote.memo, signature=signature(0, quote.memo, tx))).credits == 250


async def test_a_smart_account_signs_by_its_owner(sharing, anvil):
    quote = await sharing.quote()
    account = anvil.deploy("SmartWallet", ALICE)
    anvil.pay(account, 100)
    tx = anvil.send(ALICE, account, execute((USDC, transfer_call(SHARED, 5))))
    with pytest.raises(PayerProofRequired):
        await confirmed(sharing, anvil, tx, quote.memo, signature=signature(2, quote.memo, tx))
    assert (await sharing.confirm(tx, quote.memo, signature=signature(0, quote.memo, tx))).credits == 250


async def test_in_a_batch_of_several_payers_each_gets_what_is_proved(sharing, anvil):
    quote = await sharing.quote()
    account = anvil.deploy("SmartWallet", ALICE)
    anvil.pay(account, 100)
    calls = [
        (USDC, authorization(1, SHARED, 3_000_000, quote.commitment)),
        (USDC, transfer_call(SHARED, 40)),
    ]
    tx = anvil.send(ALICE, account, execute(*calls))
    assert (await confirmed(sharing, anvil, tx, quote.memo)).credits == 150
    assert await sharing.rows("SELECT amount, reason FROM unapplied_payment") == [(40_000_000, "transaction_used")]


# --- collecting it


async def test_deposits_are_swept_by_signatures_from_addresses_without_ether(d, anvil):
    quotes = [await d.quote() for _ in range(5)]
    for number, quote in enumerate(quotes[:4], 1):
        anvil.pay(wallet(quote), number)
    anvil.mine(3)
    known = await d.rows("SELECT hd_index, address FROM purchase ORDER BY hd_index")
    deposits = await find_funded(known, d.chain.balances)
    assert [deposit.amount for deposit in deposits] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    treasury = bytes([0x77]) * 20
    made = json.loads(json.dumps(plan(deposits[2:], treasury, KEY, now=START)))
    assert (made["total"], [one["path"] for one in made["authorizations"]]) == (7_000_000, ["0/2", "0/3"])
    before = anvil.balance(treasury)
    for one, transfer in read_document(made):  # offline, from the seed
        signer = Account.from_key(private_key(one["index"]))
        signed = signer.sign_message(encode_typed_data(full_message=one["typed_data"]))
        assert signer.address == one["typed_data"]["message"]["from"]
        anvil.send(RELAY, USDC, transfer.call(bytes(signed.signature)))
    assert anvil.balance(treasury) - before == 7_000_000
    assert anvil.balance(wallet(quotes[3])) == 0
