"""The ECB's own reference rates."""

from datetime import date, timedelta

import pytest

import tools.simulated.ecb
import tools.simulated.frankfurter  # noqa: F401 - serves
from tests.tools.desk import ask
from tools.parsing.series import CODES
from tools.sources.ecb import REFERENCE_RATES_90D, parse
from tools.sources.frankfurter import USD_TIMESERIES, FxWindow
from toolserver.upstream.source import SourceChanged, SourceEmpty

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?><gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" '
    'xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref"><Cube>'
)


def document(dollar="1.2500", yen="150.00", days=20):
    others = "".join(f'<Cube currency="{code}" rate="2.5"/>' for code in CODES if code not in ("EUR", "JPY"))
    rows = f'<Cube currency="USD" rate="{dollar}"/><Cube currency="JPY" rate="{yen}"/>{others}'
    dates = [date(2026, 3, 31) - timedelta(days=n) for n in range(days)]
    return (HEAD + "".join(f'<Cube time="{d}">{rows}</Cube>' for d in dates) + "</Cube></gesmes:Envelope>").encode()


def test_rates_per_euro_become_rates_per_dollar():
    days = parse(document(), None)

    assert days[-1].date == date(2026, 3, 31)
    assert days[-1].per_usd["JPY"] == pytest.approx(120)
    assert days[-1].per_usd["EUR"] == pytest.approx(0.8)
    assert days[-1].per_usd["GBP"] == pytest.approx(2.0)
    assert set(days[-1].per_usd) == set(CODES)


def test_too_few_days_are_empty():
    with pytest.raises(SourceEmpty):
        parse(document(days=19), None)
    with pytest.raises(SourceEmpty):
        ask(REFERENCE_RATES_90D, form="empty")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        document()[:400],
        b"<html><body>Sorry</body>",
        document().replace(b"?>", b"?><!DOCTYPE x [<!ENTITY a 'b'>]>", 1),
    ],
    ids=["empty", "truncated", "html", "entities"],
)
def test_what_is_not_plain_xml_is_a_changed_source(body):
    with pytest.raises(SourceChanged):
        parse(body, None)


@pytest.mark.parametrize("broken", [document(dollar="0"), document(yen="N/A"), document(yen="-3")])
def test_what_is_no_rate_is_refused(broken):
    with pytest.raises(ValueError):  # noqa: PT011 - each form has its own wording
        parse(broken, None)


def test_a_day_without_the_dollar_is_another_shape():
    with pytest.raises(KeyError):
        parse(document().replace(b'"USD"', b'"XXX"'), None)


def test_both_twins_tell_the_same_fixings():
    own = ask(REFERENCE_RATES_90D)
    mirror = {day.date: day for day in ask(USD_TIMESERIES, FxWindow(date(2026, 11, 26), date(2027, 1, 15)))}

    assert len(own) > 55
    assert own[-1].date == max(mirror)
    for day in own:
        if day.date in mirror:
            assert day.per_usd == pytest.approx(mirror[day.date].per_usd, rel=1e-4)
