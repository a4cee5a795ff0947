"""What gas costs on Ethereum, from the chain itself or from an explorer."""

from datetime import datetime
from statistics import median
from typing import Literal, NamedTuple

from tools.sources.blockscout import GAS_PRICES
from tools.sources.ethereum import FEE_HISTORY, FeeHistory
from tools.sources.etherscan import GAS_ORACLE
from toolserver.context import Leg, Reading
from toolserver.errors import SourceChanged

Method = Literal["fee_history", "explorer"]

GAS_SOURCES = (FEE_HISTORY, GAS_PRICES, GAS_ORACLE)
WEI_A_GWEI = 10**9


class GasPrice(NamedTuple):
    """Gwei per gas, base fee included: low is slow, fast is dear. `block` is the newest one looked at."""

    low_gwei: float
    standard_gwei: float
    fast_gwei: float
    base_fee_gwei: float | None
    block: int | None
    as_of: datetime
    method: Method


def gas_legs() -> tuple[Leg[GasPrice], ...]:
    """Fees paid in the newest blocks, then Blockscout, then Etherscan where its key is set."""
    return (_of_history, _of_blockscout, _of_etherscan)


async def _of_history(reading: Reading) -> GasPrice:
    history = await reading.read(FEE_HISTORY)
    return sound(from_history(history, _obtained_at(reading)))


async def _of_blockscout(reading: Reading) -> GasPrice:
    said = await reading.read(GAS_PRICES)
    prices = (said.slow_gwei, said.average_gwei, said.fast_gwei)
    return sound(GasPrice(*prices, None, None, said.updated_at, "explorer"))


async def _of_etherscan(reading: Reading) -> GasPrice:
    said = await reading.read(GAS_ORACLE)
    prices = (said.safe_gwei, said.propose_gwei, said.fast_gwei, said.base_fee_gwei)
    return sound(GasPrice(*prices, said.block, _obtained_at(reading), "explorer"))


def _obtained_at(reading: Reading) -> datetime:
    """When the answer just read was obtained: neither the chain's fees nor the oracle carry a time."""
    at = reading.notes[-1].fetched_at
    if at is None:
        raise ValueError("an answer without a time")
    return at


def from_history(history: FeeHistory, as_of: datetime) -> GasPrice:
    """The next block's base fee, plus the median over the blocks of the tip at the percentiles 10, 50 and 90.

    Raises:
        SourceChanged: no block has a transaction.
    """
    if not history.rewards:
        raise SourceChanged("no tips")
    base = history.base_fees[-1]
    low, standard, fast = ((base + median(tips)) / WEI_A_GWEI for tips in zip(*history.rewards, strict=True))
    return GasPrice(low, standard, fast, base / WEI_A_GWEI, history.newest_block, as_of, "fee_history")


def sound(price: GasPrice) -> GasPrice:
    """The price itself when low <= standard <= fast. Raises SourceChanged."""
    if not price.low_gwei <= price.standard_gwei <= price.fast_gwei:
        raise SourceChanged(f"{price.low_gwei:g} {price.standard_gwei:g} {price.fast_gwei:g} are out of order")
    return price
