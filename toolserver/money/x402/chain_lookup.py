"""Looks an authorisation up on the chain, by a few requests to a JSON-RPC server, without web3.

The USDC contract logs `AuthorizationUsed(payer, nonce)` when an authorisation is used, and
`AuthorizationCanceled` when it is cancelled, whichever account sent it. If the transaction
also has a transfer of the whole amount to us, the authorisation paid us.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import anyio

from toolserver.core.json_rpc import JsonRpcClient, RpcUnusable
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.money.purchases.matching import AUTHORIZATION_USED, TRANSFER
from toolserver.money.purchases.units import USDC
from toolserver.money.x402 import wire
from toolserver.money.x402.settlement import AuthorisationState, Handover
from toolserver.money.x402.wire import Payment

log = logging.getLogger(__name__)

T = TypeVar("T")

WITHIN_S = 4.0  # for the requests of one step to one server
_UNUSABLE = (TimeoutError, LookupError, TypeError, ValueError, AttributeError)
BLOCKS = 1000  # blocks that one request searches: half an hour of Base, and as many as most servers allow
EARLIER, EARLIER_S = 64, 120.0  # blocks and seconds before the hand-over at which a search starts: clocks differ
MOST_BYTES = 262_144
# AuthorizationCanceled(address,bytes32), and the selector of authorizationState(address,bytes32)
CANCELED = bytes.fromhex("1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81")
STATE_SELECTOR = bytes.fromhex("e94a0102")


class ChainLookup:
    """Asks one server after the other. Their addresses may contain keys, so no exception and no log line names them."""

    def __init__(self, urls: Sequence[str], proxies: Proxies = NO_PROXIES) -> None:
        self._servers = [JsonRpcClient(url, timeout_s=WITHIN_S, most_bytes=MOST_BYTES, proxies=proxies) for url in urls]

    async def __call__(self, payment: Payment, since: Handover, /) -> AuthorisationState | None:
        """Return the state of a payment's authorisation from the first server that can tell, or None if none can."""
        return await self._ask(lambda server: _find_state(server, payment, since))

    async def is_spent(self, payment: Payment, /) -> bool | None:
        """Return True if a payment's authorisation was used or cancelled, by the first server that can tell."""
        return await self._ask(lambda server: _is_spent(server, payment, "latest"))

    async def find_height(self) -> int | None:
        """Return the number of the newest block from the first server that answers, or None if none does."""
        return await self._ask(_find_height)

    async def _ask(self, question: Callable[[JsonRpcClient], Awaitable[T]]) -> T | None:
        for number, server in enumerate(self._servers, 1):
            try:
                return await question(server)
            except (RpcUnusable, *_UNUSABLE) as error:
                facts = {"server": f"rpc {number}", "reason": type(error).__name__}
                log.warning("an RPC server gave no usable answer about a payment", extra=facts)
        return None

    async def aclose(self) -> None:
        for server in self._servers:
            await server.aclose()


async def _find_height(server: JsonRpcClient) -> int:
    with anyio.fail_after(WITHIN_S):
        return int(await server.call("eth_blockNumber"), 16)


async def _is_spent(server: JsonRpcClient, payment: Payment, block: str) -> bool:
    data = STATE_SELECTOR + bytes(12) + payment.payer + payment.nonce
    with anyio.fail_after(WITHIN_S):
        return int(await server.call("eth_call", {"to": _hex(USDC), "data": _hex(data)}, block), 16) != 0


async def _find_state(server: JsonRpcClient, payment: Payment, since: Handover) -> AuthorisationState:
    with anyio.fail_after(WITHIN_S):
        latest = await server.call("eth_getBlockByNumber", "latest", False)
        spent = await _is_spent(server, payment, latest["number"])
    if not spent:
        return AuthorisationState("unused", None, float(int(latest["timestamp"], 16)))
    height = int(latest["number"], 16)
    with anyio.fail_after(WITHIN_S):
        first = await _find_block_at(server, since.at - EARLIER_S, height) if since.block is None else since.block
    return await _find_use(server, payment, max(0, first - EARLIER), height)


async def _find_use(server: JsonRpcClient, payment: Payment, first: int, height: int) -> AuthorisationState:
    """Find the transaction that used it, and return whether that paid us. Raises LookupError if none is found."""
    for start in range(first, height + 1, BLOCKS):
        with anyio.fail_after(WITHIN_S):
            log_entry = await _find_log(server, payment, start, min(start + BLOCKS - 1, height))
            if log_entry is None:
                continue
            tx = wire.tx_hash(log_entry["transactionHash"])
            if tx is None:
                raise ValueError("not a transaction hash")
            receipt = await server.call("eth_getTransactionReceipt", _hex(tx))
            return AuthorisationState("paid", tx) if _pays(receipt, payment) else AuthorisationState("void", None)
    raise LookupError("it was used, and not since its hand-over")


async def _find_log(server: JsonRpcClient, payment: Payment, start: int, end: int) -> Any:
    """Return the log entry of its use or cancellation in a range of blocks, or None if there is none."""
    events = [_hex(AUTHORIZATION_USED), _hex(CANCELED)]
    topics = [events, _hex(bytes(12) + payment.payer), _hex(payment.nonce)]
    wanted = {"address": _hex(USDC), "topics": topics, "fromBlock": hex(start), "toBlock": hex(end)}
    logs = await server.call("eth_getLogs", wanted)
    return logs[0] if logs else None


async def _find_block_at(server: JsonRpcClient, time: float, height: int) -> int:
    """Return the number of the first block that is not older than `time` (epoch seconds), found by bisection."""
    low, high = 0, height
    while low < high:
        middle = (low + high) // 2
        block = await server.call("eth_getBlockByNumber", hex(middle), False)
        low, high = (middle + 1, high) if int(block["timestamp"], 16) < time else (low, middle)
    return low


def _pays(receipt: Any, payment: Payment) -> bool:
    """Return True if the receipt is of a successful transaction with a transfer of the whole amount to us."""
    wanted = [_hex(TRANSFER), _hex(bytes(12) + payment.payer), _hex(bytes(12) + payment.payee)]
    return int(receipt["status"], 16) == 1 and any(
        entry["address"].lower() == _hex(USDC)
        and [topic.lower() for topic in entry["topics"]] == wanted
        and int(entry["data"], 16) == payment.amount
        for entry in receipt["logs"]
    )


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"
