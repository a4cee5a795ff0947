"""Premium tools sold through the real pipeline, on the simulated world in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.arranged import arrange_service
from tests.tools.desk import NOW, SimDesk
from toolserver.calls.pipeline import Outcome
from toolserver.clock import ManualClock
from toolserver.core.caller import Caller
from toolserver.errors import CallRejected
from toolserver.registry.registry import Registry, operation_of
from toolserver.serving.money import memory_money
from toolserver.world.model import World

TOKEN, CREDITS = "svc_live_" + "a" * 64, 10


@dataclass
class Sale:
    """What a call came to: the body, the account, and what is left of ten credits."""

    body: dict[str, Any]
    outcome: Outcome
    desk: SimDesk

    @property
    def paid(self) -> int:
        return self.outcome.charged


async def sell(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    world: World | None = None,
    **desk: Any,
) -> Sale:
    """Call a premium tool with a funded token. Raises CallRejected."""
    world = world or World(1, NOW)
    reading = SimDesk(world, **desk)
    clock = ManualClock(datetime.fromtimestamp(world.now, UTC))
    money = memory_money(clock)
    money.ledger.fund(TOKEN, CREDITS)  # type: ignore[attr-defined]
    operation = operation_of(function)
    async with arrange_service(Registry([operation]), clock, reader=reading, money=money) as service:
        origin = Caller(client="192.0.2.1", token=TOKEN)
        try:
            outcome: Outcome | CallRejected = await service.pipeline.call(operation, arguments or {}, origin)
        except CallRejected as rejected:  # raised outside of the task group, which would wrap it
            outcome = rejected
    if isinstance(outcome, CallRejected):
        raise outcome
    return Sale(msgspec.json.decode(outcome.rendered.payload), outcome, reading)
