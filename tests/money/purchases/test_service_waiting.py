"""Claims that wait for the chain, and servers that are behind, lie or say nothing."""

import anyio
import pytest

from tests.money.purchases.parts import TX, Server, address_of, block_hash, desk, observed, paid, receipt, transfer_log
from tests.requirements import proves
from toolserver.errors import (
    ChainUnavailable,
    NoMatchingTransfer,
    PaymentPending,
)
from toolserver.money.purchases.matching import Policy
from toolserver.money.purchases.service import Rules


@pytest.fixture
def server() -> Server:
    return Server()


# --- waiting for the chain


async def test_a_transaction_nobody_sees_is_pending_and_not_invalid(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        with pytest.raises(PaymentPending) as pending:
            await d.confirm(TX, quote.memo)
        assert pending.value.headers["Retry-After"] == "3"
        assert pending.value.extra["confirmations"] == 0
        assert pending.value.extra["required"] == 3


async def test_a_claim_waits_some_seconds_for_its_blocks(tmp_path, server):
    class Growing(Server):
        async def observe(self, tx_hash):
            seen = await super().observe(tx_hash)
            return seen and seen._replace(latest=98 + self.asked)

    growing = Growing()
    async with desk(tmp_path, [growing], rules=Rules(wait_s=10)) as d:
        quote = await d.quote()
        growing.sees(paid(address_of(quote), 5))
        before = d.clock.monotonic()
        assert (await d.confirm(TX, quote.memo)).credits == 250
        assert 0 < d.clock.monotonic() - before <= 10


async def test_a_claim_does_not_wait_for_ever(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(wait_s=10)) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, latest=101))
        before = d.clock.monotonic()
        with pytest.raises(PaymentPending) as pending:
            await d.confirm(TX, quote.memo)
        assert d.clock.monotonic() - before <= 10
        assert pending.value.extra | {"retry_after_seconds": 3} == {
            "confirmations": 1,
            "required": 3,
            "retry_after_seconds": 3,
        }


async def test_what_waiting_does_not_mend_is_said_at_once(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(wait_s=10)) as d:
        quote = await d.quote()
        server.sees(observed(receipt()))
        before = d.clock.monotonic()
        with pytest.raises(NoMatchingTransfer):
            await d.confirm(TX, quote.memo)
        assert d.clock.monotonic() == before


async def test_a_receipt_of_a_fork_is_pending(tmp_path, server):
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5, canonical=block_hash(100, "fork"), latest=1000))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)


async def test_a_failure_on_a_fork_is_no_refusal(tmp_path, server):
    """Where it counts, the transaction may yet succeed."""
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        for found in (receipt(status=0), receipt(transfer_log(address_of(quote), 0.5))):
            server.sees(observed(found, canonical=block_hash(100, "fork"), latest=1000))
            with pytest.raises(PaymentPending):
                await d.confirm(TX, quote.memo)
        assert await d.rows("SELECT * FROM unapplied_payment") == []


async def test_a_large_payment_that_failed_on_a_fork_when_both_servers_are_asked_is_pending(tmp_path):
    failed = observed(receipt(status=0), canonical=block_hash(100, "fork"), latest=500, safe=200)

    class Turning(Server):
        """Asked for the second time, it tells of a fork."""

        async def observe(self, tx_hash):
            found = await super().observe(tx_hash)
            return failed if self.asked > 2 else found

    turning, second = Turning(), Server()
    async with desk(tmp_path, [turning, second]) as d:
        quote = await d.quote()
        turning.sees(paid(address_of(quote), 5000, latest=500, safe=200))
        second.sees(failed)
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        assert await d.minted() == 0


async def test_when_no_server_answers_the_chain_is_unavailable(tmp_path, caplog):
    async with desk(tmp_path, [Server(down=True), Server(down=True)], rules=Rules(wait_s=3)) as d:
        quote = await d.quote()
        with pytest.raises(ChainUnavailable) as refused:
            await d.confirm(TX, quote.memo)
        assert refused.value.headers["Retry-After"]
        assert quote.memo not in caplog.text


async def test_a_server_that_never_answers_does_not_keep_a_claim_for_ever(tmp_path):
    class Silent(Server):
        async def observe(self, tx_hash):
            await anyio.sleep_forever()

    async with desk(tmp_path, [Silent()], rules=Rules(wait_s=0, answer_s=0.05)) as d:
        quote = await d.quote()
        with pytest.raises(ChainUnavailable):
            await d.confirm(TX, quote.memo)


@proves("purchase.finality")
@pytest.mark.parametrize(
    ("usd", "heights", "enough"),
    [
        (100, {"latest": 500, "safe": 99}, False),
        (100, {"latest": 500, "safe": 100}, True),
        (10_000, {"latest": 900, "safe": 800, "finalized": 99}, False),
        (10_000, {"latest": 900, "safe": 800, "finalized": 100}, True),
    ],
)
async def test_larger_payments_wait_for_safe_and_final_blocks(tmp_path, usd, heights, enough):
    servers = [Server(), Server()]
    async with desk(tmp_path, servers) as d:
        quote = await d.quote("5")
        for server in servers:
            server.sees(paid(address_of(quote), usd, **heights))
        if enough:
            assert (await d.confirm(TX, quote.memo)).credits == usd * 50
        else:
            with pytest.raises(PaymentPending):
                await d.confirm(TX, quote.memo)


# --- servers that lie


@proves("purchase.finality")
async def test_a_large_payment_that_one_server_alone_sees_is_never_credited(tmp_path):
    liar, honest = Server(), Server()
    async with desk(tmp_path, [liar, honest]) as d:
        quote = await d.quote("5")
        liar.sees(paid(address_of(quote), 5000, latest=500, safe=200))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        honest.sees(observed(receipt(), latest=500, safe=200))
        with pytest.raises(PaymentPending):
            await d.confirm(TX, quote.memo)
        honest.sees(paid(address_of(quote), 5000, latest=500, safe=200))
        assert (await d.confirm(TX, quote.memo)).credits == 250_000


async def test_a_large_payment_needs_a_second_server_to_answer(tmp_path):
    first, second = Server(), Server(down=True)
    async with desk(tmp_path, [first, second]) as d:
        quote = await d.quote("5")
        first.sees(paid(address_of(quote), 1000, latest=500, safe=200))
        with pytest.raises(ChainUnavailable):
            await d.confirm(TX, quote.memo)


async def test_whoever_runs_the_server_needs_no_second_one(tmp_path, server):
    async with desk(tmp_path, [server], rules=Rules(Policy(agree_from=None), wait_s=0)) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 1000, latest=500, safe=200))
        assert (await d.confirm(TX, quote.memo)).credits == 50_000
