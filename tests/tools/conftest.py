"""What tests of tools under a simulated clock share."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import anyio.to_thread
import pytest


@pytest.fixture
def simulated_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No time may pass while a thread works: what is for threads is done at once. Nothing is logged."""

    async def at_once(function: Callable[..., Any], *args: Any, **how: Any) -> Any:
        return function(*args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
