"""Every threat to a purchase, on a real chain: the rule against it, tried."""

import hashlib
import json

import anyio
import pytest

from tests.money.purchases.anvil import ALICE, BOB, FOLDER, RELAY, called, transfer_call
from tests.money.purchases.onchain import confirmed, execute, wallet
from tests.money.purchases.parts import desk
from tests.requirements import proves
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    NoMatchingTransfer,
    PayerProofRequired,
    PaymentPending,
)
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.quotes import challenge_of
from toolserver.money.purchases.service import Rules
from toolserver.money.purchases.units import USDC

pytestmark = pytest.mark.live

TX_OF_NOBODY = "0x" + "99" * 32


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


@proves("purchase.usdc-only")
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


async def test_one_transaction_for_two_purchases_credits_one_and_the_rest_is_remembered(d, anvil):
    first, second = await d.quote(), await d.quote()
    account = anvil.deploy("SmartWallet", ALICE)
    anvil.pay(account, 100)
    calls = ((USDC, transfer_call(wallet(quote), usd)) for quote, usd in ((first, 5), (second, 3), (second, 4)))
    tx = anvil.send(ALICE, account, execute(*calls))
    assert (await confirmed(d, anvil, tx, first.memo)).credits == 250
    remembered = [(2, 7_000_000, "transaction_used")]
    assert await d.rows("SELECT purchase, amount, reason FROM unapplied_payment") == remembered
    with pytest.raises(AlreadyCredited):
        await d.confirm(tx, second.memo)
    assert await d.rows("SELECT purchase, amount, reason FROM unapplied_payment") == remembered


# --- too little, too much, twice, with a fee


@pytest.mark.parametrize(("usd", "credits"), [("4.999999", 249), ("5.000001", 250), ("1", 50), ("12.345678", 617)])
async def test_what_arrived_is_credited_to_the_last_atom(d, anvil, usd, credits):
    quote = await d.quote("5")
    assert (await confirmed(d, anvil, anvil.pay(wallet(quote), usd), quote.memo)).credits == credits


async def test_less_than_a_dollar_is_too_little(d, anvil):
    quote = await d.quote("1")
    with pytest.raises(BelowMinimum):
        await confirmed(d, anvil, anvil.pay(wallet(quote), "0.999999"), quote.memo)


async def test_a_second_transfer_is_a_purchase_of_its_own_on_the_same_token(d, anvil):
    quote = await d.quote()
    first, second = anvil.pay(wallet(quote), 5), anvil.pay(wallet(quote), 7)
    bought = await confirmed(d, anvil, first, quote.memo)
    assert bought.credits == 250
    with pytest.raises(AlreadyCredited) as told:
        await confirmed(d, anvil, second, quote.memo)
    assert told.value.extra["new_purchase"]["credits"] == 350
    assert await d.ledger.balance(bought.token) == 600
    assert await d.rows("SELECT amount, reason FROM unapplied_payment") == []


async def test_a_second_transfer_by_another_account_is_only_remembered(d, anvil):
    quote = await d.quote()
    first, second = anvil.pay(wallet(quote), 5), anvil.pay(wallet(quote), 7, sender=BOB)
    assert (await confirmed(d, anvil, first, quote.memo)).credits == 250
    with pytest.raises(AlreadyCredited):
        await confirmed(d, anvil, second, quote.memo)
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


async def test_a_late_payment_is_refused_where_the_operator_wants_that(anvil, chain_clock, tmp_path):
    async with desk(
        tmp_path, [ChainNode(anvil.url, timeout_s=15)], clock=chain_clock, rules=Rules(wait_s=0, credit_late=False)
    ) as d:
        quote = await d.quote()
        anvil.pass_time(3600)
        with pytest.raises(NoMatchingTransfer, match="after the quote expired"):
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
