"""Simulate the ECB's reference rates of 90 days: nested cubes in XML, units per euro, newest first."""

import datetime as dt
from itertools import takewhile

from tools.simulated import macro
from toolserver.world.model import Ask, Reply, World, serves

NINETY_DAYS = dt.timedelta(days=90)


def _envelope(cubes: str) -> Reply:
    return Reply.text(
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" '
        'xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">'
        "<gesmes:subject>Reference rates</gesmes:subject>"
        "<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>"
        f"<Cube>{cubes}</Cube></gesmes:Envelope>",
        content_type="text/xml",
    )


@serves(
    "ECB.reference_rates_90d",
    "www.ecb.europa.eu",
    "/stats/eurofxref/eurofxref-hist-90d.xml",
    forms={"empty": _envelope("")},
)
def rates(world: World, ask: Ask) -> Reply:
    since = world.time.date() - NINETY_DAYS
    days = takewhile(lambda day: day >= since, macro.days_out(world, macro.fixing_day, macro.afternoon))
    return _envelope("".join(_day(world, day) for day in days))


def _day(world: World, day: dt.date) -> str:
    codes = ["USD", *(code for code in macro.PER_USD if code != "EUR")]
    rows = "".join(f'<Cube currency="{code}" rate="{macro.per_euro(world, code, day):.10g}"/>' for code in codes)
    return f'<Cube time="{day}">{rows}</Cube>'
