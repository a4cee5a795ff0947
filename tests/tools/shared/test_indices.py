"""Quotes of indices as answers show them."""

import pytest

from tools.parsing.stock_quotes import StockQuote
from tools.shared.indices import from_quote


@pytest.mark.parametrize(("delayed", "freshness"), [(False, "real_time"), (True, "delayed"), (None, "delayed")])
def test_a_price_is_of_this_moment_only_where_the_provider_says_so(delayed, freshness):
    assert from_quote(StockQuote("SPX", 5000.0, 4990.0, delayed=delayed), "yahoo").freshness == freshness


def test_the_change_is_computed_from_the_prices_in_hundredths():
    quote = from_quote(StockQuote("SPX", 5000.126, 4990.0), "yahoo")
    assert (quote.change, quote.change_percent) == (10.13, 0.2)
