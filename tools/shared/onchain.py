"""Read the transfers of the newest Ethereum blocks, and value them. Blocks do not change, so all callers share them."""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Literal, NamedTuple

import anyio
from pydantic import Field

from tools.sources import chainlink, coinbase, kraken
from tools.sources.ethereum import BLOCK_NUMBER, FULL_BLOCK, Block, EtherTransfer
from toolserver import Fallback, FallbackReader, Payload, SourceError, Timestamp, ToolContext, iso, via

BLOCKS, AT_ONCE = 5, 3
OLDEST = timedelta(seconds=180)  # age of the newest block, after which the chain counts as halted
WEI = Decimal(10**18)
PLACES = 6

Asset = Literal["BTC", "ETH"]

PRICE_SOURCES = (coinbase.PRODUCT_STATS, kraken.TICKER, chainlink.PRICE_FEED)
CHAIN_SOURCES = (BLOCK_NUMBER, FULL_BLOCK)
PAIRS: dict[Asset, chainlink.Pair] = {"BTC": "BTC-USD", "ETH": "ETH-USD"}
KRAKEN: dict[Asset, str] = {"BTC": "XBTUSD", "ETH": "ETHUSD"}


class ScannedBlock(Payload):
    number: int = Field(description="Number of the block")
    time: Timestamp = Field(description="Time of the block")
    tx_count: int = Field(ge=0, description="Transactions in the block")


class Chain(NamedTuple):
    """The newest blocks, newest first; `missing` counts the requested blocks that failed, `reason` says why."""

    blocks: tuple[Block, ...]
    missing: int
    reason: str | None

    @property
    def transfers(self) -> Iterable[tuple[Block, EtherTransfer]]:
        """Every transfer with its block, newest block first."""
        return ((block, transfer) for block in self.blocks for transfer in block.transfers)


def block_fallbacks(ctx: ToolContext) -> tuple[Fallback[Chain], ...]:
    """Return the only fallback, for as many blocks as the service is set to read."""
    return (partial(newest_blocks, count=ctx.host.blocks if ctx.host else BLOCKS),)


async def newest_blocks(reading: FallbackReader, count: int = BLOCKS) -> Chain:
    """Read the newest blocks, three at a time, as a fallback. Raises SourceError when all of them fail."""
    head = await reading.read(BLOCK_NUMBER)
    seats = anyio.CapacityLimiter(AT_ONCE)
    blocks: list[Block] = []
    failed: list[SourceError] = []

    async def one(number: int) -> None:
        async with seats:
            try:
                blocks.append(await reading.read(FULL_BLOCK, number))
            except SourceError as error:
                failed.append(error)

    async with anyio.create_task_group() as tasks:
        for number in range(head, head - count, -1):
            tasks.start_soon(one, number)
    if not blocks:
        raise failed[0]
    newest_first = sorted(blocks, key=lambda block: block.number, reverse=True)
    return Chain(tuple(newest_first), len(failed), failed[0].reason if failed else None)


def judge(ctx: ToolContext, section: str, chain: Chain) -> None:
    """Warn about the blocks: some are missing, or all of them are old."""
    if chain.missing:
        text = f"{chain.missing} of {chain.missing + len(chain.blocks)} blocks could not be read ({chain.reason})."
        ctx.warn(section, "partial", text, FULL_BLOCK.name)
    newest = chain.blocks[0]
    if ctx.now - newest.time > OLDEST:
        ctx.warn(section, "stale_data", f"The newest block is of {iso(newest.time)}.", FULL_BLOCK.name)
        ctx.judge_stale(True)


def list_scanned(chain: Chain | None) -> list[ScannedBlock]:
    """Return the blocks that were read, newest first."""
    blocks = chain.blocks if chain else ()
    return [ScannedBlock(number=block.number, time=block.time, tx_count=block.tx_count) for block in blocks]


def price_fallbacks(asset: Asset) -> tuple[Fallback[float], ...]:
    """Return the fallbacks for the price of one BTC or ETH in USD: two exchanges, then the chain's own feed."""
    return (
        via(coinbase.PRODUCT_STATS, PAIRS[asset], lambda stats: stats.last),
        via(kraken.TICKER, KRAKEN[asset], lambda ticker: ticker.last),
        via(chainlink.PRICE_FEED, PAIRS[asset], lambda answer: answer.price),
    )


def ether(wei: int) -> Decimal:
    return Decimal(wei) / WEI


def show_amount(units: Decimal, places: int = PLACES) -> float:
    """Round an amount for the payload; it is exact until here."""
    return float(round(units, places)) + 0.0  # + 0.0 turns -0.0 into 0.0


def dollars(units: Decimal, price: float | None) -> int | None:
    """Return the worth of these units in whole USD; None without a price."""
    return None if price is None else round(units * Decimal(str(price)))


def link(transaction: str) -> str:
    return f"https://etherscan.io/tx/{transaction}"
