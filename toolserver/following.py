"""Keeping time with a simulated world that runs in another process, so that both agree on what is old."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

if TYPE_CHECKING:
    import httpx

POLL_S = 0.5
LEAP_S = 0.3  # smaller differences are the way of the request


class FollowedClock:
    """The machine's clock until told otherwise: `follow` moves it to the world's, forward in `monotonic` only."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._leapt = 0.0

    def time(self) -> float:
        return time.time() + self._offset

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)

    def monotonic(self) -> float:
        return time.monotonic() + self._leapt

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    def set(self, now: float) -> None:
        """Agree with the world, where it differs by more than the way there explains."""
        difference = now - self.time()
        if abs(difference) > LEAP_S:
            self._offset += difference
            self._leapt += max(difference, 0.0)


async def follow(clock: FollowedClock, via: str, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Ask the world for its time again and again; started after the first time.

    What stands at `via` may be no world of ours: then never mind.
    """
    import httpx

    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=2) as client:
        while await _followed(client, clock, f"{via.rstrip('/')}/_sim/clock"):
            task_status.started()
            task_status = TASK_STATUS_IGNORED
            await anyio.sleep(POLL_S)
    task_status.started()


async def _followed(client: "httpx.AsyncClient", clock: FollowedClock, url: str) -> bool:
    """Set the clock once. False when there is no such clock."""
    import httpx

    try:
        clock.set(float((await client.get(url)).json()["now"]))
    except httpx.TransportError:
        pass  # not there yet, or gone for a moment
    except (ValueError, KeyError, TypeError):
        return False
    return True
