"""Faults of the tools."""

from tests.mutants.faults import fault

FAULTS = (
    fault(
        "tools/free/climate_weather_alerts.py",
        "alerts of another severity than the one asked for are listed",
        "return all(wanted is None or wanted == stated for wanted, stated in filters) and (",
        "return (",
    ),
    fault(
        "tools/free/funding_rates.py",
        "one venue alone is compared",
        "if len(venues) < FEWEST_VENUES:",
        "if not venues:",
    ),
    fault(
        "tools/premium/briefing.py",
        "an unknown section is left out without a word",
        "if not names or not names <= {*INCLUDABLE}:",
        "if not names:",
    ),
    fault(
        "tools/premium/exchange_flows.py",
        "transfers inside one exchange are listed",
        'if flow.direction != "internal"',
        "if flow.direction",
    ),
)
