"""A running simulated world for the tests of this folder."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from tests.world.toy import Running, T, toy
from toolserver.world.server import serve_world
from toolserver.world.state import SimClock, WorldState


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """A folder of recorded bodies."""
    (tmp_path / "samples" / "toy").mkdir(parents=True)
    return tmp_path / "samples"


@pytest.fixture
def limits() -> dict[str, float]:
    """The limits of the listener that a test sets otherwise than usual."""
    return {}


@pytest.fixture
async def world(recordings: Path, limits: dict[str, float]) -> AsyncIterator[Running]:
    """A world with its clock stopped at T."""
    upstreams = toy()
    state = WorldState(clock=SimClock(T, frozen=True), samples=recordings, primaries=["Toy.quote"])
    async with anyio.create_task_group() as group:
        port = await group.start(partial(serve_world, state, upstreams.routes, **limits))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:
            yield Running(state, upstreams, port, client)
        group.cancel_scope.cancel()


@pytest.fixture
def ticks() -> Callable[[], float]:
    """A machine clock moved by hand: `ticks.at += 5`."""

    class Ticks:
        at = 100.0

        def __call__(self) -> float:
            return self.at

    return Ticks()
