"""Top-ups of a transaction are told apart from payments for calls, and from money that nobody authorised."""

import pytest

from tests.money.purchases.parts import OTHER, PAYER, receipt, transfer_log, word
from tests.money.x402.parts import PAY_TO
from toolserver.core.credit_price import ATOMIC
from toolserver.money.purchases.matching import AUTHORIZATION_USED, Log
from toolserver.money.purchases.units import USDC
from toolserver.money.x402.records import ChainTopup, begin_recovered, find_topups, is_topup, recovered_id

PRICES = {20_000, 40_000, 3 * ATOMIC}
NONCE, NONCE2 = bytes([1]) * 32, bytes([2]) * 32
TOPUP = ChainTopup(PAYER, NONCE, 5 * ATOMIC)


def mark(index, payer=PAYER, nonce=NONCE):
    return Log(USDC, (AUTHORIZATION_USED, word(payer), nonce), b"", index)


def test_each_authorised_transfer_to_us_is_a_top_up():
    logs = (mark(1), transfer_log(PAY_TO, 5, 2), mark(3, OTHER, NONCE2), transfer_log(PAY_TO, 7, 4, payer=OTHER))

    assert find_topups(receipt(*logs), PAY_TO, PRICES) == [TOPUP, ChainTopup(OTHER, NONCE2, 7 * ATOMIC)]


@pytest.mark.parametrize(
    "logs",
    [
        (transfer_log(PAY_TO, 5, 2),),
        (mark(1), transfer_log(OTHER, 5, 2)),
        (mark(1), transfer_log(PAY_TO, 0.04, 2)),
        (mark(1), transfer_log(PAY_TO, 3, 2)),
    ],
    ids=["nobody authorised it", "it paid another address", "it paid for a call", "it costs as much as a call"],
)
def test_nothing_else_is(logs):
    assert find_topups(receipt(*logs), PAY_TO, PRICES) == []


@pytest.mark.parametrize(("amount", "yes"), [(ATOMIC - 1, False), (ATOMIC, True), (40_000, False), (3 * ATOMIC, False)])
def test_the_amount_tells_a_top_up_from_a_call(amount, yes):
    assert is_topup(amount, PRICES) is yes


def test_a_recovered_payment_is_stored_under_an_id_that_its_authorisation_alone_decides():
    begun = begin_recovered(TOPUP, 7)

    assert begun == (begun.payload, PAYER, NONCE, 5 * ATOMIC, "topup new", 0, None, 7, None)
    assert begun.payload == recovered_id(PAYER, NONCE)
    assert len({recovered_id(PAYER, NONCE), recovered_id(OTHER, NONCE), recovered_id(PAYER, NONCE2)}) == 3
