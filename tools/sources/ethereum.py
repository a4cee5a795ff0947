"""Ethereum over JSON-RPC: head, blocks and fees, from your own node (ETH_RPC_URL) or public ones; the data is public.

https://ethereum.github.io/execution-apis/
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from tools.shared.numbers import within
from tools.shared.text import clean
from tools.shared.times import from_epoch
from tools.sources.hosts import RPC
from toolserver.errors import SourceChanged, SourceEmpty, SourceLimited, SourceRefused
from toolserver.upstream.source import MIB, Keys, Licence, Post, Source

HOSTS = (
    "https://ethereum-rpc.publicnode.com/",
    "https://eth.drpc.org/",
    "https://gateway.tenderly.co/public/mainnet",
    "https://rpc.flashbots.net/",
)
LICENCE = Licence("yes", "Ethereum (public chain data)")
ID = 1
LIMITED_CODES = {-32005, -32016, -32029, 15, 429}  # as the public gateways number it
FLOOR_WEI = 10**18

BlockId: TypeAlias = int | Literal["latest"]


class Transfer(NamedTuple):
    """Ether moved by a transaction itself. `to` is None when it made a contract. Addresses are lower-case."""

    hash: str
    sender: str
    to: str | None
    value_wei: int


class Block(NamedTuple):
    """A block: every transaction is counted, those that move at least 1 ETH are kept."""

    number: int
    hash: str
    time: datetime
    tx_count: int
    transfers: tuple[Transfer, ...]


class FeeHistory(NamedTuple):
    """Fees of consecutive blocks, the last of which is `newest_block`; wei.

    `base_fees` has one entry more than there are blocks: the last is the next block's. `rewards` holds each
    block's tips at the percentiles 10, 50 and 90; a block without transactions has none and is left out.
    """

    newest_block: int
    base_fees: tuple[int, ...]
    rewards: tuple[tuple[int, ...], ...]


def ask(keys: Keys, method: str, *params: Any) -> list[Post]:
    """The same call at every host, in the order in which they are tried."""
    own = keys.get("ETH_RPC_URL")
    call = {"jsonrpc": "2.0", "id": ID, "method": method, "params": list(params)}
    return [Post(url, json=call) for url in ((own, *HOSTS) if own else HOSTS)]


def result(body: Any) -> Any:
    """`result` of our own call.

    Raises:
        SourceLimited, SourceRefused: `error` is set, an object or a text.
        SourceEmpty: `result` is null, the node does not know what was asked for.
    """
    if error := body.get("error"):
        raise _refusal(error)
    if body["id"] != ID:
        raise SourceChanged(f"id is {body['id']!r:.20}")
    if body["result"] is None:
        raise SourceEmpty("not found")
    return body["result"]


def _refusal(error: Any) -> SourceLimited | SourceRefused:
    """Never the text itself: a node may quote the key of its URL."""
    code = error.get("code") if isinstance(error, dict) else None
    text = str(error).lower()
    if code in LIMITED_CODES or any(words in text for words in ("rate limit", "too many", "limit exceeded", "quota")):
        return SourceLimited(f"RPC error {code}")
    return SourceRefused(f"RPC error {code}")


def quantity(text: Any) -> int:
    """A hex quantity such as 0x1b. Raises ValueError, also for a number that is not hex."""
    if not isinstance(text, str) or not text.startswith("0x"):
        raise ValueError(f"not a quantity: {text!r:.40}")
    return int(text, 16)


def address(text: Any) -> str:
    """An address in lower case. Raises ValueError."""
    if not isinstance(text, str) or len(text) != 42:
        raise ValueError(f"not an address: {text!r:.60}")
    quantity(text)
    return text.lower()


def number_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "eth_blockNumber")


def parse_number(body: Any, query: None) -> int:
    """The height of the chain."""
    return int(within(quantity(result(body)), 1, 1e10))


def block_request(query: BlockId, keys: Keys) -> list[Post]:
    return ask(keys, "eth_getBlockByNumber", query if isinstance(query, str) else hex(query), True)


def parse_block(body: Any, query: BlockId) -> Block:
    """The block that was asked for."""
    block = result(body)
    height = quantity(block["number"])
    if query not in ("latest", height):
        raise SourceChanged(f"block {height} for {query}")
    found = [_transfer(each) for each in block["transactions"]]
    return Block(
        number=height,
        hash=clean(block["hash"], 66),
        time=from_epoch(quantity(block["timestamp"])),
        tx_count=len(found),
        transfers=tuple(each for each in found if each.value_wei >= FLOOR_WEI),
    )


def _transfer(transaction: dict[str, Any]) -> Transfer:
    to = transaction["to"]
    return Transfer(
        hash=clean(transaction["hash"], 66),
        sender=address(transaction["from"]),
        to=None if to is None else address(to),
        value_wei=quantity(transaction["value"]),
    )


def fees_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "eth_feeHistory", "0x14", "latest", [10, 50, 90])


def parse_fees(body: Any, query: None) -> FeeHistory:
    """The fees of the 20 newest blocks, or fewer; at least 10."""
    history = result(body)
    base_fees = tuple(quantity(fee) for fee in history["baseFeePerGas"])
    blocks = len(base_fees) - 1
    if blocks < 10:
        raise SourceEmpty(f"{blocks} blocks")
    if min(base_fees) <= 0:
        raise SourceChanged("a base fee of 0")
    if len(history["gasUsedRatio"]) != blocks:
        raise SourceChanged(f"{blocks} base fees for {len(history['gasUsedRatio'])} blocks")
    rewards = tuple(tuple(quantity(tip) for tip in row) for row in history.get("reward") or () if row)
    if any(len(row) != 3 for row in rewards):
        raise SourceChanged("not three percentiles")
    return FeeHistory(quantity(history["oldestBlock"]) + blocks - 1, base_fees, rewards)


BLOCK_NUMBER = Source(
    "Ethereum.block_number",
    number_request,
    parse_number,
    licence=LICENCE,
    hosts=RPC,
    fresh_s=10,
    keep_s=3600,
    timeout_s=8,
)

FULL_BLOCK: Source[BlockId, Block] = Source(
    "Ethereum.full_block",
    block_request,
    parse_block,
    licence=LICENCE,
    hosts=RPC,
    fresh_s=86400,  # a block asked for by its number does not change any more
    keep_s=86400,
    timeout_s=10,
    max_bytes=4 * MIB,
    newest=lambda block: block.time,
    user_input=True,  # not a caller's, but blocks are many, large and soon of no interest: never on disk
)

LATEST_BLOCK = replace(FULL_BLOCK, fresh_s=10, keep_s=3600, newest_max_s=180, probe="latest")

FEE_HISTORY = Source(
    "Ethereum.fee_history",
    fees_request,
    parse_fees,
    licence=LICENCE,
    hosts=RPC,
    fresh_s=12,
    keep_s=3600,
    timeout_s=6,
)
