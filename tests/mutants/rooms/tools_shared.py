"""Faults of the parts that tools share."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "tools/shared/spot.py",
        "a frozen ticker with too little volume is current",
        "near_price and (1 - NEAR_VOLUME) * least <= volume <=",
        "near_price and volume <=",
        "tests/tools/shared/test_spot.py",
    ),
    fault(
        "tools/shared/correlation.py",
        "a step from zero in the second series counts",
        "if pair.first[i - 1] and pair.second[i - 1]]",
        "if pair.first[i - 1]]",
        "tests/tools/shared/test_correlation.py",
    ),
    fault(
        "tools/shared/deltas.py",
        "an hour of which half is known is incomplete",
        "self.unknown * 2 > self.traded",
        "self.unknown * 2 >= self.traded",
        "tests/tools/shared/test_deltas.py",
    ),
    fault(
        "tools/shared/correlation.py",
        "thirty days make twenty-nine returns",
        "[-(RETURNS + 1) :]",
        "[-RETURNS:]",
        "tests/tools/shared/test_correlation.py",
    ),
    fault(
        "tools/shared/spot.py",
        "a frozen ticker with another price is current",
        "near_price = abs(price - candles[-1].close) <= NEAR * price",
        "near_price = True",
        "tests/tools/shared/test_spot.py",
    ),
    fault(
        "tools/shared/markets.py",
        "a price that nobody calls delayed is of this moment",
        '"real_time" if quote.delayed is False else "delayed"',
        '"real_time" if not quote.delayed else "delayed"',
        "tests/tools/shared/test_markets.py",
    ),
    fault(
        "tools/shared/headlines.py",
        "a story without an article leads nowhere",
        "(each.url or _talk(each), each.created_at)",
        "(each.url, each.created_at)",
        "tests/tools/shared/test_headlines.py",
    ),
)
