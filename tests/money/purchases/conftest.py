"""A chain of one's own for each test, and a desk that reads it."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.money.purchases.anvil import START, Anvil, started
from tests.money.purchases.parts import Desk, desk
from toolserver.clock import ManualClock
from toolserver.money.purchases.chain.node import ChainNode


@pytest.fixture
def anvil() -> Iterator[Anvil]:
    """A new local chain with USDC on it."""
    with started() as url:
        chain = Anvil(url)
        chain.set_up()
        yield chain
        chain.close()


@pytest.fixture
def chain_clock() -> ManualClock:
    """It shows the time of the chain's first block."""
    return ManualClock(datetime.fromtimestamp(START, UTC))


@pytest.fixture
async def d(anvil: Anvil, chain_clock: ManualClock, tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk that reads the local chain."""
    async with desk(tmp_path, [ChainNode(anvil.url, timeout_s=15)], clock=chain_clock) as made:
        yield made
