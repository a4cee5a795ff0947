"""USDC on Base as one JSON-RPC server tells it. The only importer of web3, itself imported only when payments are on.

A server may be slow, behind, on another chain, or lie: whatever is not exactly what was asked for is a `NodeDown`, and
"not found" is never more than "not seen yet". What it says is turned into our own plain values here.
"""

import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.lowlevel
from aiohttp import ClientError, ClientSession, ClientTimeout, ServerDisconnectedError, TCPConnector
from hexbytes import HexBytes

from toolserver.errors import ToolserverError
from toolserver.payments.calm import recursion_limit_kept
from toolserver.payments.deposit import checksummed
from toolserver.payments.matching import Log, Receipt, Transaction
from toolserver.payments.policy import Sighting
from toolserver.payments.units import USDC

with recursion_limit_kept():
    from web3 import AsyncHTTPProvider, AsyncWeb3
    from web3.exceptions import BlockNotFound, ContractLogicError, TransactionNotFound, Web3Exception, Web3RPCError
    from web3.types import BlockIdentifier, RPCEndpoint, RPCResponse, TxParams

T = TypeVar("T")

TIMEOUT_S = 2.5
MOST_BYTES = 4 * 1024 * 1024
_DECIMALS, _BALANCE, _VALID = bytes.fromhex("313ce567"), bytes.fromhex("70a08231"), bytes.fromhex("1626ba7e")
_UNUSABLE = (
    *(Web3Exception, ClientError, OSError, TimeoutError),
    *(ValueError, TypeError, LookupError, AttributeError, RuntimeError),
)

for _name in ("web3", "aiohttp"):
    logging.getLogger(_name).setLevel(logging.WARNING)  # below it they write addresses, and keys are part of these


class NodeDown(ToolserverError):
    """No usable answer. The text names the kind of failure and never the address, which may hold a key."""


class Facts(NamedTuple):
    """What must be right before a server is believed anything."""

    chain_id: int
    decimals: int
    has_code: bool


class _Provider(AsyncHTTPProvider):
    """web3's own, but it takes no answer to another question, and none without end.

    It keeps its connections itself: web3's keeper holds a lock of the whole process while it waits for it in a thread,
    and a question that is cancelled at that moment leaves it locked for ever.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        super().__init__(url, exception_retry_configuration=None)
        self._url = url
        connector, timeout = TCPConnector(limit=8), ClientTimeout(total=timeout_s)
        self._session = ClientSession(raise_for_status=True, connector=connector, timeout=timeout)

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        sent = self.encode_rpc_request(method, params)
        came: Any = json.loads(await self._make_request(method, sent))
        if not isinstance(came, dict) or came.get("id") != json.loads(sent)["id"]:
            raise ValueError("the answer is not to this question")
        if "result" not in came and not isinstance(came.get("error"), dict):
            raise ValueError("neither result nor error")
        return came  # type: ignore[return-value]

    async def _make_request(self, method: RPCEndpoint, request_data: bytes) -> bytes:
        """Once more on a connection that turns out to be closed, not otherwise: the next server is the second try."""
        with contextlib.suppress(ServerDisconnectedError):
            return await self._posted(request_data)
        return await self._posted(request_data)

    async def _posted(self, data: bytes) -> bytes:
        body, headers = bytearray(), self.get_request_headers()
        async with self._session.post(self._url, data=data, headers=headers, allow_redirects=False) as answer:
            async for part in answer.content.iter_chunked(65_536):
                body += part
                if len(body) > MOST_BYTES:
                    raise ValueError("too many bytes")
        return bytes(body)

    async def disconnect(self) -> None:
        await self._session.close()
        await anyio.lowlevel.checkpoint()  # sockets are closed by the event loop, in its next turn


class Node:
    """One server. It is connected to when it is first asked."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._timeout_s = url, timeout_s
        self._web3: AsyncWeb3[Any] | None = None

    async def facts(self) -> Facts:
        """Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> Facts:
            chain_id, code = await web3.eth.chain_id, await web3.eth.get_code(checksummed(USDC))  # type: ignore[arg-type]
            return Facts(int(chain_id), _number(await self._call(web3, USDC, _DECIMALS)) if code else 0, bool(code))

        return await self._asked(ask)

    async def sight(self, tx_hash: bytes) -> Sighting | None:
        """The transaction as this server sees it; None when it does not, or not in a block. Raises NodeDown."""
        return await self._asked(lambda web3: self._sight(web3, tx_hash))

    async def block_hash(self, number: int) -> bytes | None:
        """The hash of a block; None when the server has no block of that number yet. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> bytes | None:
            try:
                return _bytes((await web3.eth.get_block(number))["hash"], 32)
            except BlockNotFound:
                return None

        return await self._asked(ask)

    async def balance(self, address: bytes) -> int:
        """USDC on an address, as of the newest finalized block. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> int:
            return _number(await self._call(web3, USDC, _BALANCE + bytes(12) + address, "finalized"))

        return await self._asked(ask)

    async def accepts(self, account: bytes, digest: bytes, signature: bytes) -> bool:
        """Whether a contract account takes a signature for its own (ERC-1271). Raises NodeDown."""
        words = (64).to_bytes(32, "big") + len(signature).to_bytes(32, "big")
        data = _VALID + digest + words + signature + bytes(-len(signature) % 32)

        async def ask(web3: AsyncWeb3[Any]) -> bool:
            try:
                return (await self._call(web3, account, data))[:4] == _VALID
            except ContractLogicError:  # it reverts: not a signature to its liking
                return False

        return await self._asked(ask)

    async def aclose(self) -> None:
        web3, self._web3 = self._web3, None
        if web3 is not None:
            await web3.provider.disconnect()

    async def _asked(self, ask: Callable[["AsyncWeb3[Any]"], Awaitable[T]]) -> T:
        """The answer to some questions, all within twice the time of one."""
        try:
            with anyio.fail_after(2 * self._timeout_s):
                return await ask(self._connected())
        except ExceptionGroup as group:  # of questions asked side by side
            raise NodeDown(type(group.exceptions[0]).__name__) from None
        except _UNUSABLE as error:
            raise NodeDown(type(error).__name__) from None

    def _connected(self) -> "AsyncWeb3[Any]":
        if self._web3 is None:
            self._web3 = AsyncWeb3(_Provider(self._url, self._timeout_s))
        return self._web3

    async def _sight(self, web3: "AsyncWeb3[Any]", tx_hash: bytes) -> Sighting | None:
        try:
            receipt = _receipt(await web3.eth.get_transaction_receipt(HexBytes(tx_hash)), tx_hash)
            if receipt is None:
                return None
            found: dict[str, Any] = {}

            async def fetch(name: str, question: Callable[..., Awaitable[Any]], *given: Any) -> None:
                found[name] = await question(*given)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fetch, "sent", web3.eth.get_transaction, HexBytes(tx_hash))
                tasks.start_soon(fetch, "block", web3.eth.get_block, receipt.block_number)
                for tag in ("latest", "safe", "finalized"):
                    tasks.start_soon(fetch, tag, _height, web3, tag)
        except (TransactionNotFound, BlockNotFound):
            return None
        except ExceptionGroup as group:
            if group.subgroup((TransactionNotFound, BlockNotFound)) is None:
                raise
            return None  # between two questions the chain was reorganised, or another server of a cluster answered
        sent, block = found["sent"], found["block"]
        return Sighting(
            receipt,
            Transaction(_address(sent["to"]) if sent["to"] else None, bytes(sent["input"])),
            _bytes(block["hash"], 32),
            _count(block["timestamp"]),
            *(found[name] for name in ("latest", "safe", "finalized")),
        )

    async def _call(self, web3: "AsyncWeb3[Any]", to: bytes, data: bytes, at: BlockIdentifier = "latest") -> bytes:
        call: TxParams = {"to": checksummed(to), "data": HexBytes(data)}
        return bytes(await web3.eth.call(call, at))


async def _height(web3: "AsyncWeb3[Any]", tag: BlockIdentifier) -> int:
    """The number of the newest block of that kind; 0 where a server knows no such kind."""
    try:
        return _count((await web3.eth.get_block(tag))["number"])
    except (Web3RPCError, BlockNotFound):
        if tag == "latest":
            raise
        return 0


def _receipt(said: Any, tx_hash: bytes) -> Receipt | None:
    """The receipt in our own form; None while it is that of a block to come."""
    if _bytes(said["transactionHash"], 32) != tx_hash:
        raise ValueError("the receipt is of another transaction")
    if said["blockHash"] is None or said["blockNumber"] is None:
        return None
    logs = tuple(_log(each) for each in said["logs"] if not each.get("removed"))
    return Receipt(tx_hash, int(said["status"]), _count(said["blockNumber"]), _bytes(said["blockHash"], 32), logs)


def _log(said: Any) -> Log:
    topics = tuple(_bytes(topic, 32) for topic in said["topics"])
    return Log(_address(said["address"]), topics, bytes(said["data"]), int(said["logIndex"]))


def _address(text: str) -> bytes:
    return _bytes(bytes.fromhex(text.removeprefix("0x")), 20)


def _bytes(value: Any, length: int) -> bytes:
    found = bytes(value)
    if len(found) != length:
        raise ValueError(f"not {length} bytes")
    return found


def _count(value: Any) -> int:
    """A height or a time, as far as they can be stored in milliseconds."""
    found = int(value)
    if not 0 <= found < 2**53 // 1000:
        raise ValueError("no such number")
    return found


def _number(word: bytes) -> int:
    return int.from_bytes(_bytes(word, 32), "big")
