"""Real requests to servers that behave as servers do: late, behind, over quota, on another chain, or lying."""

import asyncio
import json
import logging

import pytest
from aiohttp import web

from tests.money.purchases.anvil import ALICE
from tests.money.purchases.fake_rpc import fake_rpc
from tests.money.purchases.parts import NOW, TX, TX2, Server, address_of, desk
from tests.money.purchases.wrongs import body, hang, only, rpc_error
from toolserver.errors import ChainUnavailable, NoMatchingTransfer, PaymentPending
from toolserver.money.purchases.chain.node import MOST_BYTES, ChainNode, NodeDown, NodeFacts, balances_code
from toolserver.money.purchases.chain.rpc_pool import BATCH
from toolserver.money.purchases.matching import match_deposit
from toolserver.money.purchases.service import Rules
from toolserver.money.purchases.units import USDC

US = bytes([0xD0]) * 20
TIMEOUT_S = 0.3  # for servers that hang; the others may take as long as a machine under load does


def timeout_for(wrong):
    return TIMEOUT_S if wrong is hang else 10


UNUSABLE = {
    "it hangs": hang,
    "HTML": body("<html>welcome</html>", kind="text/html"),
    "HTML, said to be JSON": body("<html>welcome</html>"),
    "nothing": body(""),
    "half a body": body('{"jsonrpc": "2.0", "id": 0, "res'),
    "over quota": body('{"error": "slow down"}', 429),
    "a failure": body("", 503),
    "refused": body("forbidden", 403, "text/plain"),
    "a redirection": lambda call, said: web.Response(status=307, headers={"Location": "http://127.0.0.1:1/"}),
    "an error of JSON-RPC": rpc_error(),
    "an error that is a text": lambda call, said: {"jsonrpc": "2.0", "id": call["id"], "error": "no"},
    "an answer to another question": lambda call, said: said | {"id": 12345},
    "no id": lambda call, said: {"jsonrpc": "2.0", "result": said["result"]},
    "neither result nor error": lambda call, said: {"jsonrpc": "2.0", "id": call["id"]},
    "a list": lambda call, said: [said],
    "a number": body("17"),
    "another kind of result": lambda call, said: said | {"result": 17},
    "a text as result": lambda call, said: said | {"result": "hello"},
    "deep nesting": body("[" * 200_000),
    "right, but without end": lambda call, said: body(json.dumps(said) + " " * MOST_BYTES)(call, said),
}


@pytest.mark.parametrize("wrong", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_answer_is_a_server_that_is_down(wrong, caplog):
    caplog.set_level(logging.DEBUG)
    async with fake_rpc() as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        node = ChainNode(fake.url, timeout_s=timeout_for(wrong))
        assert await node.observe(TX) is not None
        fake.wrong = wrong
        with pytest.raises(NodeDown) as down:
            await node.observe(TX)
        assert "SECRETKEY" not in str(down.value)
        fake.wrong = None
        assert await node.observe(TX) is not None
        await node.aclose()
    assert "SECRETKEY" not in caplog.text


async def test_a_redirection_is_not_followed_even_to_a_server_that_answers():
    async with fake_rpc() as good, fake_rpc() as bad:
        bad.wrong = lambda call, said: web.Response(status=307, headers={"Location": good.url})
        node = ChainNode(bad.url, timeout_s=TIMEOUT_S)
        with pytest.raises(NodeDown):
            await node.facts()
        assert good.asked == []
        await node.aclose()


async def test_a_server_nobody_listens_at_is_down():
    node = ChainNode("http://127.0.0.1:9/", timeout_s=TIMEOUT_S)
    with pytest.raises(NodeDown, match="ClientConnector"):
        await node.facts()
    await node.aclose()


async def test_a_server_that_was_never_asked_has_nothing_to_close():
    node = ChainNode("http://127.0.0.1:9/")
    await node.aclose()
    with pytest.raises(NodeDown):
        await node.facts()
    await node.aclose()
    await node.aclose()


async def test_what_a_server_says_is_what_we_know():
    async with fake_rpc() as fake:
        block = fake.pay(US, 5.5, TX)
        fake.now += 20
        node = ChainNode(fake.url)
        assert await node.facts() == NodeFacts(8453, 6, True)
        seen = await node.observe(TX)
        assert seen is not None
        assert match_deposit(seen.receipt, US).amount == 5_500_000
        assert (seen.receipt.block_number, seen.is_canonical) == (block, True)
        assert (seen.latest - block, seen.block_time - NOW) == (9, 1)
        assert (seen.latest - seen.safe, seen.latest - seen.finalized) == (60, 600)
        assert seen.transaction.data[:4].hex() == "a9059cbb"
        assert await node.block_hash(block) == seen.receipt.block_hash
        assert await node.block_hash(block + 1000) is None
        assert await node.observe(TX2) is None
        fake.now += 2000
        assert await node.balances([US, bytes(20), US]) == [5_500_000, 0, 5_500_000]
        await node.aclose()


def change(**members):
    """The same receipt or block with other members."""
    return lambda call, said: said | {"result": said["result"] and said["result"] | members}


NOT_YET = {
    "no receipt": only("eth_getTransactionReceipt", lambda call, said: said | {"result": None}),
    "a receipt of a block to come": only("eth_getTransactionReceipt", change(blockHash=None, blockNumber=None)),
    "no block of that number": only("eth_getBlockByNumber", lambda call, said: said | {"result": None}),
    "no transaction": only("eth_getTransactionByHash", lambda call, said: said | {"result": None}),
}


@pytest.mark.parametrize("wrong", NOT_YET.values(), ids=NOT_YET.keys())
async def test_a_server_that_is_behind_has_not_seen_it_yet(wrong):
    async with fake_rpc() as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        fake.wrong = wrong
        node = ChainNode(fake.url)
        assert await node.observe(TX) is None
        await node.aclose()


LIES = {
    "of another transaction": only("eth_getTransactionReceipt", change(transactionHash="0x" + "99" * 32)),
    "of a block with a short hash": only("eth_getTransactionReceipt", change(blockHash="0x1234")),
    "without a status": only("eth_getTransactionReceipt", change(status=None)),
    "with logs that are none": only("eth_getTransactionReceipt", change(logs=[{"address": "0x00"}])),
    "with a number that is none": only("eth_getTransactionReceipt", change(blockNumber="0xzz")),
    "whose transaction is not given": only("eth_getTransactionByHash", body("", 503)),
    "with a time that is none": only("eth_getBlockByNumber", change(timestamp=None)),
    "with a time that nobody will see": only("eth_getBlockByNumber", change(timestamp=hex(2**60))),
    "with a height that no chain has": only("eth_getTransactionReceipt", change(blockNumber=hex(2**60))),
    "on a chain of no height": only("eth_getBlockByNumber", change(number=hex(2**200))),
}


@pytest.mark.parametrize("wrong", LIES.values(), ids=LIES.keys())
async def test_a_receipt_that_cannot_be_is_a_server_that_is_down(wrong):
    async with fake_rpc() as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        fake.wrong = wrong
        node = ChainNode(fake.url)
        with pytest.raises(NodeDown):
            await node.observe(TX)
        await node.aclose()


async def test_logs_that_a_server_says_were_removed_do_not_count():
    def removed(call, said):
        for log in said["result"]["logs"]:
            log["removed"] = True
        return said

    async with fake_rpc(wrong=only("eth_getTransactionReceipt", removed)) as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        node = ChainNode(fake.url)
        assert (await node.observe(TX)).receipt.logs == ()
        await node.aclose()


async def test_a_server_without_safe_and_final_blocks_serves_small_payments():
    def unknown(call, said):
        return (
            rpc_error(-32602, "unknown block tag")(call, said) if call["params"][0] in ("safe", "finalized") else said
        )

    async with fake_rpc(wrong=only("eth_getBlockByNumber", unknown)) as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        node = ChainNode(fake.url)
        seen = await node.observe(TX)
        assert (seen.safe, seen.finalized) == (0, 0)
        await node.aclose()


# --- through the desk: the very error that a buyer gets


async def claims(tmp_path, nodes, *, usd=5, pay=()):
    """A quote, paid on some chains, and the claim of it."""
    async with desk(tmp_path, nodes, rules=Rules(wait_s=0, answer_s=30)) as d:
        quote = await d.quote()
        for fake in pay:
            fake.pay(address_of(quote), usd, TX)
            fake.now += 20
        return await d.confirm(TX, quote.memo)


@pytest.mark.parametrize("wrong", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_when_every_server_is_unusable_the_chain_is_unavailable(tmp_path, wrong):
    async with fake_rpc(wrong=wrong) as fake:
        with pytest.raises(ChainUnavailable) as refused:
            await claims(tmp_path, [ChainNode(fake.url, timeout_s=timeout_for(wrong))], pay=[fake])
        error = refused.value
        assert (error.code, error.status, error.headers) == ("chain_unavailable", 503, {"Retry-After": "10"})
        assert error.extra == {"retry_after_seconds": 10}


@pytest.mark.parametrize("wrong", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_server_is_made_up_for_by_the_next(tmp_path, wrong):
    async with fake_rpc(wrong=wrong) as bad, fake_rpc() as good:
        nodes = [ChainNode(bad.url, timeout_s=timeout_for(wrong)), ChainNode(good.url, timeout_s=10)]
        assert (await claims(tmp_path, nodes, pay=[good])).credits == 250


@pytest.mark.parametrize("wrong", NOT_YET.values(), ids=NOT_YET.keys())
async def test_a_server_that_is_behind_makes_a_payment_pending(tmp_path, wrong):
    async with fake_rpc(wrong=wrong) as fake:
        with pytest.raises(PaymentPending) as refused:
            await claims(tmp_path, [ChainNode(fake.url)], pay=[fake])
        error = refused.value
        assert (error.code, error.status, error.headers) == ("payment_pending", 409, {"Retry-After": "3"})
        assert (error.extra["confirmations"], error.extra["required"]) == (0, 3)


async def test_a_server_of_another_chain_is_not_believed(tmp_path):
    wrong = only("eth_chainId", lambda call, said: said | {"result": "0x1"})
    async with fake_rpc(wrong=wrong) as fake:
        with pytest.raises(ChainUnavailable):
            await claims(tmp_path, [ChainNode(fake.url)], pay=[fake])
        assert "eth_getTransactionReceipt" not in fake.asked


async def test_a_large_payment_that_one_server_made_up_is_pending(tmp_path):
    async with fake_rpc(now=NOW) as liar, fake_rpc(now=NOW + 400) as honest:
        liar.now += 400
        with pytest.raises(PaymentPending):
            await claims(tmp_path, [ChainNode(liar.url), ChainNode(honest.url)], usd=5000, pay=[liar])


async def test_a_failed_transaction_pays_nothing(tmp_path):
    async with fake_rpc(wrong=only("eth_getTransactionReceipt", change(status="0x0", logs=[]))) as fake:
        with pytest.raises(NoMatchingTransfer):
            await claims(tmp_path, [ChainNode(fake.url)], pay=[fake])


async def test_a_hanging_server_beside_a_scripted_one_costs_no_more_than_its_time(tmp_path):
    async with fake_rpc(wrong=hang) as fake:
        started = asyncio.get_running_loop().time()
        with pytest.raises(PaymentPending):
            await claims(tmp_path, [ChainNode(fake.url, timeout_s=TIMEOUT_S), Server()])
        assert asyncio.get_running_loop().time() - started < 2


# --- contract accounts


def signing(answer):
    return only("eth_call", lambda call, said: answer(call))


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (lambda call: {"jsonrpc": "2.0", "id": call["id"], "result": "0x1626ba7e" + "00" * 28}, True),
        (lambda call: {"jsonrpc": "2.0", "id": call["id"], "result": "0xffffffff" + "00" * 28}, False),
        (lambda call: {"jsonrpc": "2.0", "id": call["id"], "result": "0x"}, False),
        (lambda call: rpc_error(3, "execution reverted")(call, None), False),
    ],
    ids=["it does", "it does not", "no contract", "it reverts"],
)
async def test_a_contract_account_is_asked_for_its_signature(answer, accepted):
    async with fake_rpc(wrong=signing(answer)) as fake:
        node = ChainNode(fake.url)
        assert await node.accepts(US, bytes(32), b"\1" * 65) is accepted
        await node.aclose()


@pytest.mark.parametrize(("drops", "down"), [(1, False), (2, True)], ids=["once", "again"])
async def test_a_connection_that_was_closed_meanwhile_is_opened_again_once(drops, down):
    dropped = []

    def drop(call, said):
        if call["method"] == "eth_getTransactionReceipt" and len(dropped) < drops:
            return dropped.append(call)
        return said

    async with fake_rpc(wrong=drop) as fake:
        fake.pay(US, 5, TX)
        fake.now += 20
        node = ChainNode(fake.url)
        if down:
            with pytest.raises(NodeDown):
                await node.observe(TX)
        else:
            assert await node.observe(TX) is not None
        assert len(dropped) == drops
        await node.aclose()


def test_the_code_names_the_token_and_the_place_where_the_addresses_begin():
    code = balances_code()
    assert code.count(USDC) == 1
    assert code.count(bytes([0x60, len(code)])) == 2


@pytest.mark.live
async def test_five_hundred_balances_are_read_in_one_request(anvil):
    addresses = [bytes([7]) * 18 + number.to_bytes(2) for number in range(BATCH)]
    paid = {0: 1.5, 7: 2, BATCH - 1: 1000}
    for number, usd in paid.items():
        anvil.pay(addresses[number], usd, ALICE)
    anvil.mine(3)
    node = ChainNode(anvil.url, timeout_s=15)
    found = await node.balances(addresses)
    await node.aclose()
    assert {number: amount / 1_000_000 for number, amount in enumerate(found) if amount} == paid
    assert len(found) == BATCH
