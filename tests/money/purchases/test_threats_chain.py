"""Threats that come from the chain itself: reorganisations, and servers that lie, lag or hang before a real chain."""

import pytest

from tests.money.purchases.anvil import BOB
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.onchain import confirmed, wallet
from tests.money.purchases.parts import desk
from tests.money.purchases.wrongs import body, hang, only
from toolserver.errors import (
    ChainUnavailable,
    PaymentPending,
    PaymentRequired,
)
from toolserver.money.purchases.chain.node import ChainNode
from toolserver.money.purchases.chain.reorg_watch import LOOK_S

pytestmark = pytest.mark.live

# --- a reorganised chain


async def test_what_a_reorganisation_undoes_is_taken_back(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    await d.ledger.charge("call_1", token, 10, endpoint="/api/pro/x")
    anvil.reorganise(4)
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
    anvil.reorganise(1)
    with pytest.raises(PaymentPending):
        await confirmed(d, anvil, tx, quote.memo)
    assert await d.minted() == 0


async def test_a_payment_that_a_reorganisation_spares_stays_and_becomes_final(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    anvil.reorganise(2)
    anvil.mine(3)
    await d.watch.look()
    assert await d.rows("SELECT count(*) FROM tx_credit WHERE final_at IS NOT NULL") == [(1,)]
    assert await d.ledger.balance(token) == 250


async def test_a_payment_that_a_reorganisation_moves_to_another_block_stays(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    before = anvil.receipt(tx)["blockHash"]
    anvil.reorganise(4, (tx, 3))  # now in the newest block
    assert anvil.receipt(tx)["blockHash"] != before
    for _ in range(3):
        await d.watch.look()
        d.clock.advance(LOOK_S)
    assert await d.ledger.balance(token) == 250
    stored = await d.rows("SELECT '0x' || lower(hex(block_hash)), final_at FROM tx_credit")
    assert stored == [(anvil.receipt(tx)["blockHash"], None)]
    anvil.mine(3)
    await d.watch.look()
    assert await d.rows("SELECT count(*) FROM tx_credit WHERE final_at IS NOT NULL") == [(1,)]


async def test_who_pays_again_after_a_reorganisation_is_credited_less_what_was_spent(d, anvil):
    quote = await d.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(d, anvil, tx, quote.memo)).token
    await d.ledger.charge("call_1", token, 10, endpoint="/api/pro/x")
    anvil.reorganise(4)
    anvil.mine(3)
    for _ in range(2):
        await d.watch.look()
        d.clock.advance(LOOK_S)
    again = await confirmed(d, anvil, anvil.pay(wallet(quote), 5, BOB), quote.memo)
    assert (again.credits, again.token != token) == (240, True)


# --- servers that lie, lag, hang


@pytest.fixture
async def proxy(anvil):
    """A server before the local chain: what it says may be made wrong."""
    async with fake_rpc(before=anvil.url) as made:
        yield made


@pytest.fixture
async def distrusting(anvil, proxy, chain_clock, tmp_path):
    """A desk that asks the proxy first and the chain itself second."""
    async with desk(
        tmp_path, [ChainNode(proxy.url, timeout_s=1.5), ChainNode(anvil.url, timeout_s=15)], clock=chain_clock
    ) as made:
        yield made


@pytest.fixture
async def dependent(proxy, chain_clock, tmp_path):
    """A desk that has the proxy alone."""
    async with desk(tmp_path, [ChainNode(proxy.url, timeout_s=1.5)], clock=chain_clock) as made:
        yield made


def more(call, said):
    """The receipt as it is, but with a thousand times the money."""
    for log in said["result"]["logs"]:
        log["data"] = f"0x{int(log['data'], 16) * 1000:064x}"
    return said


def hasty(call, said):
    """Every block is said to be safe and final at once."""
    settled = call["params"][0] in ("safe", "finalized")
    return said | {"result": said["result"] | {"number": hex(10**6)}} if settled else said


async def test_a_large_payment_that_one_server_of_two_made_up_is_not_credited(distrusting, proxy, anvil):
    quote = await distrusting.quote()
    tx = anvil.pay(wallet(quote), 5)
    proxy.wrong = only("eth_getTransactionReceipt", more)
    with pytest.raises(PaymentPending):
        await confirmed(distrusting, anvil, tx, quote.memo)
    assert await distrusting.minted() == 0
    proxy.wrong = None
    assert (await distrusting.confirm(tx, quote.memo)).credits == 250


async def test_a_server_cannot_hasten_the_end_of_a_large_payments_wait(distrusting, proxy, anvil):
    quote = await distrusting.quote()
    tx = anvil.pay(wallet(quote), 20_000)
    proxy.wrong = only("eth_getBlockByNumber", hasty)
    with pytest.raises(PaymentPending):
        await distrusting.confirm(tx, quote.memo)
    anvil.mine(2)
    assert (await distrusting.confirm(tx, quote.memo)).credits == 10**6


async def test_a_reorganisation_that_one_server_of_two_made_up_takes_nothing_back(distrusting, proxy, anvil):
    quote = await distrusting.quote()
    tx = anvil.pay(wallet(quote), 5)
    token = (await confirmed(distrusting, anvil, tx, quote.memo)).token
    proxy.wrong = only("eth_getTransactionReceipt", lambda call, said: said | {"result": None})
    for _ in range(5):
        await distrusting.watch.look()
        distrusting.clock.advance(LOOK_S)
    assert await distrusting.ledger.balance(token) == 250


async def test_a_server_that_lags_is_made_up_for_by_the_next(distrusting, proxy, anvil):
    quote = await distrusting.quote()
    tx = anvil.pay(wallet(quote), 5)
    proxy.wrong = only("eth_getTransactionReceipt", lambda call, said: said | {"result": None})
    assert (await confirmed(distrusting, anvil, tx, quote.memo)).credits == 250


TROUBLE = {
    "lags": (lambda call, said: said | {"result": None} if "Transaction" in call["method"] else said, PaymentPending),
    "is on another chain": (only("eth_chainId", lambda call, said: said | {"result": "0x1"}), ChainUnavailable),
    "answers in HTML": (body("<html>", kind="text/html"), ChainUnavailable),
    "hangs": (hang, ChainUnavailable),
    "is over quota": (body("{}", 429), ChainUnavailable),
    "closes the connection": (lambda call, said: None, ChainUnavailable),
}


@pytest.mark.parametrize(("wrong", "error"), TROUBLE.values(), ids=TROUBLE.keys())
async def test_what_was_paid_while_the_only_server_was_in_trouble_is_credited_afterwards(
    dependent, proxy, anvil, wrong, error
):
    quote = await dependent.quote()
    tx = anvil.pay(wallet(quote), 5)
    proxy.wrong = wrong
    with pytest.raises(error):
        await confirmed(dependent, anvil, tx, quote.memo)
    assert await dependent.minted() == 0
    proxy.wrong = None
    assert (await dependent.confirm(tx, quote.memo)).credits == 250


async def test_larger_payments_wait_for_safe_and_for_final_blocks(anvil, chain_clock, tmp_path):
    """Here, safe is one block behind and final two: what is asked for shows in which one is waited for."""
    async with desk(
        tmp_path, [ChainNode(anvil.url, timeout_s=15), ChainNode(anvil.url, timeout_s=15)], clock=chain_clock
    ) as d:
        for usd, blocks in ((500, 1), (20_000, 2)):
            quote = await d.quote()
            tx = anvil.pay(wallet(quote), usd)
            for _ in range(blocks):
                with pytest.raises(PaymentPending):
                    await d.confirm(tx, quote.memo)
                anvil.mine(1)
            assert (await d.confirm(tx, quote.memo)).credits == usd * 50
