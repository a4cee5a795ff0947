"""The boards of Reddit, asked together, and what a board said stands for a while."""

import logging
from collections.abc import Iterator

import anyio
import pytest

from tests.tools.faulty.skipping import SkippingLoop
from tests.tools.premium.simulated_time import counter
from tools.premium.sentiment import FOLLOW_S
from tools.sources.reddit import BOARDS, HOT
from toolserver.calls.response_cache import AnswerTable
from toolserver.serving.background_tasks import keep_warm

NAMES = [f"Reddit.{board}_rss" for board in BOARDS]
FRESH_S, SLA_S = 600.0, 900.0


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SkippingLoop}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def boards(c):
    """The times at which a board was asked, and which."""
    return [(e.began, e.url.split("/")[2]) for e in c.upstreams.exchanges if e.url.startswith("www.reddit.com")]


def states(sale):
    """Each board's status and reason."""
    return {
        s["name"]: (s["status"], s.get("reason", ""))
        for s in sale.body["_meta"]["sources"]
        if s["name"].startswith("Reddit")
    }


async def anew(c):
    """The next composition, whatever is kept of the last."""
    c.engine.answers.table = AnswerTable()
    return await c.buy("premium_sentiment")


async def test_a_cold_call_asks_all_boards_together_and_nothing_is_missing():
    async with counter() as c:
        sale = await c.buy("premium_sentiment")

    assert [at for at, _ in boards(c)] == [0.0] * len(BOARDS)
    assert {name for _, name in boards(c)} == set(BOARDS)
    assert states(sale) == dict.fromkeys(NAMES, ("live", ""))
    assert "warning" not in sale.body
    assert (sale.body["sample_size"]["sources_ok"], sale.body["sample_size"]["sources_failed"]) == (13, 0)
    assert sale.charged == 2


@pytest.mark.slow("a day of calls, one by one")
async def test_call_by_call_all_boards_are_known_and_asked_no_more_than_they_change():
    async with counter() as c:
        for _ in range(24):
            sale = await anew(c)
            assert "warning" not in sale.body
            assert {status for status, _ in states(sale).values()} <= {"live", "cached"}
            await anyio.sleep(FOLLOW_S)
        asked, passed_s = boards(c), c.clock.passed_s

    for board in BOARDS:
        assert [name for _, name in asked].count(board) <= 1 + passed_s / (0.8 * FRESH_S)


async def test_a_board_that_refuses_takes_no_other_with_it():
    async with counter() as c:
        c.upstreams.fault(NAMES[0], "status", code=403)
        sale = await anew(c)

    said = states(sale)
    assert {name: status for name, (status, _) in said.items()} == dict.fromkeys(NAMES[1:], "live") | {
        NAMES[0]: "error"
    }
    assert NAMES[0] in sale.body["warning"][0]["message"]


async def test_what_a_board_said_stands_until_it_is_stale_and_is_never_sold_as_new():
    async with counter() as c:
        await anew(c)
        c.upstreams.fault(NAMES[0], "dns")
        await anyio.sleep(SLA_S - 30)
        within = await anew(c)
        await anyio.sleep(60)
        beyond = await anew(c)

    assert states(within)[NAMES[0]][0] == "cached"
    assert states(beyond)[NAMES[0]][0] == "error"
    assert within.body["stale"] is beyond.body["stale"] is False


async def test_a_service_that_is_up_for_a_minute_knows_all_boards():
    async with counter(0.5) as c, anyio.create_task_group() as upkeep:
        upkeep.start_soon(keep_warm, OnlySentiment(c.engine.registry), c.engine.cache)
        await anyio.sleep(60)
        sale = await c.buy("premium_sentiment")
        upkeep.cancel_scope.cancel()

    assert {status for status, _ in states(sale).values()} == {"cached"}
    assert "warning" not in sale.body
    assert sale.body["sample_size"]["sources_ok"] == 13


class OnlySentiment(list):
    """A registry as far as upkeep goes."""

    def __init__(self, registry) -> None:
        super().__init__([registry["premium_sentiment"]])


def test_the_four_boards_are_kept_at_hand():
    assert [source.name for source in HOT] == NAMES
    assert {source.fresh_s for source in HOT} == {FRESH_S}
