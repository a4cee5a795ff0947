"""What a scripted chain says of an authorisation, and servers whose answers make no sense."""

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from eth_utils.crypto import keccak

from tests.core.rpc_server import endless, rpc_server
from tests.money.x402.parts import NOW, PAY_TO, PAYER, REPORT, TERMS, signed
from tests.requirements import proves
from toolserver.money.purchases.matching import AUTHORIZATION_USED, TRANSFER
from toolserver.money.purchases.units import USDC
from toolserver.money.x402 import wire
from toolserver.money.x402.chain_lookup import BLOCKS, EARLIER, ChainLookup
from toolserver.money.x402.settlement import AuthorisationState, Handover

CANCELED = keccak(text="AuthorizationCanceled(address,bytes32)")
PAYMENT = wire.read_payment(signed(REPORT))
TX = bytes([7]) * 32
LATEST = 5000
SINCE = Handover(4500, NOW)


def hexed(value: bytes) -> str:
    return f"0x{value.hex()}"


def word(address: bytes) -> str:
    return hexed(bytes(12) + address)


def transfer(**changed: Any) -> dict[str, Any]:
    """The log of a transfer that pays PAYMENT."""
    topics = [hexed(TRANSFER), word(PAYER), word(PAY_TO)]
    log = {"address": hexed(USDC).upper().replace("X", "x"), "topics": topics, "data": hex(REPORT)}
    return log | changed


class Chain:
    """A chain on which PAYMENT was used, with `logs` beside it; `unused` until it is."""

    def __init__(self, *logs: dict[str, Any], unused: bool = False, status: str = "0x1", **results: Any) -> None:
        self.asked: dict[str, Any] = {}
        self.results = {
            "eth_getBlockByNumber": {"number": hex(LATEST), "timestamp": hex(NOW)},
            "eth_call": hex(0 if unused else 1),
            "eth_getLogs": [{"transactionHash": hexed(TX)}],
            "eth_getTransactionReceipt": {"status": status, "logs": list(logs)},
        } | results

    def __call__(self, call: dict[str, Any]) -> dict[str, Any]:
        self.asked[call["method"]] = call["params"]
        return {"id": call["id"], "result": self.results[call["method"]]}


async def look(chain: Callable[..., Any], *before: str, since: Handover = SINCE) -> AuthorisationState | None:
    """What the lookup says when the chain is served by one server, after those `before` it."""
    async with rpc_server(chain) as server:
        lookup = ChainLookup([*before, server.url])
        found = await lookup(PAYMENT, since)
        await lookup.aclose()
        return found


def test_the_payment_is_one_of_ours():
    assert (PAYMENT.payer, PAYMENT.payee, PAYMENT.amount) == (PAYER, PAY_TO, REPORT)
    assert TERMS.pay_to == PAY_TO


async def test_an_authorisation_that_was_not_used_is_so_until_the_time_of_the_newest_block():
    chain = Chain(unused=True)
    assert await look(chain) == ("unused", None, NOW)
    assert "eth_getLogs" not in chain.asked


async def test_a_transfer_of_the_whole_amount_to_us_is_a_payment():
    chain = Chain(transfer(address="0x" + "00" * 20), transfer())
    assert await look(chain) == ("paid", TX, 0.0)
    call, at = chain.asked["eth_call"]
    assert call["data"] == "0xe94a0102" + word(PAYER)[2:] + PAYMENT.nonce.hex()
    assert (call["to"], at) == (hexed(USDC), hex(LATEST))
    assert chain.asked["eth_getLogs"] == [
        {
            "address": hexed(USDC),
            "topics": [[hexed(AUTHORIZATION_USED), hexed(CANCELED)], word(PAYER), hexed(PAYMENT.nonce)],
            "fromBlock": hex(4500 - EARLIER),
            "toBlock": hex(LATEST),
        }
    ]


NO_PAYMENT = {
    "no log": (),
    "another amount": (transfer(data=hex(REPORT - 1)),),
    "another token": (transfer(address="0x" + "00" * 20),),
    "another payee": (transfer(topics=[hexed(TRANSFER), word(PAYER), word(PAYER)]),),
    "another payer": (transfer(topics=[hexed(TRANSFER), word(PAY_TO), word(PAY_TO)]),),
    "another event": (transfer(topics=[hexed(AUTHORIZATION_USED), word(PAYER), word(PAY_TO)]),),
}


@pytest.mark.parametrize("logs", NO_PAYMENT.values(), ids=NO_PAYMENT.keys())
async def test_an_authorisation_that_was_used_for_anything_else_is_void(logs):
    assert await look(Chain(*logs)) == ("void", None, 0.0)


async def test_a_transaction_that_failed_pays_nothing():
    assert await look(Chain(transfer(), status="0x0")) == ("void", None, 0.0)


async def test_a_use_that_is_not_found_is_not_known():
    assert await look(Chain(eth_getLogs=[])) is None


class LongChain(Chain):
    """A chain of one block every two seconds, on which PAYMENT was used in one block."""

    def __init__(self, used_in: int, height: int) -> None:
        super().__init__(transfer())
        self.used_in, self.height, self.ranges = used_in, height, []

    def __call__(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["method"] == "eth_getBlockByNumber":
            number = self.height if call["params"][0] == "latest" else int(call["params"][0], 16)
            found: Any = {"number": hex(number), "timestamp": hex(NOW + 2 * number)}
        elif call["method"] == "eth_getLogs":
            first, last = (int(call["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
            self.ranges.append((first, last))
            found = [{"transactionHash": hexed(TX)}] if first <= self.used_in <= last else []
        else:
            return super().__call__(call)
        return {"id": call["id"], "result": found}


@proves("x402.search")
@pytest.mark.parametrize("downtime", [0, 999, 2000, 43_200])
async def test_however_long_we_were_down_a_use_is_found_from_the_block_of_the_hand_over_on(downtime):
    chain = LongChain(used_in=10_003, height=10_003 + downtime)
    assert await look(chain, since=Handover(10_000, NOW)) == ("paid", TX, 0.0)
    assert chain.ranges[0][0] == 10_000 - EARLIER
    assert len(chain.ranges) == 1


async def test_a_use_long_after_the_hand_over_is_found_step_by_step_without_a_gap():
    chain = LongChain(used_in=12_999, height=13_000)
    assert await look(chain, since=Handover(10_000, NOW)) == ("paid", TX, 0.0)
    assert all(last - first < BLOCKS for first, last in chain.ranges)
    assert [first for first, _ in chain.ranges[1:]] == [last + 1 for _, last in chain.ranges[:-1]]


async def test_without_a_block_the_search_starts_at_the_time_of_the_hand_over():
    chain = LongChain(used_in=10_003, height=50_000)
    assert await look(chain, since=Handover(None, NOW + 2 * 10_000)) == ("paid", TX, 0.0)
    assert chain.ranges == [(10_000 - 60 - EARLIER, 10_000 - 60 - EARLIER + BLOCKS - 1)]


async def test_an_authorisation_that_its_owner_cancelled_is_void():
    assert await look(Chain()) == ("void", None, 0.0)


async def test_the_height_of_the_chain_is_asked_of_the_first_server_that_answers():
    async with rpc_server(lambda call: {"id": call["id"], "result": "0x1389"}) as server:
        lookup = ChainLookup(["http://127.0.0.1:9/", server.url])
        assert await lookup.find_height() == 5001
        await lookup.aclose()
    lookup = ChainLookup(["http://127.0.0.1:9/"])
    assert await lookup.find_height() is None
    await lookup.aclose()


async def test_the_first_server_that_knows_is_believed():
    assert await look(Chain(transfer()), "http://127.0.0.1:9/") == ("paid", TX, 0.0)


SENSELESS = {
    "HTML": lambda call: web.Response(text="<p>"),
    "over quota": lambda call: web.Response(status=429),
    "an answer to another request": lambda call: {"id": 99, "result": "0x1"},
    "an error": lambda call: {"id": call["id"], "error": {"code": 1}},
    "a text": lambda call: {"id": call["id"], "result": "x"},
    "a time that is none": lambda call: {"id": call["id"], "result": {"number": "0x1", "timestamp": []}},
    "a list": lambda call: [],
    "deep nesting": lambda call: web.Response(text="[" * 100_000),
}


@pytest.mark.parametrize("answer", SENSELESS.values(), ids=SENSELESS.keys())
async def test_a_server_that_makes_no_sense_cannot_tell(answer, caplog):
    assert await look(answer) is None
    assert "no usable answer" in caplog.text
    assert "SECRETKEY" not in caplog.text


WRONG_RESULTS = {
    "no block": {"eth_getBlockByNumber": None},
    "no state": {"eth_call": None},
    "no transaction": {"eth_getLogs": [{"transactionHash": "0x12"}]},
    "no receipt": {"eth_getTransactionReceipt": None},
}


@pytest.mark.parametrize("results", WRONG_RESULTS.values(), ids=WRONG_RESULTS.keys())
async def test_a_result_that_is_none_cannot_tell(results):
    assert await look(Chain(transfer(), **results)) is None


async def test_a_body_without_end_is_not_buffered():
    sent: list[int] = []
    assert await look(lambda call: endless(sent)) is None
    assert sent[0] < 2**24, "what the buffers of both ends hold, not the 256 MB that were offered"
