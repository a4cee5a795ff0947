"""Allowances by the names of tools and by times, over a ledger that keeps them and over none."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.calls.parts import START
from tests.calls.toy import REGISTRY
from toolserver.calls.allowances import Allowances, AllowanceWish
from toolserver.clock import ManualClock
from toolserver.errors import InvalidArguments, NotSupported
from toolserver.ledger.memory import MemoryLedger

OWNER = "svc_live_" + "a" * 64


@pytest.fixture
async def ledger():
    ledger = MemoryLedger(ManualClock(START))
    await ledger.mint(OWNER, 10, cause="grant:1")
    return ledger


async def test_names_of_tools_are_stored_with_their_paths_and_shown_as_names(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5, None, START + timedelta(days=1), ["premium_report"]))

    assert (made.tools, made.expires_at, made.created_at) == (["premium_report"], START + timedelta(days=1), START)
    (stored,) = await ledger.list_allowances(OWNER)
    assert stored.tools == f'{{"premium_report": "{REGISTRY["premium_report"].path}"}}'
    assert (await allowances.list_all(OWNER))[0] == made._replace(token=None)


async def test_a_tool_that_costs_nothing_or_is_unknown_is_named_with_the_nearest_one(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    with pytest.raises(InvalidArguments, match="did you mean premium_report"):
        await allowances.create(OWNER, AllowanceWish("x", 5, tools=["premium_reportt"]))
    with pytest.raises(InvalidArguments, match=r"is no tool that costs credits$"):
        await allowances.create(OWNER, AllowanceWish("x", 5, tools=["zzzz"]))


async def test_what_takes_a_cap_away(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5, 2, START + timedelta(days=1), ["premium_report"]))
    never = datetime.max.replace(tzinfo=UTC)
    freed = await allowances.change(OWNER, made.id, AllowanceWish(credits_per_day=0, expires_at=never, tools=[]))

    assert (freed.credits_per_day, freed.expires_at, freed.tools, freed.credits) == (None, None, None, 5)


async def test_where_none_can_be_kept_that_is_said():
    allowances = Allowances(None, REGISTRY, ManualClock(START))
    for asked in (allowances.list_all(OWNER), allowances.create(OWNER, AllowanceWish("x", 1))):
        with pytest.raises(NotSupported):
            await asked
