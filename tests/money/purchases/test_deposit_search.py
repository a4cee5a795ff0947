"""Whether a payment has come: told by the address of its purchase, to who has the memo."""

import pytest

from tests.money.purchases.parts import NOW, TX, TX2, Server, address_of, desk, paid
from toolserver.errors import ChainUnavailable, InvalidArguments, NotFound
from toolserver.money.purchases.service import DepositSearch


@pytest.fixture
def server() -> Server:
    return Server()


async def test_a_payment_is_found_once_a_server_sees_it_and_after_it_was_credited(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        search, quote = DepositSearch(d.store, d.chain), await d.quote()
        assert await search.find(quote.memo) is None
        server.sees(paid(bytes(20), 5, tx=TX2), paid(address_of(quote), 5))
        assert await search.find(quote.memo) == f"0x{TX.hex()}"
        await d.confirm(TX, quote.memo)
        server.down = True
        assert await search.find(quote.memo) == f"0x{TX.hex()}"


async def test_what_came_before_the_quote_is_not_its_payment(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, at=NOW - 1))
        assert await DepositSearch(d.store, d.chain).find(quote.memo) is None


async def test_at_a_shared_address_nothing_is_found(tmp_path, server):
    async with desk(tmp_path, [server], wallet=bytes(20)) as d:
        quote = await d.quote()
        server.sees(paid(bytes(20), 5))
        assert await DepositSearch(d.store, d.chain).find(quote.memo) is None


@pytest.mark.parametrize(("memo", "refusal"), [("mine", InvalidArguments), (f"svc_buy_{'0' * 32}", NotFound)])
async def test_who_has_no_memo_of_ours_is_refused(tmp_path, server, memo, refusal):
    async with desk(tmp_path, [server]) as d:
        with pytest.raises(refusal):
            await DepositSearch(d.store, d.chain).find(memo)


async def test_a_chain_that_cannot_be_read_is_said_to_be_so(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote, server.down = await d.quote(), True
        with pytest.raises(ChainUnavailable):
            await DepositSearch(d.store, d.chain).find(quote.memo)
