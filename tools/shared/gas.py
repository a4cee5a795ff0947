"""Price gas on Ethereum, from the chain itself or from an explorer."""

from datetime import datetime, timedelta
from statistics import median
from typing import Literal, NamedTuple

from tools.sources.blockscout import GAS_PRICES
from tools.sources.ethereum import FEE_HISTORY, LATEST_HEADER, FeeHistory, Header
from tools.sources.etherscan import GAS_ORACLE
from toolserver import Fallback, FallbackReader, Meaning, SourceChanged, SourceFrozen, lacking

Method = Literal["fee_history", "explorer"]

GAS_SOURCES = (LATEST_HEADER, FEE_HISTORY, GAS_PRICES, GAS_ORACLE)
WEI_A_GWEI = 10**9
SLOT, OLDEST, AHEAD = timedelta(seconds=12), timedelta(minutes=3), timedelta(minutes=1)


class GasPrice(NamedTuple):
    """Gwei per gas, base fee included: low is slow, fast is expensive. `block` is the newest one considered."""

    low_gwei: float
    standard_gwei: float
    fast_gwei: float
    base_fee_gwei: float | None
    block: int | None
    as_of: datetime
    method: Method


def gas_fallbacks(*from_blocks: str) -> tuple[Fallback[GasPrice], ...]:
    """Return the fallbacks: fees paid in the newest blocks, then Blockscout, then Etherscan where its key is set.

    `from_blocks` are the members of the answer with the base fee and the block, which Blockscout does not give.
    """
    return (_of_history, lacking(_of_blockscout, *from_blocks), _of_etherscan)


async def _of_history(reading: FallbackReader) -> GasPrice:
    header = await reading.read(LATEST_HEADER)
    history = await reading.read(FEE_HISTORY)
    return sound(from_history(history, living(time_of(history.newest_block, header), obtained_at(reading))))


async def _of_blockscout(reading: FallbackReader) -> GasPrice:
    said = await reading.read(GAS_PRICES)
    return sound(GasPrice(said.slow_gwei, said.average_gwei, said.fast_gwei, None, None, said.updated_at, "explorer"))


async def _of_etherscan(reading: FallbackReader) -> GasPrice:
    said = await reading.read(GAS_ORACLE)
    header = await reading.read(LATEST_HEADER)
    as_of = living(time_of(said.block, header), obtained_at(reading))
    return sound(
        GasPrice(said.safe_gwei, said.propose_gwei, said.fast_gwei, said.base_fee_gwei, said.block, as_of, "explorer")
    )


def time_of(block: int, header: Header) -> datetime:
    """Return the time of a block, computed from a block with a known time: fees and the oracle carry no time.

    Blocks are a slot apart. A few slots stay empty, so the real time is seconds later.
    """
    return header.time + (block - header.number) * SLOT


def living(mined_at: datetime, now: datetime) -> datetime:
    """Return the block's time if the block is recent enough to be the newest.

    Raises:
        SourceFrozen: the block is too old.
        SourceChanged: its time is in the future.
    """
    if mined_at - now > AHEAD:
        raise SourceChanged(f"the newest block is dated {mined_at:%Y-%m-%d %H:%M}, in the future")
    if now - mined_at > OLDEST:
        raise SourceFrozen(f"the newest block is dated {mined_at:%Y-%m-%d %H:%M}")
    return min(mined_at, now)


def obtained_at(reading: FallbackReader) -> datetime:
    """Return when the latest answer was obtained."""
    at = reading.notes[-1].fetched_at
    if at is None:
        raise ValueError("an answer without a timestamp")
    return at


def from_history(history: FeeHistory, as_of: datetime) -> GasPrice:
    """Return the next block's base fee plus the median tip over the blocks at the percentiles 10, 50 and 90.

    Raises:
        SourceChanged: no block has a transaction.
    """
    if not history.rewards:
        raise SourceChanged("no tips")
    base = history.base_fees[-1]
    low, standard, fast = ((base + median(tips)) / WEI_A_GWEI for tips in zip(*history.rewards, strict=True))
    return GasPrice(low, standard, fast, base / WEI_A_GWEI, history.newest_block, as_of, "fee_history")


def sound(price: GasPrice) -> GasPrice:
    """Return the price. Raises SourceChanged unless low <= standard <= fast."""
    if not price.low_gwei <= price.standard_gwei <= price.fast_gwei:
        raise SourceChanged(f"{price.low_gwei:g} {price.standard_gwei:g} {price.fast_gwei:g} are out of order")
    return price


BASE_FEE = Meaning(
    "gas.base_fee",
    "Ethereum's base fee of the next block, which the chain sets; the tips above it are the medians over 20 blocks of "
    "the percentiles 10, 50 and 90, which is our choice, and those of explorers are theirs",
)
