"""No call takes longer than its tool's deadline, in simulated time; tests/live/test_outages.py has the live outages."""

import logging
from collections.abc import Iterator

import pytest

from tests.live.processes import CORE
from tests.requirements import proves
from tests.tools.faulty.skipping import SkippingLoop
from tests.tools.premium.simulated_time import counter
from toolserver.calls.response_cache import AnswerTable

HANGS_S = 600.0
LATER_S = 900.0  # beyond the lifetime of most answers, and not of what is kept of the sources


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@proves("answers.deadline")
@pytest.mark.parametrize("name", CORE)
async def test_when_every_upstream_hangs_an_answer_comes_in_time(name):
    async with counter(HANGS_S) as c:
        never = await c.buy(name)
        assert c.upstreams.exchanges == [], "nothing had come from any upstream"
        deadline_s = c.engine.registry[name].deadline_s

        c.upstreams.latency_s = 0.0
        await c.clock.sleep(LATER_S)
        c.engine.answers.table = AnswerTable()
        good = await c.buy(name)
        c.upstreams.latency_s = HANGS_S
        await c.clock.sleep(LATER_S)
        c.engine.answers.table = AnswerTable()
        kept = await c.buy(name)

    assert 0 < never.took_s <= deadline_s
    assert never.body["stale"] is True
    assert max(good.took_s, kept.took_s) <= deadline_s
