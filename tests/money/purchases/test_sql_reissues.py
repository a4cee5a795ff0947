"""Reissues in the ledger's file: one at a time for a token, and what waits is found by its holder alone."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened, token
from tests.postgres import POSTGRES
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import RevokedToken, ToolserverError
from toolserver.money.purchases.reissues import WAIT_MS, ReissueDraft, ReissueRefused
from toolserver.money.purchases.sql_reissues import SqlReissues, complete_reissue

LOST, NEW, NEWER = (token_hash(token(number)).hex() for number in (1, 2, 3))
PAYER = bytes([1]) * 20


@pytest.fixture(params=["sqlite", POSTGRES])
async def shop(request, tmp_path):
    clock = ManualClock(START)
    async with opened(request.param, tmp_path, clock) as ledger:
        await ledger.mint(token(1), 10, cause="rich")
        yield ledger, SqlReissues(ledger.file, clock), clock
        assert await ledger.check() == []


def draft(ledger, id="ri_1", lost=LOST):
    return ReissueDraft(id, lost, PAYER, ledger.now())


async def complete(ledger, id="ri_1", successor=NEW):
    return await ledger.file.alone(lambda db: complete_reissue(id, successor, ledger.now(), db))


async def test_a_reissue_goes_its_way_once_and_again_for_the_next_token(shop):
    ledger, reissues, clock = shop
    for id, lost, successor in (("ri_1", LOST, NEW), ("ri_2", NEW, NEWER)):
        await reissues.add(draft(ledger, id, lost))
        assert await reissues.find_due(lost) is None
        await reissues.prove(id)
        assert await reissues.find_due(lost) == ledger.now() + WAIT_MS
        with pytest.raises(ReissueRefused, match="may object"):
            await complete(ledger, id, successor)
        clock.advance(WAIT_MS / 1000)
        assert await complete(ledger, id, successor) == (lost, successor)
        with pytest.raises(ReissueRefused, match="is done"):
            await complete(ledger, id, successor)
        assert await reissues.find_due(successor) is None
    assert await ledger.balance(token(3)) == 10
    assert [one.state for one in await reissues.list_reissues()] == ["done", "done"]


async def test_of_two_that_were_asked_for_one_waits(shop):
    ledger, reissues, _ = shop
    for id in ("ri_1", "ri_2"):
        await reissues.add(draft(ledger, id))
    await reissues.prove("ri_1")
    with pytest.raises(ReissueRefused, match="already waiting"):
        await reissues.prove("ri_2")
    with pytest.raises(ReissueRefused, match="already waiting"):
        await reissues.add(draft(ledger, "ri_3"))


async def test_the_holder_cancels_and_others_do_not(shop):
    ledger, reissues, _ = shop
    await reissues.add(draft(ledger))
    assert await reissues.cancel_own(LOST) is False
    await reissues.prove("ri_1")
    assert await reissues.cancel_own(NEW) is False
    assert await reissues.cancel_own(LOST) is True
    with pytest.raises(ReissueRefused, match="cancelled"):
        await reissues.cancel("ri_1")


async def test_tokens_that_are_not_valid_are_not_replaced(shop):
    ledger, reissues, clock = shop
    with pytest.raises(ToolserverError):
        await reissues.add(draft(ledger, lost=NEW))
    with pytest.raises(ReissueRefused, match="no reissue"):
        await reissues.find("ri_9")
    await reissues.add(draft(ledger))
    await reissues.prove("ri_1")
    clock.advance(WAIT_MS / 1000)
    await ledger.revoke(LOST[:16], "payment undone")
    with pytest.raises(RevokedToken):
        await complete(ledger)
    assert (await reissues.find("ri_1")).state == "waiting"
    with pytest.raises(RevokedToken):
        await reissues.add(draft(ledger, "ri_2"))
