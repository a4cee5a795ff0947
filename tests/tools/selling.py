"""Premium tools sold through the real pipeline, on the simulated world in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec

from tests.desk import NOW, SimDesk
from toolserver.access import Caller
from toolserver.answers import Answers
from toolserver.billing.ledger import MemoryLedger
from toolserver.clock import ManualClock
from toolserver.errors import CallRejected
from toolserver.idempotency import MemoryIdempotency
from toolserver.limits import FreeLimits
from toolserver.metrics import Metrics
from toolserver.pipeline import Outcome, Pipeline
from toolserver.registry import operation_of
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
    ledger, clock = MemoryLedger(), ManualClock(datetime.fromtimestamp(world.now, UTC))
    ledger.fund(TOKEN, CREDITS)
    async with anyio.create_task_group() as tasks:
        answers = Answers(reading, clock=clock, tasks=tasks, source="test.example")
        limits = FreeLimits(daily=1000, spacing_s=30, monotonic=clock.monotonic, enabled=False)
        pipeline = Pipeline(
            answers, ledger=ledger, limits=limits, idempotency=MemoryIdempotency(clock), metrics=Metrics()
        )
        origin = Caller(client="192.0.2.1", token=TOKEN)
        try:
            outcome: Outcome | CallRejected = await pipeline.call(operation_of(function), arguments or {}, origin)
        except CallRejected as rejected:  # raised outside of the group, which would wrap it
            outcome = rejected
        tasks.cancel_scope.cancel()
    if isinstance(outcome, CallRejected):
        raise outcome
    return Sale(msgspec.json.decode(outcome.rendered.payload), outcome, reading)
