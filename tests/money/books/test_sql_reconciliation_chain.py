"""Payments against the chain: balances explain most, transactions the rest; what nothing explains is a difference."""

from dataclasses import dataclass, field
from functools import partial

from tests.calls.parts import START
from tests.money.purchases.parts import PAYER, TX, TX2, Server, observed, paid, receipt, transfer_log, word
from toolserver.clock import ManualClock
from toolserver.money.books.sql_reconciliation import ClaimedMoney, ClaimedTransfer, compare_with_chain
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.matching import AUTHORIZATION_USED, Log
from toolserver.money.purchases.units import USDC

ONE, TWO = bytes([1]) * 20, bytes([2]) * 20
NONCE = bytes(range(32))


@dataclass
class Holding(Server):
    """A server that knows balances."""

    held: dict[bytes, int] = field(default_factory=dict)

    async def balances(self, addresses):
        return [self.held.get(address, 0) for address in addresses]


def claimed(deposits=(), signed=(), refunds=(), swept=None):
    return ClaimedMoney(list(deposits), list(signed), list(refunds), swept or {})


async def compare(server, money, **bounds):
    chain = RpcPool([partial(lambda: server)], monotonic=ManualClock(START).monotonic)
    return await compare_with_chain(money, chain, **bounds)


async def test_what_lies_there_or_was_swept_needs_no_look_at_transactions():
    server = Holding(held={ONE: 5_000_000, TWO: 1})
    deposits = [ClaimedTransfer(TX, ONE, None, 5_000_000), ClaimedTransfer(TX2, TWO, None, 3_000_000)]
    found = await compare(server, claimed(deposits, swept={TWO: 2_999_999}))
    assert found == ([], 2, [])


async def test_what_does_not_lie_there_is_looked_up():
    server = Holding()
    server.sees(paid(ONE, 5))
    good, never = ClaimedTransfer(TX, ONE, None, 5_000_000), ClaimedTransfer(TX2, TWO, None, 3_000_000)
    found = await compare(server, claimed([good, never]))
    assert [text[:66] for text in found.differences] == [f"0x{TX2.hex()}"]
    assert "2 deposits of 8.000000 USDC were moved" in found.notes[0]
    less = await compare(server, claimed([good._replace(amount=5_000_001)]))
    assert "are booked, the chain has 5.000000" in less.differences[0]


async def test_signed_payments_and_refunds_are_looked_up_by_who_paid_whom():
    server = Holding()
    used = Log(USDC, (AUTHORIZATION_USED, word(PAYER), NONCE), b"", 7)
    server.sees(observed(receipt(transfer_log(ONE, 2), used)))
    refund = ClaimedTransfer(TX, ONE, PAYER, 2_000_000, NONCE)
    assert (await compare(server, claimed(refunds=[refund]))).differences == []
    assert (await compare(server, claimed(signed=[ClaimedTransfer(TX, None, PAYER, 2_000_000)]))).differences == []
    for wrong in (refund._replace(nonce=bytes(32)), refund._replace(payee=TWO), refund._replace(amount=1)):
        assert len((await compare(server, claimed(refunds=[wrong]))).differences) == 1
    other = ClaimedTransfer(TX, None, TWO, 2_000_000)
    assert len((await compare(server, claimed(signed=[other]))).differences) == 1


async def test_what_was_not_looked_up_is_counted():
    signed = [ClaimedTransfer(bytes([n]) * 32, None, PAYER, 1) for n in range(3)]
    found = await compare(Holding(), claimed(signed=signed), most=1)
    assert (found.compared, found.notes) == (1, ["2 older payments were not looked up"])
