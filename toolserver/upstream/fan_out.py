"""Knows which requests belong together: those of one composition, which the throttle admits as one unit for a host."""

import anyio
from anyio.lowlevel import checkpoint

GATHER_S = 0.1  # how long the first requests wait for reads that are still looking for a stored answer


class FanOut:
    """The reads of one composition. `Throttle` waits with the first request until each read has asked or needs none."""

    def __init__(self) -> None:
        self._on_their_way = 0
        self._settled = anyio.Event()

    def add(self) -> "FanOutPart":
        """Add a read that has just begun."""
        self._on_their_way += 1
        return FanOutPart(self)

    def settle_one(self) -> None:
        """Count a read that has asked for its turn, or needs none."""
        self._on_their_way -= 1
        if self.is_settled:
            self._settled.set()
            self._settled = anyio.Event()

    @property
    def is_settled(self) -> bool:
        """True if no read is on its way."""
        return self._on_their_way == 0

    async def gather(self, within_s: float = GATHER_S) -> None:
        """Wait until no read is on its way, at most `within_s`. Without such a read, return at once."""
        if not self.is_settled:
            await checkpoint()  # reads that begin together ask together, and then no timer is needed
        if not self.is_settled:
            with anyio.move_on_after(within_s):
                await self._settled.wait()


class FanOutPart:
    """One read of a fan-out."""

    def __init__(self, fan_out: FanOut) -> None:
        self.fan_out, self._is_settled = fan_out, False

    def settle(self) -> None:
        """Say that this read has asked for its turn, or needs none. Only the first time counts."""
        if not self._is_settled:
            self._is_settled = True
            self.fan_out.settle_one()
