"""Reads USDC on Base from one JSON-RPC server. The only module that imports web3; imported only when payments are on.

A server may be slow, behind, on another chain, or lie. Any response that is not exactly what
was requested raises `NodeDown`, and "not found" means no more than "not seen yet". Responses
are turned into our own plain values here.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
import msgspec
from hexbytes import HexBytes

from toolserver.core.import_guard import recursion_limit_kept
from toolserver.core.json_rpc import JsonRpcClient, RpcRefused, RpcUnusable
from toolserver.core.outbound import NO_PROXIES, Proxies
from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.matching import (
    TRANSFER,
    BlockHead,
    ChainHeads,
    Log,
    LoggedTransfer,
    ObservedTransaction,
    Receipt,
    Transaction,
    read_transfer,
)
from toolserver.money.purchases.units import LEAST, USDC, USDC_TEXT

with recursion_limit_kept():
    from web3 import AsyncWeb3
    from web3.exceptions import BlockNotFound, ContractLogicError, TransactionNotFound, Web3Exception, Web3RPCError
    from web3.providers.async_base import AsyncJSONBaseProvider
    from web3.types import BlockIdentifier, RPCEndpoint, RPCResponse, TxParams

T = TypeVar("T")

TIMEOUT_S, PATIENT_S = 2.5, 20.0
MOST_BYTES = 4 * 1024 * 1024
BLOCK_S, MARGIN = 2, 64  # the seconds between blocks, and how many more blocks are searched, because clocks differ
SEARCHED = 2_000  # blocks in one search: an hour of Base, and as many as most servers allow
_DECIMALS, _VALID = bytes.fromhex("313ce567"), bytes.fromhex("1626ba7e")
_TOO_MUCH = ("the answer is too long", "HTTP 400", "HTTP 413")  # how servers refuse a range, other than by an error
_UNUSABLE = (Web3Exception, TimeoutError, ValueError, TypeError, LookupError, AttributeError, RuntimeError)

logging.getLogger("web3").setLevel(logging.WARNING)  # below this level web3 logs addresses, which may contain keys


class NodeDown(ToolserverError):
    """The server gave no usable response. The text names the kind of failure, never the address (and its key)."""


class NodeFacts(NamedTuple):
    """The facts that are checked about a server before any of its responses is used: its
    chain, and whether the USDC contract is there with the right number of decimals.
    """

    chain_id: int
    decimals: int
    has_code: bool


class _Provider(AsyncJSONBaseProvider):
    """Sends web3's requests through our JSON-RPC client, which refuses responses to other requests and too long ones.

    web3's own provider keeps its sessions under a process-wide lock, and a request that is
    cancelled while it waits for that lock leaves it locked for good.
    """

    def __init__(self, rpc: JsonRpcClient) -> None:
        super().__init__()
        self._rpc = rpc

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        plain = msgspec.json.decode(self.encode_rpc_request(method, params))["params"]
        return await self._rpc.exchange(method, plain)  # type: ignore[return-value]

    async def disconnect(self) -> None:
        await self._rpc.aclose()


class ChainNode:
    """One server. The first request connects to it."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, proxies: Proxies = NO_PROXIES) -> None:
        self._timeout_s = timeout_s
        self._rpc = JsonRpcClient(url, timeout_s=timeout_s, most_bytes=MOST_BYTES, proxies=proxies)
        self._web3: AsyncWeb3[Any] | None = None

    @property
    def is_privately_certified(self) -> bool:
        """True if the server has shown a certificate that no public authority issued."""
        return self._rpc.is_privately_certified

    async def facts(self) -> NodeFacts:
        """Return the server's chain, and what it knows about the USDC contract. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> NodeFacts:
            chain_id, code = await web3.eth.chain_id, await web3.eth.get_code(USDC_TEXT)  # type: ignore[arg-type]
            return NodeFacts(int(chain_id), _number(await self._call(web3, USDC, _DECIMALS)) if code else 0, bool(code))

        return await self._asked(ask)

    async def observe(self, tx_hash: bytes) -> ObservedTransaction | None:
        """Return the transaction as this server reports it, or None while it is in no block that the server knows.

        Raises NodeDown.
        """
        return await self._asked(lambda web3: self._observe(web3, tx_hash))

    async def block_hash(self, number: int) -> bytes | None:
        """Return the hash of a block, or None if the server has no block of that number yet. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> bytes | None:
            try:
                return _bytes((await web3.eth.get_block(number))["hash"], 32)
            except BlockNotFound:
                return None

        return await self._asked(ask)

    async def balances(self, addresses: Sequence[bytes]) -> list[int]:
        """Return the 0.000001 USDC on each of up to `BATCH` addresses at the newest finalized block, by one request.

        Raises NodeDown.
        """
        return await self._read_balances(addresses, "finalized")

    async def balances_at(self, addresses: Sequence[bytes], block: int) -> list[int]:
        """Return the 0.000001 USDC that up to `BATCH` addresses held after a block, by one request. Raises NodeDown."""
        return await self._read_balances(addresses, hex(block))

    async def read_heads(self) -> ChainHeads:
        """Return the newest block, and the heights up to which blocks are safe and finalized. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> ChainHeads:
            latest = _head(await self._rpc.call("eth_getBlockByNumber", "latest", False))
            return ChainHeads(latest, await _height(web3, "safe"), await _height(web3, "finalized"))

        return await self._asked(ask)

    async def read_block(self, number: int) -> BlockHead | None:
        """Return a block, or None if the server has no block of that number yet. Raises NodeDown."""

        async def ask(web3: AsyncWeb3[Any]) -> BlockHead | None:
            block = await self._rpc.call("eth_getBlockByNumber", hex(number), False)
            return None if block is None else _head(block)

        return await self._asked(ask)

    async def read_transfers(
        self, addresses: Sequence[bytes], first: int, last: int, *, outward: bool
    ) -> list[LoggedTransfer] | None:
        """Return the transfers of USDC to these addresses, or (`outward`) from them, in a range of blocks.

        Return None if the server refuses so many addresses, blocks or results in one request. Raises NodeDown.
        """
        words = [f"0x{_word(address).hex()}" for address in addresses]
        wanted = {
            "address": USDC_TEXT,
            "topics": [f"0x{TRANSFER.hex()}", words] if outward else [f"0x{TRANSFER.hex()}", None, words],
            "fromBlock": hex(first),
            "toBlock": hex(last),
        }

        async def ask(web3: AsyncWeb3[Any]) -> list[LoggedTransfer] | None:
            try:
                entries = await self._rpc.call("eth_getLogs", wanted)
            except RpcRefused:
                return None
            except RpcUnusable as error:
                if str(error) in _TOO_MUCH:
                    return None
                raise
            ours = set(addresses)
            moved = [_logged(entry) for entry in entries if not entry.get("removed")]
            for each in moved:
                if not (first <= each.block_number <= last and (each.payer if outward else each.payee) in ours):
                    raise ValueError("a log that was not requested")
            return moved

        return await self._asked(ask)

    async def find_transfer(self, address: bytes, since: int) -> bytes | None:
        """Return the hash of the first transaction that moved at least 1 USDC to an address
        since a time (epoch seconds) within the last `SEARCHED` blocks, or None if there is
        none. Raises NodeDown.
        """

        async def ask(web3: AsyncWeb3[Any]) -> bytes | None:
            latest = await web3.eth.get_block("latest")
            height, age = _count(latest["number"]), max(0, _count(latest["timestamp"]) - since)
            first = max(0, height - min(SEARCHED, age // BLOCK_S + MARGIN))
            topics = [HexBytes(TRANSFER), None, HexBytes(bytes(12) + address)]
            logs = await web3.eth.get_logs(
                {"address": USDC_TEXT, "topics": topics, "fromBlock": first, "toBlock": height}  # type: ignore[typeddict-item]
            )
            enough = (entry for entry in logs if _number(bytes(entry["data"])) >= LEAST)  # anybody can send dust
            return next((_bytes(entry["transactionHash"], 32) for entry in enough), None)

        return await self._asked(ask)

    async def accepts(self, account: bytes, digest: bytes, signature: bytes) -> bool:
        """Return True if a contract account accepts a signature as its own (ERC-1271). Raises NodeDown."""
        words = (64).to_bytes(32, "big") + len(signature).to_bytes(32, "big")
        data = _VALID + digest + words + signature + bytes(-len(signature) % 32)

        async def ask(web3: AsyncWeb3[Any]) -> bool:
            try:
                return (await self._call(web3, account, data))[:4] == _VALID
            except ContractLogicError:  # the contract reverts, so it does not accept the signature
                return False

        return await self._asked(ask)

    async def aclose(self) -> None:
        web3, self._web3 = self._web3, None
        if web3 is not None:
            await web3.provider.disconnect()

    async def _read_balances(self, addresses: Sequence[bytes], at: str) -> list[int]:
        call = {"data": f"0x{(balances_code() + b''.join(map(_word, addresses))).hex()}"}

        async def ask(web3: AsyncWeb3[Any]) -> list[int]:
            words = bytes.fromhex(str(await self._rpc.call("eth_call", call, at))[2:])
            if len(words) != 32 * len(addresses):
                raise ValueError("not a balance for each address")
            return [int.from_bytes(words[at : at + 32], "big") for at in range(0, len(words), 32)]

        return await self._asked(ask)

    async def _asked(self, ask: Callable[["AsyncWeb3[Any]"], Awaitable[T]]) -> T:
        """Return what `ask` returns, which may make several requests, all within twice the
        time of one. Raises NodeDown.
        """
        try:
            with anyio.fail_after(2 * self._timeout_s):
                return await ask(self._connected())
        except ExceptionGroup as group:  # of requests made side by side
            raise NodeDown(_name_of(group.exceptions[0])) from None
        except RpcUnusable as error:
            raise NodeDown(_name_of(error)) from None
        except _UNUSABLE as error:
            raise NodeDown(type(error).__name__) from None

    def _connected(self) -> "AsyncWeb3[Any]":
        if self._web3 is None:
            self._web3 = AsyncWeb3(_Provider(self._rpc))
        return self._web3

    async def _observe(self, web3: "AsyncWeb3[Any]", tx_hash: bytes) -> ObservedTransaction | None:
        try:
            receipt = _receipt(await web3.eth.get_transaction_receipt(HexBytes(tx_hash)), tx_hash)
            if receipt is None:
                return None
            answers: dict[str, Any] = {}

            async def fetch(name: str, question: Callable[..., Awaitable[Any]], *arguments: Any) -> None:
                answers[name] = await question(*arguments)

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
            return None  # the chain was reorganised between two requests, or another server of a cluster answered
        sent, block = answers["sent"], answers["block"]
        return ObservedTransaction(
            receipt,
            Transaction(_address(sent["to"]) if sent["to"] else None, bytes(sent["input"])),
            _bytes(block["hash"], 32),
            _count(block["timestamp"]),
            latest=answers["latest"],
            safe=answers["safe"],
            finalized=answers["finalized"],
        )

    async def _call(self, web3: "AsyncWeb3[Any]", to: bytes, data: bytes, at: BlockIdentifier = "latest") -> bytes:
        call: TxParams = {"to": checksum_address(to), "data": HexBytes(data)}
        return bytes(await web3.eth.call(call, at))


def _name_of(error: Exception) -> str:
    """Return the kind of a failure. Only the text of RpcUnusable is known to contain no address."""
    return str(error) if isinstance(error, RpcUnusable) else type(error).__name__


async def _height(web3: "AsyncWeb3[Any]", tag: BlockIdentifier) -> int:
    """Return the number of the newest block with this tag, or 0 if the server does not know the tag."""
    try:
        return _count((await web3.eth.get_block(tag))["number"])
    except (Web3RPCError, BlockNotFound):
        if tag == "latest":
            raise
        return 0


def _receipt(said: Any, tx_hash: bytes) -> Receipt | None:
    """Return the receipt as our own value, or None while it is in no block yet. Raises ValueError."""
    if _bytes(said["transactionHash"], 32) != tx_hash:
        raise ValueError("the receipt is of another transaction")
    if said["blockHash"] is None or said["blockNumber"] is None:
        return None
    logs = tuple(_log(each) for each in said["logs"] if not each.get("removed"))
    return Receipt(tx_hash, int(said["status"]), _count(said["blockNumber"]), _bytes(said["blockHash"], 32), logs)


def _word(address: bytes) -> bytes:
    """Return an address as a topic or an argument: 32 bytes."""
    return bytes(12) + _bytes(address, 20)


def _head(said: Any) -> BlockHead:
    return BlockHead(_quantity(said["number"]), _raw(said["hash"], 32), _quantity(said["timestamp"]))


def _logged(said: Any) -> LoggedTransfer:
    """Return a log entry as it came over the wire as a transfer. Raises ValueError if it is none."""
    topics = tuple(_raw(topic, 32) for topic in said["topics"])
    log_index = _quantity(said["logIndex"])
    moved = read_transfer(Log(_raw(said["address"], 20), topics, _raw(said["data"], 32), log_index))
    if moved is None:
        raise ValueError("not a transfer")
    return LoggedTransfer(
        _raw(said["transactionHash"], 32),
        moved.payer,
        moved.payee,
        moved.amount,
        _quantity(said["blockNumber"]),
        _raw(said["blockHash"], 32),
        log_index,
        _quantity(said["blockTimestamp"]) if said.get("blockTimestamp") else None,
    )


def _raw(text: str, length: int) -> bytes:
    """Return the bytes of hexadecimal digits as they come over the wire. Raises ValueError."""
    return _bytes(bytes.fromhex(text[2:]), length)


def _quantity(text: str) -> int:
    return _count(int(text, 16))


def _log(said: Any) -> Log:
    topics = tuple(_bytes(topic, 32) for topic in said["topics"])
    return Log(_address(said["address"]), topics, bytes(said["data"]), int(said["logIndex"]))


def _address(text: str) -> bytes:
    return _bytes(bytes.fromhex(text.removeprefix("0x")), 20)


def _bytes(value: Any, length: int) -> bytes:
    octets = bytes(value)
    if len(octets) != length:
        raise ValueError(f"not {length} bytes")
    return octets


def _count(value: Any) -> int:
    """Return a height or a time in seconds, small enough to be stored in milliseconds. Raises ValueError."""
    count = int(value)
    if not 0 <= count < 2**53 // 1000:
        raise ValueError("no such number")
    return count


def _number(word: bytes) -> int:
    return int.from_bytes(_bytes(word, 32), "big")


_LENGTH = 0x57  # of the code below, after which the addresses begin

_CODE = (
    "6370a0823160e01b600052"  # memory[0:4] = selector of balanceOf(address)
    "6000"  # i = 0, counted in bytes
    "5b803860{length}90031115604d57"  # while i < size of the addresses, else go to 4d
    "60208160{length}01600439"  # memory[4:36] = the address at i
    "6020816040016024600073{token}5afa"  # memory[64+i:] = token.balanceOf(address), by STATICCALL
    "15605157"  # go to 51 if the call failed
    "602001600d56"  # i += 32, and again
    "5b6040f3"  # 4d: return memory[64:64+i]
    "5b60006000fd"  # 51: revert
)


def balances_code() -> bytes:
    """Return the code that reads balances of USDC. The caller appends 32 bytes for each address."""
    text = _CODE.format(length=f"{_LENGTH:02x}", token=USDC.hex())
    code = bytes.fromhex(text)
    if len(code) != _LENGTH:
        raise AssertionError(f"the code has {len(code)} bytes")
    return code
