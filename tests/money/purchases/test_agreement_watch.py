"""A second server confirms every credited transfer; one that contradicts makes a case of it within a minute."""

from tests.money.purchases.parts import TX, Server, address_of, desk, observed, paid, receipt, transfer_log
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S, LAGS_S, AgreementWatch, sort_sightings
from toolserver.money.purchases.sql_review import read_review_cases


async def bought(d, *servers):
    quote = await d.quote()
    for server in servers:
        server.sees(paid(address_of(quote), 5))
    await d.confirm(TX, quote.memo)
    return AgreementWatch(d.review, d.chain, d.clock)


async def kinds(d):
    return [case.kind for case in read_review_cases(d.ledger.file.path)]


async def test_a_transfer_that_two_servers_report_is_confirmed_and_asked_about_no_more(tmp_path):
    first, second = Server(), Server()
    async with desk(tmp_path, [first, second]) as d:
        watch = await bought(d, first, second)
        await watch.look()
        asked = second.asked
        await watch.look()
        assert (await d.review.list_unagreed(), second.asked) == ([], asked)
        assert await kinds(d) == []


async def test_a_server_that_lies_is_found_within_a_minute_and_listed(tmp_path, caplog):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest]) as d:
        watch = await bought(d, liar)
        begun = d.clock.monotonic()
        while not await kinds(d):
            await watch.look()
            d.clock.advance(COMPARE_S)
        assert d.clock.monotonic() - begun < 60
        assert await kinds(d) == ["disputed"]
        assert "disagree about a credited payment" in caplog.text


async def test_a_server_that_lags_contradicts_nobody(tmp_path):
    first, late = Server(), Server()
    async with desk(tmp_path, [first, late]) as d:
        watch = await bought(d, first)
        d.clock.advance(LAGS_S - 1)
        await watch.look()
        late.seen = dict(first.seen)
        d.clock.advance(COMPARE_S)
        await watch.look()
        assert await kinds(d) == []
        assert await d.review.list_unagreed() == []


async def test_a_dispute_that_is_settled_is_no_case_any_more(tmp_path):
    first, late = Server(), Server()
    async with desk(tmp_path, [first, late]) as d:
        watch = await bought(d, first)
        d.clock.advance(LAGS_S)
        await watch.look()
        assert await kinds(d) == ["disputed"]
        late.seen = dict(first.seen)
        await watch.look()
        assert await kinds(d) == []


def test_a_fork_shows_nothing():
    here, fork = (observed(receipt(transfer_log(b"x" * 20, 5))) for _ in range(2))
    fork = fork._replace(canonical=b"f" * 32)
    assert sort_sightings([here, fork, None], lambda seen: True) == ([here], 2)
