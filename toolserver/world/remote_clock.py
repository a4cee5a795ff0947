"""Follow the clock of a simulated world in another process, so that both agree on the age of data."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx

POLL_S = 0.5
CONNECT_S, PATIENCE_S = 5.0, 60.0  # a world that is busy with many blocks is not away
MOST_BYTES = 10_000  # limit of an answer; the raw bytes are read, so nothing is decompressed
LEAP_S = 0.3  # smaller differences come from the request's transit time


class FollowedClock:
    """The machine's clock until `follow` sets it to the world's; `monotonic` only moves forward."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = 0.0
        self._leapt = 0.0

    def time(self) -> float:
        return self._wall() + self._offset

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)

    def monotonic(self) -> float:
        return self._monotonic() + self._leapt

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    def set(self, now: float) -> None:
        """Adopt the world's time if the difference exceeds what the round trip explains."""
        difference = now - self.time()
        if abs(difference) > LEAP_S:
            self._offset += difference
            self._leapt += max(difference, 0.0)


class WorldAway(Exception):
    """Nothing answers at the address of the simulated world."""


def read_world_time(via: str) -> float | None:
    """Return a world's time in epoch seconds; None if the server at `via` is no simulated world. Raises WorldAway."""
    from toolserver.core.http_library import httpx

    try:
        patience = httpx.Timeout(PATIENCE_S, connect=CONNECT_S)
        with httpx.Client(trust_env=False, verify=False, timeout=patience) as client:  # nosec B501 # a simulation
            return float(client.get(f"{via.rstrip('/')}/_sim/clock").json()["now"])
    except httpx.TransportError:
        raise WorldAway(f"nothing answers at {via}, where the simulated world should be") from None
    except (ValueError, KeyError, TypeError):
        return None


async def follow(clock: FollowedClock, via: str, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Poll the world for its time. Reports as started after the first answer.

    If the server at `via` is not a simulated world, this does nothing.
    """
    from toolserver.core.http_library import httpx

    async with httpx.AsyncClient(trust_env=False, verify=False, timeout=2) as client:  # nosec B501 # a simulation
        while await _followed(client, clock, f"{via.rstrip('/')}/_sim/clock"):
            task_status.started()
            task_status = TASK_STATUS_IGNORED
            await anyio.sleep(POLL_S)
    task_status.started()


async def _followed(client: "httpx.AsyncClient", clock: FollowedClock, url: str) -> bool:
    """Set the clock once. Return False if the other side has no such clock."""
    from toolserver.core.http_library import httpx

    try:
        clock.set(float(json.loads(await _read_short_body(client, url))["now"]))
    except httpx.TransportError:
        pass  # not yet there, or temporarily gone
    except (ValueError, KeyError, TypeError):
        return False
    return True


async def _read_short_body(client: "httpx.AsyncClient", url: str) -> bytes:
    """Return the body of an answer. Raises ValueError if it is too long for a clock's."""
    body = b""
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as response:
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MOST_BYTES:
                raise ValueError("too long")
    return body
