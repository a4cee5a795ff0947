"""A ticker without a timestamp is current if price and volume match the candles of its day."""

from datetime import UTC, datetime, timedelta

import pytest

from tools.parsing.candles import Candle
from tools.shared.spot import NEAR, NEAR_VOLUME, is_of_today

NOW = datetime(2027, 1, 15, 8, tzinfo=UTC)
PRICE = 100.0
CANDLES = tuple(Candle(NOW - timedelta(hours=age), PRICE, PRICE, PRICE, PRICE, 10.0) for age in range(40, -1, -1))
LEAST, MOST = 240.0, 250.0  # the hours after the same hour of yesterday, and that hour too


@pytest.mark.parametrize(
    ("volume", "is_current"),
    [
        (LEAST, True),
        (MOST, True),
        (LEAST * (1 - NEAR_VOLUME), True),
        (MOST * (1 + NEAR_VOLUME), True),
        (LEAST * (1 - NEAR_VOLUME) - 0.1, False),
        (MOST * (1 + NEAR_VOLUME) + 0.1, False),
        (0.0, False),
    ],
)
def test_a_ticker_that_stood_still_has_another_volume_than_its_candles(volume, is_current):
    assert is_of_today(PRICE, volume, CANDLES) is is_current


@pytest.mark.parametrize(("price", "is_current"), [(98.1, True), (102.0, True), (97.9, False), (102.1, False)])
def test_a_ticker_that_stood_still_has_another_price_than_the_newest_candle(price, is_current):
    assert NEAR == 0.02
    assert is_of_today(price, LEAST, CANDLES) is is_current
