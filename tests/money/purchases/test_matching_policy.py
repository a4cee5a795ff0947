"""How long payments wait, and for whom."""

import pytest

from tests.money.purchases.parts import PAYER, block_hash, observed, paid, receipt, transfer_log
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.matching import Policy, Progress, is_older

POLICY = Policy()
US = bytes([0xD0]) * 20


@pytest.mark.parametrize(
    ("usd", "finality", "agreement"),
    [
        (1, "blocks", False),
        (99.999999, "blocks", False),
        (100, "safe", False),
        (999.999999, "safe", False),
        (1000, "safe", True),
        (9_999.999999, "safe", True),
        (10_000, "finalized", True),
    ],
)
def test_the_more_is_paid_the_longer_it_waits_and_the_more_have_to_agree(usd, finality, agreement):
    amount = round(usd * ATOMIC)
    assert (POLICY.finality(amount), POLICY.needs_agreement(amount)) == (finality, agreement)


def test_whoever_trusts_a_server_of_his_own_needs_no_second_one():
    assert not Policy(agree_from=None).needs_agreement(10**15)


@pytest.mark.parametrize(
    ("latest", "progress"),
    [
        (99, Progress(0, 3, False)),
        (100, Progress(0, 3, False)),
        (102, Progress(2, 3, False)),
        (103, Progress(3, 3, True)),
        (900, Progress(800, 3, True)),
    ],
)
def test_a_small_payment_needs_three_blocks_on_top(latest, progress):
    assert POLICY.progress(paid(US, 5, latest=latest), 5 * ATOMIC) == progress


@pytest.mark.parametrize(
    ("usd", "heights", "progress"),
    [
        (100, {"latest": 160, "safe": 99, "finalized": 10}, Progress(60, 61, False)),
        (100, {"latest": 161, "safe": 100, "finalized": 10}, Progress(61, 61, True)),
        (10_000, {"latest": 700, "safe": 640, "finalized": 99}, Progress(600, 601, False)),
        (10_000, {"latest": 700, "safe": 640, "finalized": 100}, Progress(600, 600, True)),
        (100, {"latest": 100, "safe": 0, "finalized": 0}, Progress(0, 100, False)),
    ],
)
def test_a_larger_payment_needs_a_block_that_is_safe_or_final(usd, heights, progress):
    assert POLICY.progress(paid(US, usd, **heights), usd * ATOMIC) == progress


def test_a_receipt_of_a_fork_is_never_enough():
    seen = observed(
        receipt(transfer_log(US, 5, payer=PAYER)), latest=10_000, finalized=9_999, canonical=block_hash(100, "x")
    )
    assert not POLICY.progress(seen, 5 * ATOMIC).enough
    assert not POLICY.progress(seen, 50_000 * ATOMIC).enough


@pytest.mark.parametrize(
    ("block_time", "quoted_at", "now", "older"),
    [
        (1000, 1000, 1010, False),
        (880, 1000, 1010, False),
        (879, 1000, 1010, True),
        (879, 1000, 880, True),
        (879, 1000, 879, False),
        (1000, 90_000, 1010, False),
    ],
)
def test_a_transaction_is_older_than_its_quote_unless_the_quote_is_from_the_future(block_time, quoted_at, now, older):
    assert is_older(block_time, quoted_at, now) is older
