"""Allowances by the names of tools and by times, over a ledger that keeps them and over none."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.calls.parts import START
from tests.calls.toy import REGISTRY
from tests.requirements import proves
from toolserver.calls.allowances import AllowanceDetails, Allowances, AllowanceWish
from toolserver.clock import ManualClock
from toolserver.core.caller import well_formed
from toolserver.errors import InvalidArguments, NotFound, NotSupported
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.memory import MemoryLedger

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
    with pytest.raises(InvalidArguments, match=r"is not a tool that costs credits$"):
        await allowances.create(OWNER, AllowanceWish("x", 5, tools=["zzzz"]))


async def test_what_takes_a_cap_away(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5, 2, START + timedelta(days=1), ["premium_report"]))
    never = datetime.max.replace(tzinfo=UTC)
    freed = await allowances.change(OWNER, made.id, AllowanceWish(credits_per_day=0, expires_at=never, tools=[]))

    assert (freed.credits_per_day, freed.expires_at, freed.tools, freed.credits) == (None, None, None, 5)


async def test_a_name_with_characters_that_cannot_be_seen_is_refused_and_nothing_changes(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5))
    for asked in (
        allowances.create(OWNER, AllowanceWish("pay\u202eroll", 5)),
        allowances.change(OWNER, made.id, AllowanceWish("x\u200b")),
    ):
        with pytest.raises(InvalidArguments, match=r"name: contains U\+20") as refused:
            await asked
        assert refused.value.extra["errors"][0]["loc"] == "name"
    assert [one.name for one in await ledger.list_allowances(OWNER)] == ["x"]


@proves("allowance.unsupported")
async def test_where_none_can_be_kept_that_is_said():
    allowances = Allowances(None, REGISTRY, ManualClock(START))
    for asked in (allowances.list_all(OWNER), allowances.create(OWNER, AllowanceWish("x", 1))):
        with pytest.raises(NotSupported):
            await asked


async def test_an_allowance_ends_in_the_future_and_shows_what_it_has_when_it_is_made(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    for past in (START, START - timedelta(days=1)):
        with pytest.raises(InvalidArguments, match="expires_at: must be in the future") as refused:
            await allowances.create(OWNER, AllowanceWish("x", 5, expires_at=past))
        (error,) = refused.value.extra["errors"]
        assert error == {"loc": "expires_at", "msg": "must be in the future", "type": "value_error"}
    soon = START + timedelta(milliseconds=1)
    made = await allowances.create(OWNER, AllowanceWish("x", 5, 2, soon, ["premium_report"]))
    token = made.token
    assert made == AllowanceDetails(
        made.id, "x", 5, 0, 0, 2, soon, ["premium_report"], "active", START, None, None, token
    )
    assert well_formed(token)


OUTSIDE = ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"]


@pytest.mark.parametrize("end", [*map(datetime.fromisoformat, OUTSIDE), START + timedelta(days=3653, milliseconds=1)])
async def test_an_end_more_than_ten_years_ahead_or_outside_the_calendar_is_refused_and_changes_nothing(ledger, end):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    with pytest.raises(InvalidArguments, match="expires_at: must be"):
        await allowances.create(OWNER, AllowanceWish("x", 5, expires_at=end))
    assert await allowances.list_all(OWNER) == []
    made = await allowances.create(OWNER, AllowanceWish("x", 5, expires_at=START + timedelta(days=3653)))
    with pytest.raises(
        InvalidArguments, match="expires_at: must be a time since 1970 and at most 10 years ahead"
    ) as no:
        await allowances.change(OWNER, made.id, AllowanceWish(expires_at=end))
    assert no.value.extra["errors"][0]["loc"] == "expires_at"
    assert await allowances.list_all(OWNER) == [made._replace(token=None)]


@pytest.mark.parametrize(
    ("end", "shown", "state"),
    [
        (253_402_387_139_000, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "active"),
        (2**62, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), "active"),
        (-62_135_683_140_000, datetime(1970, 1, 1, tzinfo=UTC), "expired"),
    ],
)
async def test_an_end_outside_the_calendar_that_is_stored_already_is_shown_and_can_be_revoked(
    ledger, end, shown, state
):
    await ledger.create_allowance(OWNER, "c" * 64, AllowanceTerms("old", 5, expires_at=end))
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    (listed,) = await allowances.list_all(OWNER)
    assert (listed.expires_at, listed.state) == (shown, state)
    assert (await allowances.change(OWNER, listed.id, AllowanceWish(name="new"))).name == "new"
    assert (await allowances.revoke(OWNER, listed.id)).state == "revoked"


async def test_what_a_change_does_not_name_stays_as_it_is(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5, 2, START + timedelta(days=1), ["premium_report"]))
    for wish, changed in (
        (AllowanceWish(name="y"), {"name": "y"}),
        (AllowanceWish(credits=9), {"credits": 9}),
        (AllowanceWish(credits_per_day=3), {"credits_per_day": 3}),
        (AllowanceWish(expires_at=START + timedelta(days=2)), {"expires_at": START + timedelta(days=2)}),
        (AllowanceWish(tools=[]), {"tools": None}),
    ):
        made = made._replace(token=None, **changed)
        assert await allowances.change(OWNER, made.id, wish) == made


async def test_a_revoked_allowance_is_shown_as_that_and_one_that_is_not_there_cannot_be(ledger):
    allowances = Allowances(ledger, REGISTRY, ManualClock(START))
    made = await allowances.create(OWNER, AllowanceWish("x", 5))
    assert (await allowances.revoke(OWNER, made.id)).state == "revoked"
    with pytest.raises(NotFound):
        await allowances.revoke(OWNER, "no such one")
