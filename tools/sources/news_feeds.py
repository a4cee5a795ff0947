"""Read headlines of eight publishers and, when enabled, of a news search (RSS 2.0, no key; display only).

The search is read only where GOOGLE_NEWS has any value.

https://www.rssboard.org/rss-specification
"""

from datetime import datetime
from typing import TYPE_CHECKING

from tools.parsing.feeds import Headline, newest_headline
from tools.parsing.fields import clean_or_none, from_iso, from_rfc822, web_url
from tools.parsing.xml import rss_items
from tools.sources.hosts import DAY, HOUR, MINUTE, RSS, YAHOO_NEWS
from toolserver import Get, HostGroup, Keys, Licence, Source, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SEARCH = "https://news.google.com/rss/search"
SWITCH = "GOOGLE_NEWS"
TOPICS = "bitcoin OR ethereum OR crypto OR stocks OR nasdaq"


def parse(body: bytes, query: None) -> tuple[Headline, ...]:
    """Return every item that has a title and a date, in the order of the feed."""
    return read_rows(rss_items(body), _headline)


def _headline(item: "Element") -> Headline | None:
    title, written = clean_or_none(item.findtext("title")), item.findtext("pubDate")
    if title is None or not written:
        return None
    return Headline(title, web_url(item.findtext("link")) or web_url(item.findtext("guid")), _date(written))


def _date(text: str) -> datetime:
    """Read a date in RFC 822, as the format requires, or in ISO 8601, as one publisher writes it."""
    text = text.strip()
    return from_iso(text) if text[:4].isdigit() and text[4:5] == "-" else from_rfc822(text)


def feed(
    name: str, url: str, licence: Licence, *, hosts: HostGroup = RSS, newest_max_s: float = 2 * DAY
) -> Source[None, tuple[Headline, ...]]:
    """Return the source of a publisher's feed."""
    return Source(
        name,
        Get(url, decode="bytes"),
        parse,
        licence=licence,
        hosts=hosts,
        fresh_s=300,
        keep_s=6 * HOUR,
        conditional=True,
        newest=newest_headline,
        newest_max_s=newest_max_s,
        least=3,
        untrusted=True,
    )


def _theirs(publisher: str, terms_url: str) -> Licence:
    return Licence("non_commercial", publisher, terms_url)


COINDESK = feed(
    "CoinDesk.rss",
    "https://www.coindesk.com/arc/outboundfeeds/rss/",
    _theirs("CoinDesk", "https://www.coindesk.com/terms"),
)
COINTELEGRAPH = feed(
    "Cointelegraph.rss",
    "https://cointelegraph.com/rss",
    _theirs("Cointelegraph", "https://cointelegraph.com/terms-and-privacy"),
)
DECRYPT = feed("Decrypt.rss", "https://decrypt.co/feed", _theirs("Decrypt", "https://decrypt.co/terms-of-use"))
CNBC = feed(
    "CNBC.top_news_rss",
    "https://www.cnbc.com/id/100003114/device/rss/rss.html",
    _theirs("CNBC", "https://www.nbcuniversal.com/terms"),
)
MARKETWATCH = feed(
    "MarketWatch.top_stories_rss",
    "https://feeds.content.dowjones.io/public/rss/mw_topstories",
    _theirs("MarketWatch", "https://www.dowjones.com/terms-of-use/"),
)
YAHOO_FINANCE = feed(
    "YahooFinance.news_rss",
    "https://finance.yahoo.com/news/rssindex",
    _theirs("Yahoo Finance", "https://legal.yahoo.com/us/en/yahoo/terms/otos/index.html"),
    hosts=YAHOO_NEWS,
)
BBC_BUSINESS = feed(
    "BBC.business_rss",
    "https://feeds.bbci.co.uk/news/business/rss.xml",
    _theirs("BBC News", "https://www.bbc.co.uk/usingthebbc/terms-of-use/"),
)
FEDERAL_RESERVE = feed(
    "FederalReserve.press_rss",
    "https://www.federalreserve.gov/feeds/press_all.xml",
    Licence("yes", "Board of Governors of the Federal Reserve System", "https://www.federalreserve.gov/disclaimer.htm"),
    newest_max_s=21 * DAY,
)


def search_request(query: None, keys: Keys) -> Get | None:
    if not keys.get(SWITCH):
        return None
    params = {"q": f"({TOPICS}) when:1d", "hl": "en-US", "gl": "US", "ceid": "US:en"}
    return Get(SEARCH, params=params, decode="bytes")


GOOGLE_NEWS = Source(
    "GoogleNews.search_rss",
    search_request,
    parse,
    licence=_theirs("Google News", "https://policies.google.com/terms"),
    hosts=RSS,
    fresh_s=15 * MINUTE,
    newest_max_s=2 * DAY,
    keep_s=6 * HOUR,
    newest=newest_headline,
    untrusted=True,
)
