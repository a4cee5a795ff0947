"""Read head, blocks and fees of Ethereum over JSON-RPC, from your own node (ETH_RPC_URL) or public ones.

The data is public.

https://ethereum.github.io/execution-apis/
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from tools.parsing.ethereum_rpc import KEY, address, ask, quantity, result
from tools.parsing.fields import clean, from_epoch, within
from tools.sources.hosts import DAY, HOUR, MINUTE, RPC
from toolserver import MIB, Keys, KeyTerms, Licence, Post, Source, SourceChanged, SourceEmpty, read_rows

# The state of a chain has no owner, but the terms of the public nodes that serve it bar extraction (PublicNode) or do
# not mention it. The operator's own node, or a plan of a provider, has no such terms.
LICENCE = Licence("unclear", "Ethereum (public chain data)")
TERMS = {KEY: KeyTerms(Licence("yes", "Ethereum (public chain data)"))}
FLOOR_WEI = 10**18

BlockId: TypeAlias = int | Literal["latest"]


class EtherTransfer(NamedTuple):
    """Ether moved by the transaction itself. `to` is None when it created a contract. Addresses are lower-case."""

    hash: str
    sender: str
    to: str | None
    value_wei: int


class Block(NamedTuple):
    """A block: every transaction is counted, transfers of at least 1 ETH are kept."""

    number: int
    hash: str
    time: datetime
    tx_count: int
    transfers: tuple[EtherTransfer, ...]


class FeeHistory(NamedTuple):
    """Fees of consecutive blocks, the last of which is `newest_block`; wei.

    `base_fees` has one entry more than there are blocks: the last is the next block's.
    `rewards` holds each block's tips at the percentiles 10, 50 and 90; a block without
    transactions has none and is left out.
    """

    newest_block: int
    base_fees: tuple[int, ...]
    rewards: tuple[tuple[int, ...], ...]


def number_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "eth_blockNumber")


def parse_number(body: Any, query: None) -> int:
    """Return the height of the chain."""
    return int(within(quantity(result(body)), 1, 1e10))


def block_request(query: BlockId, keys: Keys) -> list[Post]:
    return ask(keys, "eth_getBlockByNumber", query if isinstance(query, str) else hex(query), True)


def parse_block(body: Any, query: BlockId) -> Block:
    """Return the requested block."""
    block = result(body)
    height = quantity(block["number"])
    if query not in ("latest", height):
        raise SourceChanged(f"block {height} for {query}")
    transfers = read_rows(block["transactions"], _transfer)
    return Block(
        number=height,
        hash=clean(block["hash"], 66),
        time=from_epoch(quantity(block["timestamp"])),
        tx_count=len(block["transactions"]),
        transfers=tuple(each for each in transfers if each.value_wei >= FLOOR_WEI),
    )


def _transfer(transaction: dict[str, Any]) -> EtherTransfer:
    to = transaction["to"]
    return EtherTransfer(
        hash=clean(transaction["hash"], 66),
        sender=address(transaction["from"]),
        to=None if to is None else address(to),
        value_wei=quantity(transaction["value"]),
    )


class Header(NamedTuple):
    """The number and the time of a block."""

    number: int
    time: datetime


def header_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "eth_getBlockByNumber", "latest", False)


def parse_header(body: Any, query: None) -> Header:
    """Return number and time of the newest block, which comes without its transactions."""
    block = result(body)
    return Header(int(within(quantity(block["number"]), 1, 1e10)), from_epoch(quantity(block["timestamp"])))


def fees_request(query: None, keys: Keys) -> list[Post]:
    return ask(keys, "eth_feeHistory", "0x14", "latest", [10, 50, 90])


def parse_fees(body: Any, query: None) -> FeeHistory:
    """Return the fees of the 20 newest blocks, or fewer; at least 10."""
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
    terms=TERMS,
    hosts=RPC,
    fresh_s=10,
    moves=lambda height: height,
    keep_s=HOUR,
)

FULL_BLOCK: Source[BlockId, Block] = Source(
    "Ethereum.full_block",
    block_request,
    parse_block,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=DAY,  # a block requested by its number never changes
    ageless="a block requested by its number does not change",
    timeout_s=10,
    max_bytes=4 * MIB,
    newest=lambda block: block.time,
    user_input=True,  # no caller's input, but keeps blocks off the disk: they are many, large and soon useless
    probe=20_000_000,
)

LATEST_BLOCK = replace(FULL_BLOCK, fresh_s=10, keep_s=HOUR, newest_max_s=3 * MINUTE, ageless="", probe="latest")

LATEST_HEADER = Source(
    "Ethereum.full_block",
    header_request,
    parse_header,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=10 * MINUTE,  # the time of one block determines that of the others: they are a slot apart
    keep_s=HOUR,
    newest=lambda header: header.time,
    newest_max_s=13 * MINUTE,
)

FEE_HISTORY = Source(
    "Ethereum.fee_history",
    fees_request,
    parse_fees,
    licence=LICENCE,
    terms=TERMS,
    hosts=RPC,
    fresh_s=12,
    moves=lambda fees: fees.newest_block,
    keep_s=HOUR,
    timeout_s=6,
)
