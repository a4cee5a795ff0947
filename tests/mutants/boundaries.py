"""Faults of the boundaries of words and classes: each must be seen by the rows that the publisher or we wrote down."""

from tests.mutants.faults import Mutant

ROWS = "tests/tools/test_meanings.py"
SPACE, AIR = "tools/free/space_weather.py", "tools/free/air_quality.py"
WEATHER, STATUS = "tools/shared/weather.py", "tools/shared/status.py"
SENTIMENT, CORRELATION, DELTAS = (
    "tools/shared/sentiment.py",
    "tools/shared/correlation.py",
    "tools/shared/deltas.py",
)
FLOWS = "tools/premium/exchange_flows.py"

BOUNDARIES = tuple(
    Mutant(name, file, text, becomes, ROWS)
    for file, name, text, becomes in (
        (SPACE, "a storm of 5- is quiet", '(14, "minor")', '(15, "minor")'),
        (SPACE, "a storm of 6- is minor", '(17, "moderate")', '(18, "moderate")'),
        (SPACE, "a storm of 7- is moderate", '(20, "strong")', '(21, "strong")'),
        (SPACE, "a storm of 8- is strong", '(23, "severe")', '(24, "severe")'),
        (SPACE, "a storm of 9- is extreme", '(27, "extreme")', '(26, "extreme")'),
        (SPACE, "thirds of Kp are rounded up", "thirds = round(3 * kp)", "thirds = math.ceil(3 * kp)"),
        (SPACE, "a flare of exactly a decade is of the class below", "if flux_wm2 >= least)", "if flux_wm2 > least)"),
        (
            SPACE,
            "tenths of a flare are rounded",
            "math.floor(round(flux_wm2 / decade * 10, 6))",
            "round(flux_wm2 / decade * 10)",
        ),
        (AIR, "an index on a limit is of the next band", "if aqi <= most", "if aqi < most"),
        (AIR, "half an index is rounded to even", "math.floor(aqi + 0.5)", "round(aqi)"),
        (WEATHER, "freezing rain is rain", '(66, 67), "freezing rain"', '(66, 67), "rain"'),
        (WEATHER, "freezing drizzle is drizzle", '(56, 57), "freezing drizzle"', '(56, 57), "drizzle"'),
        (WEATHER, "hail is left out", '(96, 99), "thunderstorm with hail"', '(96, 99), "thunderstorm"'),
        (WEATHER, "sleet has the code of freezing rain", '("sleet", 68, 69, 69)', '("sleet", 66, 67, 67)'),
        ("tools/shared/quakes.py", "600 is significant", "significance > SIGNIFICANT", "significance >= SIGNIFICANT"),
        (
            STATUS,
            "a notice is a disruption",
            '"SERVICE_INFORMATION": "operational"',
            '"SERVICE_INFORMATION": "degraded"',
        ),
        (STATUS, "an outage is a disruption", '"SERVICE_OUTAGE": "major_outage"', '"SERVICE_OUTAGE": "degraded"'),
        (STATUS, "all of OpenAI is its API", "if component.name in OPENAI_API]", "]"),
        (STATUS, "an unknown state is calm", 'get(component.state, "degraded")', 'get(component.state, "operational")'),
        (
            "tools/shared/bitcoin_network.py",
            "a fee is rounded down",
            "max(1, math.ceil(rate))",
            "max(1, math.floor(rate))",
        ),
        ("tools/shared/bets.py", "a decided market is open", "low < yes < high", "low <= yes <= high"),
        (
            "tools/sources/kalshi.py",
            "a trade outside the book counts",
            "book.bid <= last <= book.ask",
            "book.bid <= last",
        ),
        ("tools/sources/firms.py", "30 percent is low", "percent < 30", "percent <= 30"),
        ("tools/sources/firms.py", "80 percent is nominal", "percent < 80", "percent <= 80"),
        (SENTIMENT, "25 of the VIX is normal", "if value < 25:", "if value <= 25:"),
        (SENTIMENT, "15 of the VIX is low", "if value < 15", "if value <= 15"),
        (SENTIMENT, "40 of the VIX is elevated", "if value < 40", "if value <= 40"),
        (SENTIMENT, "a tone of 0.3 is positive", "value > 0.3", "value >= 0.3"),
        (SENTIMENT, "a tone of -0.1 is negative", "value >= -0.1", "value > -0.1"),
        (SENTIMENT, "a tone of -0.3 is negative", "value >= -0.3", "value > -0.3"),
        (SENTIMENT, "three mentions are few", "mentions < 3", "mentions <= 3"),
        (SENTIMENT, "ten mentions are some", "mentions < 10", "mentions <= 10"),
        (CORRELATION, "0.2 is negligible", "size < 0.2", "size <= 0.2"),
        (CORRELATION, "0.4 is weak", "size < 0.4", "size <= 0.4"),
        (CORRELATION, "0.7 is moderate", "size < 0.7", "size <= 0.7"),
        (CORRELATION, "0.05 has no sign", "abs(r) < 0.05", "abs(r) <= 0.05"),
        (DELTAS, "M6 is moderate", "magnitude >= 6", "magnitude > 6"),
        (DELTAS, "M5 is minor", "magnitude >= 5", "magnitude > 5"),
        (DELTAS, "100 points are moderate", "points >= 100", "points > 100"),
        (DELTAS, "25 points are minor", "points >= 25", "points > 25"),
        (DELTAS, "a move of 0.10 is moderate", "size >= 0.10", "size > 0.10"),
        (DELTAS, "a move of 0.05 is minor", "size >= 0.05", "size > 0.05"),
        ("tools/shared/alerts.py", "what is to come weighs as little as what is past", '"Future": 2', '"Future": 0.5'),
        (FLOWS, "5 ETH do not count", "value_wei >= LEAST_ETH * WEI", "value_wei > LEAST_ETH * WEI"),
        (FLOWS, "10 of 200 ETH are balanced", "10 * abs(both.net) < max(", "10 * abs(both.net) <= max("),
        ("tools/premium/whales.py", "100 ETH are no whale", "value_wei >= LEAST_WEI", "value_wei > LEAST_WEI"),
        ("tools/shared/btc_whales.py", "10 BTC are no whale", "moved_sat >= LEAST_SAT", "moved_sat > LEAST_SAT"),
        ("tools/parsing/funding.py", "a year has 365.25 days", "HOURS_A_YEAR = 8760", "HOURS_A_YEAR = 8766"),
    )
)
