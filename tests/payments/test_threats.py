"""Every threat to a purchase, on a real chain: the rule against it, tried."""

import hashlib
import json
from datetime import UTC, datetime

import anyio
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data

from tests.payments.anvil import ALICE, BOB, FOLDER, MALLORY, RELAY, START, called, transfer_call
from tests.payments.parts import KEY, Desk, address_of, desk
from tests.payments.wallet import private_key
from toolserver.clock import ManualClock
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    NoMatchingTransfer,
    PayerProofRequired,
    PaymentPending,
    PaymentRequired,
)
from toolserver.payments.chain import Node
from toolserver.payments.confirm import Rules
from toolserver.payments.memos import challenge_of
from toolserver.payments.sweep_plan import DOMAIN, TYPES, calldata, funded, plan
from toolserver.payments.units import USDC
from toolserver.payments.watch import LOOK_S

pytestmark = pytest.mark.live
TX_OF_NOBODY = "0x" + "99" * 32


@pytest.fixture
async def d(anvil, tmp_path):
    """A desk that reads the local chain, at the time of its first block."""
    clock = ManualClock(datetime.fromtimestamp(START, UTC))
    async with desk(tmp_path, [Node(anvil.url)], clock=clock) as made:
        yield made


def wallet(quote) -> bytes:
    return address_of(quote)


async def confirmed(d: Desk, anvil, tx: str, memo: str, **more):
    """The claim, with three blocks on top of the payment."""
    anvil.mine(3)
    return await d.confirm(tx, memo, **more)


# --- a payment like any other


async def test_a_plain_transfer_is_credited_once_it_has_three_blocks_on_top(d, anvil):
    quote = await d.quote("5")
    tx = anvil.pay(wallet(quote), 5)
    for left in (0, 1, 2):
        with pytest.raises(PaymentPending) as pending:
            await d.confirm(tx, quote.memo)
        assert (pending.value.extra["confirmations"], pending.value.extra["required"]) == (left, 3)
        anvil.mine(1)
    bought = await d.confirm(tx, quote.memo)
    assert await d.ledger.balance(bought.token) == bought.credits == 250


async def test_a_hash_that_is_not_on_the_chain_is_pending(d, anvil):
    quote = await d.quote()
    with pytest.raises(PaymentPending):
        await d.confirm(TX_OF_NOBODY, quote.memo)


async def test_the_token_at_the_address_of_usdc_has_its_signing_domain(anvil):
    said = anvil.rpc("eth_call", {"to": f"0x{USDC.hex()}", "data": f"0x{called('DOMAIN_SEPARATOR()').hex()}"}, "latest")
    assert said == "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"  # what Base mainnet's has


def test_the_compiled_contracts_are_those_of_the_sources():
    found = json.loads((FOLDER / "compiled.json").read_text())
    sources = b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.sol")))
    assert found["sources_sha256"] == hashlib.sha256(sources).hexdigest(), "run `node compile.mjs`"


# --- confirm front-run with the victim's transaction


async def test_the_victims_transaction_is_worth_nothing_to_an_attacker(d, anvil):
    attacker, victim = await d.quote("5"), await d.quote("5")
    tx = anvil.pay(wallet(victim), 5)
    with pytest.raises(NoMatchingTransfer):
        await confirmed(d, anvil, tx, attacker.memo)
    assert (await d.confirm(tx, victim.memo)).credits == 250
    assert await d.minted() == 250


# --- wrong token, fake log


async def test_a_token_that_is_not_usdc_is_no_payment(d, anvil):
    quote = await d.quote()
    forger, twin = anvil.deploy("Forger"), anvil.deploy("Usd")
    anvil.send(RELAY, twin, called("mint(address,uint256)", ALICE, 10**12))
    for token in (forger, twin):
        tx = anvil.pay(wallet(quote), 5, token=token)
        assert anvil.receipt(tx)["logs"][0]["topics"][0].startswith("0xddf252ad")
        with pytest.raises(NoMatchingTransfer):
            await confirmed(d, anvil, tx, quote.memo)


async def test_ether_is_no_payment(d, anvil):
    quote = await d.quote()
    to = f"0x{wallet(quote).hex()}"
    tx = anvil.rpc("eth_sendTransaction", {"from": f"0x{ALICE.hex()}", "to": to, "value": hex(10**18)})
    with pytest.raises(NoMatchingTransfer):
        await confirmed(d, anvil, tx, quote.memo)


# --- failed transaction


async def test_a_transfer_that_was_reverted_is_no_payment(d, anvil):
    quote = await d.quote()
    tx = anvil.send(ALICE, USDC, transfer_call(wallet(quote), 10**9), fails=True)
    with pytest.raises(NoMatchingTransfer):
        await confirmed(d, anvil, tx, quote.memo)


@pytest.mark.parametrize("block", ["blacklist(address)", "pause()"])
async def test_a_payer_whom_usdc_blocks_has_not_paid(d, anvil, block):
    quote = await d.quote()
    anvil.send(RELAY, USDC, called(block, *([ALICE] if "address" in block else [])))
    tx = anvil.send(ALICE, USDC, transfer_call(wallet(quote), 5), fails=True)
    with pytest.raises(NoMatchingTransfer):
        await confirmed(d, anvil, tx, quote.memo)


# --- several transfers in a transaction, smart accounts


def execute(*calls):
    return called("execute((address,bytes)[])", list(calls))


async def test_a_smart_account_may_pay_in_parts_and_only_what_reached_us_in_usdc_counts(d, anvil):
    quote = await d.quote()
    account, forger = anvil.deploy("SmartWallet", ALICE), anvil.deploy("Forger")
    anvil.pay(account, 100)
    to = wallet(quote)
    calls = [
        (USDC, transfer_call(to, 2)),
        (forger, transfer_call(to, 50)),
        (USDC, transfer_call(BOB, 40)),
        (USDC, transfer_call(to, 3)),
    ]
    tx = anvil.send(ALICE, account, execute(*calls))
    assert (await confirmed(d, anvil, tx, quote.memo)).credits == 250
    assert await d.rows("SELECT amount, logs FROM tx_credit") == [(5_000_000, "[0, 3]")]


async def test_an_account_that_swallows_a_failing_transfer_has_not_paid(d, anvil):
    quote = await d.quote()
    account = anvil.deploy("SwallowingWallet", ALICE)  # which holds nothing
    tx = anvil.send(ALICE, account, execute((USDC, transfer_call(wallet(quote), 5))))
    with pytest.raises(NoMatchingTransfer):
        await confirmed(d, anvil, tx, quote.memo)


async def test_one_transaction_for_two_purchases_credits_one(d, anvil):
    first, second = await d.quote(), await d.quote()
    account = anvil.deploy("SmartWallet", ALICE)
    anvil.pay(account, 100)
    tx = anvil.send(ALICE, account, execute(*((USDC, transfer_call(wallet(q), 5)) for q in (first, second))))
    assert (await confirmed(d, anvil, tx, first.memo)).credits == 250
    with pytest.raises(AlreadyCredited):
        await d.confirm(tx, second.memo)
    assert await d.rows("SELECT amount, reason FROM unapplied_payment") == [(5_000_000, "transaction_used")]


# --- too little, too much, twice, with a fee


@pytest.mark.parametrize(("usd", "credits"), [("4.999999", 249), ("5.000001", 250), ("1", 50), ("12.345678", 617)])
async def test_what_arrived_is_credited_to_the_last_atom(d, anvil, usd, credits):
    quote = await d.quote("5")
    assert (await confirmed(d, anvil, anvil.pay(wallet(quote), usd), quote.memo)).credits == credits


async def test_less_than_a_dollar_is_too_little(d, anvil):
    quote = await d.quote("1")
    with pytest.raises(BelowMinimum):
        await confirmed(d, anvil, anvil.pay(wallet(quote), "0.999999"), quote.memo)


async def test_a_second_transfer_is_only_remembered(d, anvil):
    quote = await d.quote()
    first, second = anvil.pay(wallet(quote), 5), anvil.pay(wallet(quote), 7)
    assert (await confirmed(d, anvil, first, quote.memo)).credits == 250
    with pytest.raises(AlreadyCredited):
        await d.confirm(second, quote.memo)
    assert await d.rows("SELECT amount, reason FROM unapplied_payment") == [(7_000_000, "second_transfer")]


async def test_should_usdc_ever_keep_a_fee_what_reached_us_counts(d, anvil):
    quote = await d.quote()
    anvil.send(RELAY, USDC, called("charge(uint256)", 100))
    tx = anvil.pay(wallet(quote), 5)
    assert anvil.balance(wallet(quote)) == 4_500_000
    assert (await confirmed(d, anvil, tx, quote.memo)).credits == 225


# --- late


async def test_a_payment_in_time_may_be_claimed_days_later(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    d.clock.advance(5 * 86_400)
    assert (await confirmed(d, anvil, tx, quote.memo)).late is False


async def test_a_late_payment_is_credited_and_says_so(d, anvil):
    quote = await d.quote()
    anvil.pass_time(3600)
    d.clock.advance(3600)
    bought = await confirmed(d, anvil, anvil.pay(wallet(quote), 5), quote.memo)
    assert (bought.credits, bought.late) == (250, True)


async def test_a_late_payment_is_refused_where_the_operator_wants_that(anvil, tmp_path):
    clock = ManualClock(datetime.fromtimestamp(START, UTC))
    async with desk(tmp_path, [Node(anvil.url)], clock=clock, rules=Rules(wait_s=0, credit_late=False)) as d:
        quote = await d.quote()
        anvil.pass_time(3600)
        with pytest.raises(NoMatchingTransfer, match="after the end"):
            await confirmed(d, anvil, anvil.pay(wallet(quote), 5), quote.memo)


# --- again, in another spelling


async def test_four_spellings_twenty_times_at_once_are_one_mint(d, anvil):
    quote = await d.quote()
    digits = anvil.pay(wallet(quote), 5)[2:]
    anvil.mine(3)
    got = []

    async def claim(text):
        got.append(await d.confirm(text, quote.memo))

    async with anyio.create_task_group() as tasks:
        for text in (f"0x{digits}", f"0X{digits}", digits, f"0x{digits.upper()}"):
            for _ in range(20):
                tasks.start_soon(claim, text)
    assert len(got) == 80
    assert len(set(got)) == 1
    assert await d.minted() == 250


# --- a reorganised chain


async def test_what_a_reorganisation_undoes_is_taken_back(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    await d.ledger.charge("call_1", token, 10, endpoint="/api/pro/x")
    anvil.rpc("anvil_reorg", 4, [])
    anvil.mine(3)
    for _ in range(2):
        await d.watch.look()
        d.clock.advance(LOOK_S)
    with pytest.raises(PaymentRequired) as refused:
        await d.ledger.balance(token)
    assert refused.value.code == "expired"
    assert await d.rows("SELECT credits, taken_back, lost FROM tx_reversal") == [(250, 240, 10)]
    with pytest.raises(PaymentPending):
        await d.confirm(tx, quote.memo)


async def test_a_reorganisation_before_the_claim_leaves_it_pending(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    anvil.rpc("anvil_reorg", 1, [])
    with pytest.raises(PaymentPending):
        await confirmed(d, anvil, tx, quote.memo)
    assert await d.minted() == 0


async def test_a_payment_that_a_reorganisation_spares_stays_and_becomes_final(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    anvil.rpc("anvil_reorg", 2, [])
    anvil.mine(3)
    await d.watch.look()
    assert await d.rows("SELECT count(*) FROM tx_credit WHERE final_at IS NOT NULL") == [(1,)]
    assert await d.ledger.balance(token) == 250


async def test_larger_payments_wait_for_safe_and_for_final_blocks(anvil, tmp_path):
    """Here, safe is one block behind and final two: what is asked for shows in which one is waited for."""
    clock = ManualClock(datetime.fromtimestamp(START, UTC))
    async with desk(tmp_path, [Node(anvil.url), Node(anvil.url)], clock=clock) as d:
        for usd, blocks in ((500, 1), (20_000, 2)):
            quote = await d.quote()
            tx = anvil.pay(wallet(quote), usd)
            for _ in range(blocks):
                with pytest.raises(PaymentPending):
                    await d.confirm(tx, quote.memo)
                anvil.mine(1)
            assert (await d.confirm(tx, quote.memo)).credits == usd * 50


# --- a memo on the chain


async def test_a_memo_written_on_the_chain_is_flagged_and_its_token_given_once(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5, tail=quote.memo.encode())
    assert (await confirmed(d, anvil, tx, quote.memo)).credits == 250
    assert await d.rows("SELECT memo_public FROM tx_credit") == [(1,)]
    with pytest.raises(AlreadyCredited):
        await d.confirm(tx, quote.memo)


async def test_a_verifier_protects_even_then(d, anvil):
    quote = await d.quote(challenge=challenge_of("v" * 43))
    tx = anvil.pay(wallet(quote), 5, tail=quote.memo.encode())
    with pytest.raises(PayerProofRequired):
        await confirmed(d, anvil, tx, quote.memo)
    assert (await d.confirm(tx, quote.memo, verifier="v" * 43)).credits == 250


# --- one address for all


SHARED = bytes([0xD0]) * 20


@pytest.fixture
async def sharing(anvil, tmp_path):
    clock = ManualClock(datetime.fromtimestamp(START, UTC))
    rules = Rules(wait_s=0, shared=True, host="data.example")
    async with desk(tmp_path, [Node(anvil.url)], clock=clock, rules=rules, wallet=SHARED) as made:
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
    message = {"from": account.address, "to": f"0x{to.hex()}", "value": amount, "validAfter": 0}
    message |= {"validBefore": START + 10**6, "nonce": nonce}
    typed = {"types": TYPES, "primaryType": "TransferWithAuthorization", "domain": DOMAIN, "message": message}
    signed = account.sign_message(encode_typed_data(full_message=typed))
    return calldata(message, bytes(signed.signature))


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


# --- collecting it


@pytest.mark.parametrize("size", [0, 64, 66])
def test_a_signature_of_another_length_is_never_sent(size):
    with pytest.raises(ValueError, match="65 bytes"):
        calldata({}, bytes(size))


async def test_deposits_are_swept_by_signatures_from_addresses_without_ether(d, anvil):
    quotes = [await d.quote() for _ in range(5)]
    for number, quote in enumerate(quotes[:4], 1):
        anvil.pay(wallet(quote), number)
    anvil.mine(3)
    known = await d.rows("SELECT hd_index, address FROM purchase ORDER BY hd_index")
    deposits = await funded(known, d.chain.balance)
    assert [deposit.amount for deposit in deposits] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    treasury = bytes([0x77]) * 20
    made = json.loads(json.dumps(plan(deposits[2:], treasury, KEY, now=START)))
    assert (made["total"], [one["path"] for one in made["authorizations"]]) == (7_000_000, ["0/2", "0/3"])
    before = anvil.balance(treasury)
    for one in made["authorizations"]:  # offline, from the seed
        signer = Account.from_key(private_key(one["index"]))
        signed = signer.sign_message(encode_typed_data(full_message=one["typed_data"]))
        assert signer.address == one["typed_data"]["message"]["from"]
        anvil.send(RELAY, USDC, calldata(one["typed_data"]["message"], bytes(signed.signature)))
    assert anvil.balance(treasury) - before == 7_000_000
    assert anvil.balance(wallet(quotes[3])) == 0
