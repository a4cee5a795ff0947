"""Read the Smithsonian's weekly report on volcanoes (RSS in ISO-8859-1, no key, not for commercial use).

https://volcano.si.edu/reports_weekly.cfm
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tools.parsing.fields import DESCRIPTION, clean, clean_or_none, from_rfc822, number, optional, web_url, within
from tools.parsing.xml import rss_items
from tools.sources.hosts import DAY, HOUR, WEEK, other
from toolserver import Get, Licence, Source, SourceChanged, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LICENCE = Licence("non_commercial", "Smithsonian Institution, Global Volcanism Program", "https://volcano.si.edu")
_TITLE = re.compile(r"(.+?) \((.+?)\) - Report for (.+?)(?: - (.+))?")
_VNUM = re.compile(r"#vn_(\d{6})$")


class VolcanoReport(NamedTuple):
    """The report on one volcano for a week. `vnum` is its number in the catalogue of volcanoes."""

    name: str
    country: str | None
    period: str | None
    category: str | None
    summary: str | None
    vnum: str | None
    published_at: datetime
    lat: float | None
    lon: float | None
    link: str | None


def parse(body: bytes, query: None) -> tuple[VolcanoReport, ...]:
    """Return every item. They all have the same link; `guid` distinguishes them."""
    reports = read_rows(rss_items(body), _report)
    if reports and not any(report.vnum or report.period for report in reports):
        raise SourceChanged("no item names a volcano")
    return reports


def _report(item: "Element") -> VolcanoReport:
    title = clean(item.findtext("title") or "")
    match, vnum = _TITLE.fullmatch(title), _VNUM.search((item.findtext("guid") or "").strip())
    name, country, period, category = match.groups() if match else (title, None, None, None)
    if not name:
        raise SourceChanged("an item without a title")
    position = optional(_position, item.findtext("{http://www.georss.org/georss}point"))
    return VolcanoReport(
        name=name,
        country=country,
        period=period,
        category=category,
        summary=clean_or_none(item.findtext("description"), DESCRIPTION, is_html=True),
        vnum=vnum[1] if vnum else None,
        published_at=from_rfc822(item.findtext("pubDate") or ""),
        lat=position[0] if position else None,
        lon=position[1] if position else None,
        link=web_url(item.findtext("link")),
    )


def _position(text: str) -> tuple[float, float]:
    lat, lon = text.split()
    return within(number(lat), -90, 90), within(number(lon), -360, 360)


def newest(reports: tuple[VolcanoReport, ...]) -> datetime | None:
    return max((report.published_at for report in reports), default=None)


WEEKLY_REPORT = Source(
    "SmithsonianGVP.weekly_report",
    Get("https://volcano.si.edu/news/WeeklyVolcanoRSS.xml", decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=other("smithsonian"),
    fresh_s=HOUR,
    keep_s=2 * WEEK,
    timeout_s=15,
    conditional=True,
    newest=newest,
    newest_max_s=10 * DAY,
    least=3,
    untrusted=True,
)
