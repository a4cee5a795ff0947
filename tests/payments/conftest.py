"""A chain of one's own for each test."""

from collections.abc import Iterator

import pytest

from tests.payments.anvil import Anvil, started


@pytest.fixture
def anvil() -> Iterator[Anvil]:
    """A new local chain with USDC on it."""
    with started() as url:
        chain = Anvil(url)
        chain.set_up()
        yield chain
        chain.close()
