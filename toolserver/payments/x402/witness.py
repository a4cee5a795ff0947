"""What the chain itself says of an authorisation: a few questions to a JSON-RPC server, without web3.

The token writes `AuthorizationUsed(payer, nonce)` when an authorisation is used or cancelled, whoever sent it. If a
transfer to us stands beside it in the same transaction, it paid us.
"""

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import httpx
import msgspec
from eth_utils.crypto import keccak

from toolserver.errors import ToolserverError
from toolserver.payments.matching import AUTHORIZATION_USED, TRANSFER
from toolserver.payments.units import USDC
from toolserver.payments.x402 import wire
from toolserver.payments.x402.settling import Seen
from toolserver.payments.x402.wire import Payment

log = logging.getLogger(__name__)

WITHIN_S = 4.0
_UNUSABLE = (TimeoutError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
BLOCKS = 1000  # how far back to look: half an hour on Base
MOST_BYTES = 262_144
_STATE = keccak(text="authorizationState(address,bytes32)")[:4]


class _NoAnswer(ToolserverError):
    """A server gave nothing usable."""


class ChainWitness:
    """Asks one server after the other. Its addresses may hold keys: they are never in what it says or logs."""

    def __init__(self, urls: Sequence[str], transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._urls = list(urls)
        self._client = httpx.AsyncClient(timeout=None, trust_env=False, follow_redirects=False, transport=transport)

    async def __call__(self, payment: Payment, /) -> Seen | None:
        """What became of a payment; None when nobody can tell."""
        for number, url in enumerate(self._urls, 1):
            try:
                with anyio.fail_after(WITHIN_S):
                    return await self._seen(url, payment)
            except (httpx.HTTPError, msgspec.MsgspecError, _NoAnswer, *_UNUSABLE) as error:
                log.warning(
                    "an RPC server did not say", extra={"server": f"rpc {number}", "reason": type(error).__name__}
                )
        return None

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _seen(self, url: str, payment: Payment) -> Seen:
        latest = await self._asked(url, "eth_getBlockByNumber", "latest", False)
        state = _STATE + bytes(12) + payment.payer + payment.nonce
        used = await self._asked(url, "eth_call", {"to": _hex(USDC), "data": _hex(state)}, latest["number"])
        if int(used, 16) == 0:
            return Seen("unused", None, float(int(latest["timestamp"], 16)))
        return await self._used(url, payment, latest)

    async def _used(self, url: str, payment: Payment, latest: Any) -> Seen:
        """By which transaction, and for what. Raises _NoAnswer when that is too long ago to be found."""
        since = max(0, int(latest["number"], 16) - BLOCKS)
        topics = [_hex(AUTHORIZATION_USED), _hex(bytes(12) + payment.payer), _hex(payment.nonce)]
        wanted = {"address": _hex(USDC), "topics": topics, "fromBlock": hex(since), "toBlock": latest["number"]}
        logs = await self._asked(url, "eth_getLogs", wanted)
        found = wire.tx_hash(logs[0]["transactionHash"])
        if found is None:
            raise _NoAnswer("no transaction")
        receipt = await self._asked(url, "eth_getTransactionReceipt", _hex(found))
        return Seen("paid", found) if _pays(receipt, payment) else Seen("void", None)

    async def _asked(self, url: str, method: str, *params: Any) -> Any:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        response = await self._client.post(url, content=body, headers={"content-type": "application/json"})
        if response.status_code != 200 or len(response.content) > MOST_BYTES:
            raise _NoAnswer("no answer")
        said = msgspec.json.decode(response.content)
        if said.get("id") != 1 or said.get("result") is None:
            raise _NoAnswer("no result")
        return said["result"]


def _pays(receipt: Any, payment: Payment) -> bool:
    """Whether a transfer of the whole amount to us stands in a receipt of success."""
    wanted = [_hex(TRANSFER), _hex(bytes(12) + payment.payer), _hex(bytes(12) + payment.payee)]
    return int(receipt["status"], 16) == 1 and any(
        entry["address"].lower() == _hex(USDC)
        and [topic.lower() for topic in entry["topics"]] == wanted
        and int(entry["data"], 16) == payment.amount
        for entry in receipt["logs"]
    )


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"
