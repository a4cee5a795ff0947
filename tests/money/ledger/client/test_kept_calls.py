import pytest

from tests.money.ledger.client.test_ledger import DOWN, RICH, both, unavailable
from tests.money.ledger.ledgers import token
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.client.ledger import KeptCalls
from toolserver.money.ledger.client.messages import COMMIT, VALIDATE
from toolserver.money.ledger.protocol import CallReused, UnknownCall


async def reserve(kept, call_id="c1", who=RICH, credits=1):
    return await kept.reserve(call_id, who, credits, endpoint="/x", ttl_s=60)


async def test_a_call_is_reserved_and_charged_and_nothing_of_it_is_in_the_journal(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        assert (await reserve(kept)).state == "open"
        assert (await kept.settle("c1", no_charge=None)).charged == 1
        assert (await reserve(kept)).state == "posted"
        assert await s.queue() == []
        assert await kept.balance(RICH) == await s.owner.balance(RICH) == 9


async def test_a_charge_whose_answer_was_lost_is_charged_and_asked_for_again(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        s.line.lost = [VALIDATE] * 2
        await unavailable(reserve(kept))
        assert (await reserve(kept)).replayed
        s.line.lost = [COMMIT] * 2
        await unavailable(kept.settle("c1", no_charge=None))
        settled = await kept.settle("c1", no_charge=None)
        assert (settled.charged, settled.replayed) == (1, True)
        assert (await s.queue(), await s.owner.balance(RICH)) == ([], 9)


async def test_a_refused_repetition_at_another_price_does_not_change_what_is_charged(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        await reserve(kept)
        with pytest.raises(CallReused):
            await reserve(kept, credits=3)
        assert (await kept.settle("c1", no_charge=None)).charged == 1


async def test_a_charge_survives_the_death_of_the_process(tmp_path):
    async with both(tmp_path) as s:
        await reserve(KeptCalls(s.follower))
    async with both(tmp_path) as s:
        assert (await KeptCalls(s.follower).settle("c1", no_charge=None)).charged == 1
    async with both(tmp_path) as s:
        assert await s.owner.balance(RICH) == 9


async def test_a_release_is_sent_until_it_is_acknowledged(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        await reserve(kept)
        s.line.down = DOWN
        await unavailable(kept.settle("c1", no_charge="delivery_failed"))
        assert await s.queue() == [("c1", "releasing", "delivery_failed")]
        s.line.down = None
        s.clock.advance(60)
        await s.settled()
        assert await s.owner.balance(RICH) == 10
        assert (await kept.settle("c1", no_charge=None)).charged == 0


async def test_what_the_owner_refuses_is_refused(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        for who, credits, code in ((RICH, 11, "insufficient_credits"), (token(9), 1, "invalid_token")):
            with pytest.raises(PaymentRequired) as refused:
                await reserve(kept, "c2", who, credits)
            assert refused.value.code == code
        with pytest.raises(UnknownCall):
            await kept.settle("c3", no_charge=None)


@pytest.mark.parametrize("credits", [0, -1, 10**15 + 1])
async def test_an_amount_that_no_ledger_accepts_is_not_sent(tmp_path, credits):
    async with both(tmp_path) as s:
        with pytest.raises(ValueError, match="not a valid number"):
            await reserve(KeptCalls(s.follower), credits=credits)
        assert s.line.asked == []


async def test_a_call_is_reserved_for_its_service_or_for_the_one_that_follows(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        await reserve(kept, "c1")
        await kept.reserve("c2", RICH, 2, endpoint="/y", ttl_s=30, service="sister")
        first, second = sorted(await s.owner.holds())
    assert first[2:] == (1, "/x", "b", s.clock.time() + 60)
    assert second[2:] == (2, "/y", "sister", s.clock.time() + 30)


async def test_an_owner_that_is_away_is_asked_again_in_five_seconds(tmp_path):
    async with both(tmp_path) as s:
        kept = KeptCalls(s.follower)
        s.line.down = DOWN
        assert await unavailable(reserve(kept)) == 5
        assert await unavailable(kept.settle("c1", no_charge=None)) == 5
        assert await s.queue() == []
