"""The rules of reissues: one payer, a signature in time, and a time in which the holder may object."""

import stat

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened, token
from tests.postgres import POSTGRES
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash, well_formed
from toolserver.errors import RevokedToken, ToolserverError
from toolserver.money.purchases.reissues import (
    PROVE_MS,
    WAIT_MS,
    ReissueDraft,
    ReissueRefused,
    SeedBroken,
    StoredReissue,
    ensure_reissued_token,
    find_only_payer,
    find_reissued_token,
    forget_reissued_token,
    require_due,
    require_open,
    require_provable,
    show_reissue,
)
from toolserver.money.purchases.sql_refunds import SqlReissues, complete_reissue

ONE, TWO = bytes([1]) * 20, bytes([2]) * 20
ASKED = StoredReissue("ri_1", "a" * 64, ONE, "asked", 0, PROVE_MS, None, None, None, "a" * 16)
WAITING = ASKED._replace(state="waiting", proved_at=5, due_at=5 + WAIT_MS)


def test_times_are_a_day_to_sign_and_two_to_object():
    assert ReissueDraft("ri_1", "a" * 64, ONE, 7).expires_at == 7 + 24 * 3_600_000
    assert WAIT_MS == 48 * 3_600_000


def test_all_was_paid_by_one_account():
    assert find_only_payer([frozenset([ONE]), frozenset([ONE])]) == ONE
    for payers in ([], [frozenset([ONE, TWO])], [frozenset([ONE]), frozenset([TWO])]):
        with pytest.raises(ReissueRefused, match="paid for this token"):
            find_only_payer(payers)


def test_a_signature_comes_in_time_and_once():
    require_provable(ASKED, PROVE_MS)
    for found, now in ((ASKED, PROVE_MS + 1), (WAITING, 0), (ASKED._replace(state="cancelled"), 0)):
        with pytest.raises(ReissueRefused):
            require_provable(found, now)


def test_a_token_is_replaced_when_the_time_to_object_is_over():
    require_due(WAITING, 5 + WAIT_MS)
    for found, now in ((WAITING, 4 + WAIT_MS), (ASKED, WAIT_MS), (WAITING._replace(state="done"), 2 * WAIT_MS)):
        with pytest.raises(ReissueRefused):
            require_due(found, now)


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_what_has_ended_is_not_cancelled(state):
    require_open(WAITING)
    with pytest.raises(ReissueRefused, match=state):
        require_open(WAITING._replace(state=state))


def test_a_reissue_is_shown_with_its_times():
    assert show_reissue(ASKED)["due"] is None
    assert show_reissue(WAITING)["due"] == "1970-01-03T00:00:00Z"


ID, OTHER = "ri_" + "1" * 32, "ri_" + "2" * 32


def test_it_is_the_same_until_it_is_forgotten(tmp_path):
    assert find_reissued_token(tmp_path, ID) is None
    token = ensure_reissued_token(tmp_path, ID)
    assert well_formed(token)
    assert ensure_reissued_token(tmp_path, ID) == find_reissued_token(tmp_path, ID) == token
    assert ensure_reissued_token(tmp_path, OTHER) != token
    for _ in range(2):
        forget_reissued_token(tmp_path, ID)
    assert find_reissued_token(tmp_path, ID) is None
    assert ensure_reissued_token(tmp_path, ID) != token


def test_the_file_is_the_owners_alone_and_does_not_hold_the_token(tmp_path):
    token = ensure_reissued_token(tmp_path, ID)
    (file,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.removeprefix("svc_live_") not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "{}", '{"seed": "00"}', '{"seed": 1}', "[]"])
def test_a_broken_file_gives_no_token(tmp_path, text):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / f"reissue-{ID}.json").write_text(text, encoding="utf-8")
    with pytest.raises(SeedBroken):
        ensure_reissued_token(tmp_path, ID)


@pytest.mark.parametrize("id", ["../x", "ri_../../x", ""])
def test_what_names_no_reissue_names_no_file(tmp_path, id):
    with pytest.raises(ValueError, match="is not the id of a reissue"):
        find_reissued_token(tmp_path, id)


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
